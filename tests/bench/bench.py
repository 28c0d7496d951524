#!/usr/bin/env python3
"""Benchmarks of `bulkhead run` against peers, interleaved in one run so that all see the same machine."""
import http.server, json, os, shutil, socket, statistics, struct, subprocess, sys, tempfile, threading, time

BUILD = sys.argv[1]
BULKHEAD = os.path.join(BUILD, "bulkhead")
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "60"))
WORK = tempfile.mkdtemp(prefix="bench-")
os.environ["BULKHEAD_STATE"] = os.path.join(WORK, "state")
DIR = os.path.join(WORK, "project")
os.mkdir(DIR)
open(os.path.join(DIR, "file"), "w").write("hello\n")
os.chdir(DIR)
DEVNULL = open(os.devnull, "r+b")


def once(argv, **more):
    began = time.perf_counter()
    status = subprocess.run(argv, stdin=DEVNULL, stdout=more.get("stdout", DEVNULL), stderr=subprocess.PIPE, cwd=more.get("cwd"))
    took = time.perf_counter() - began
    if status.returncode != 0:
        raise RuntimeError("%s: status %d: %s" % (argv[0], status.returncode, status.stderr.decode(errors="replace").strip()[-300:]))
    return took


def interleaved(cases, rounds):
    """{name: argv} -> {name: [seconds]}; a case that can't run is told and left out."""
    times, usable = {}, {}
    for name, (argv, cwd) in cases.items():
        try:
            once(argv, cwd=cwd)
            usable[name], times[name] = (argv, cwd), []
        except (RuntimeError, FileNotFoundError) as problem:
            print("  %-44s not run: %s" % (name, problem))
    for _ in range(rounds):
        for name, (argv, cwd) in usable.items():
            if name.startswith(("runsc", "srt")) and len(times[name]) >= max(5, rounds // 6):
                continue
            times[name].append(once(argv, cwd=cwd))
    return times


def table(times, base):
    reference = statistics.median(times[base]) if base in times else None
    for name, values in times.items():
        values = sorted(values)
        median, p90 = statistics.median(values), values[int(len(values) * 0.9)]
        ratio = " %6.2f x %s" % (median / reference, base.split()[0]) if reference else ""
        print("  %-44s median %8.2f ms   p90 %8.2f ms   n %3d%s" % (name, median * 1e3, p90 * 1e3, len(values), ratio))


SYSTEM = [d for d in ("/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32") if os.path.lexists(d)]


def bwrap_argv(*command):
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    for d in SYSTEM:
        argv += ["--symlink", os.readlink(d), d] if os.path.islink(d) else ["--ro-bind", d, d]
    argv += ["--ro-bind", "/etc/ssl", "/etc/ssl", "--ro-bind", "/etc/alternatives", "/etc/alternatives", "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache",
             "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/home", "--bind", DIR, "/workspace", "--chdir", "/workspace",
             "--uid", "1000", "--gid", "1000", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--"]
    return argv + list(command)


def bundle(name, command):
    path = os.path.join(WORK, name)
    root = os.path.join(path, "rootfs")
    os.makedirs(root)
    for d in ("usr", "proc", "dev", "tmp", "run", "home", "workspace", "etc"):
        os.mkdir(os.path.join(root, d))
    mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
              {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
              {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
              {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}, {"destination": "/run", "type": "tmpfs", "source": "tmpfs"},
              {"destination": "/workspace", "type": "bind", "source": DIR, "options": ["rbind", "rw"]}]
    for d in SYSTEM:
        if os.path.islink(d):
            os.symlink(os.readlink(d), root + d)
        else:
            os.mkdir(root + d)
            mounts.append({"destination": d, "type": "bind", "source": d, "options": ["rbind", "ro"]})
    config = {"ociVersion": "1.0.2", "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": command, "env": ["PATH=/usr/bin:/bin"],
                                                 "cwd": "/workspace", "capabilities": {}, "noNewPrivileges": True},
              "root": {"path": "rootfs", "readonly": True}, "hostname": "bench", "mounts": mounts,
              "linux": {"namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")]}}
    json.dump(config, open(os.path.join(path, "config.json"), "w"))
    return path


def srt_argv(*command):
    """Anthropic's sandbox-runtime, installed into the work folder from npm."""
    prefix = os.path.join(WORK, "srt")
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", prefix, "@anthropic-ai/sandbox-runtime"], check=True, stdout=DEVNULL, stderr=DEVNULL)
    settings = os.path.join(WORK, "srt-settings.json")
    json.dump({"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [DIR], "denyWrite": []}}, open(settings, "w"))
    return [os.path.join(prefix, "node_modules/.bin/srt"), "--settings", settings] + list(command)


def bench_start():
    print("start to end of one command (`true`), %d rounds, interleaved" % ROUNDS)
    cases = {
        "bwrap, same mounts": (bwrap_argv("/bin/true"), None),
        "bulkhead run -q (gate and record on)": ([BULKHEAD, "run", "-q", "--", "true"], None),
        "bulkhead run -q, no working copy": ([BULKHEAD, "run", "-q", "--dir-mode", "none", "--", "true"], None),
        "crun run": (["crun", "run", "bench-crun"], bundle("crun", ["/bin/true"])),
        "runsc run": (["runsc", "--network=none", "run", "bench-runsc"], bundle("runsc", ["/bin/true"])),
    }
    try:
        cases["srt"] = (srt_argv("true"), None)
    except (subprocess.CalledProcessError, FileNotFoundError) as problem:
        print("  srt not run: npm could not install it (%s)" % problem)
    table(interleaved(cases, ROUNDS), "bwrap, same mounts")


def bench_stdout(size=1 << 30, rounds=5):
    print("\nstdout: %d MiB of zeroes into /dev/null, median of %d" % (size >> 20, rounds))
    count = str(size)
    cases = {
        "plain": (["head", "-c", count, "/dev/zero"], None),
        "bwrap": (bwrap_argv("head", "-c", count, "/dev/zero"), None),
        "bulkhead run (recorded)": ([BULKHEAD, "run", "-q", "--output", "8GiB", "--", "head", "-c", count, "/dev/zero"], None),
    }
    off = os.path.join(WORK, "norecord.yaml")
    open(off, "w").write("version: 1\nname: bench\nowner: bench@example.com\nlimits: { output: unlimited }\nrecord: { output: false }\n")
    cases["bulkhead run (output not recorded)"] = ([BULKHEAD, "run", "-q", "--policy", off, "--", "head", "-c", count, "/dev/zero"], None)
    reader = "cat >/dev/null"
    times = {}
    for name, (argv, cwd) in cases.items():
        shell = ["bash", "-o", "pipefail", "-c", '"$@" | ' + reader, "x"] + argv
        times[name] = []
        for _ in range(rounds):
            times[name].append(once(shell))
            subprocess.run([BULKHEAD, "gc", "--older-than", "1ms"], stdout=DEVNULL, check=True)
    for name, values in times.items():
        print("  %-44s %8.0f MB/s" % (name, size / statistics.median(values) / 1e6))


class Files(http.server.BaseHTTPRequestHandler):
    size = 512 << 20
    block = b"\0" * (1 << 20)
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(self.size))
        self.end_headers()
        for _ in range(self.size >> 20):
            self.wfile.write(self.block)

    def log_message(self, *args):
        pass


def raw_server(size):
    """Not HTTP: sends `size` bytes to whoever connects, as a server-first protocol does."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(conn):
        block = b"\0" * (1 << 20)
        try:
            for _ in range(size >> 20):
                conn.sendall(block)
        except OSError:
            pass
        conn.close()

    def accept():
        while True:
            conn, _ = listener.accept()
            threading.Thread(target=serve, args=(conn,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def dns_server():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))

    def serve():
        while True:
            query, peer = sock.recvfrom(512)
            end = query.index(b"\0", 12)
            kind = struct.unpack(">H", query[end + 1:end + 3])[0]
            answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton("127.0.0.1") if kind == 1 else b""
            sock.sendto(query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if answer else 0, 0, 0) + query[12:end + 5] + answer, peer)
    threading.Thread(target=serve, daemon=True).start()
    return sock.getsockname()[1]


def bench_tunnel(size=512 << 20, rounds=5):
    print("\ntunnel: %d MiB from a local server, median of %d (box start included for bulkhead)" % (size >> 20, rounds))
    port, dns = raw_server(size), dns_server()
    policy = os.path.join(WORK, "tunnel.yaml")
    open(policy, "w").write("version: 1\nname: bench\nowner: bench@example.com\nlimits: { egress_bytes: unlimited }\n"
                            "network:\n  - { host: files.bench.test, ports: [%d], private: true }\n" % port)
    get = "exec 3<>/dev/tcp/%s/%d; exec head -c %d <&3 >/dev/null"
    cases = {
        "plain": ["bash", "-c", get % ("127.0.0.1", port, size)],
        "bulkhead run, transparent entrance": [BULKHEAD, "run", "-q", "--policy", policy, "--resolver", "127.0.0.1:%d" % dns, "--", "bash", "-c",
                                               get % ("files.bench.test", port, size)],
    }
    for name, argv in cases.items():
        values = [once(argv) for _ in range(rounds)]
        print("  %-44s %8.0f MB/s" % (name, size / statistics.median(values) / 1e6))


def pss_of_tree(root):
    """PSS of a process and all below it, in bytes, with how many they are."""
    total, count, queue = 0, 0, [root]
    while queue:
        pid = queue.pop()
        try:
            for line in open("/proc/%d/smaps_rollup" % pid):
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
            count += 1
            queue += [int(c) for c in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]
        except OSError:
            pass
    return total, count


def bench_memory():
    print("\nmemory of one idle box (`sleep`), all processes, PSS")
    for name, argv in {"bwrap": bwrap_argv("sleep", "5"), "bulkhead run": [BULKHEAD, "run", "-q", "--", "sleep", "5"]}.items():
        child = subprocess.Popen(argv, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        time.sleep(1)
        total, count = pss_of_tree(child.pid)
        print("  %-44s %8.1f MiB in %d processes (the sleep included)" % (name, total / 1048576, count))
        child.kill()
        child.wait()


try:
    bench_start()
    bench_stdout()
    bench_tunnel()
    bench_memory()
finally:
    shutil.rmtree(WORK, ignore_errors=True)
