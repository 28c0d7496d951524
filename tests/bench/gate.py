#!/usr/bin/env python3
"""The gate's benchmark (see `gate`): starts server and peers, interleaves rounds, prints medians. gate.py BUILD FOLDER"""
import json, os, signal, socket, statistics, subprocess, sys, time

BUILD, WORK = sys.argv[1:3]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
LOAD = os.path.join(WORK, "gateload")
SECRET = "Bearer S3cr3t-value-0123456789"
HOST, TLS_PORT, RAW_PORT = "allowed.test", "9443", "9007"
os.environ["BULKHEAD_STATE"] = os.path.join(WORK, "state")
started = []


def run(*argv, **more):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=WORK, **more)


def write(name, text):
    with open(os.path.join(WORK, name), "w") as f:
        f.write(text)


def certificates():
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for name in ("ca", "squid"):
        run("openssl", "req", "-x509", *ec, "-days", "2", "-keyout", name + ".key", "-out", name + ".pem", "-subj", "/CN=Bench " + name, "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    run("openssl", "req", *ec, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=" + HOST)
    write("ext", "subjectAltName=DNS:%s\n" % HOST)
    run("openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "server.pem")
    write("squid-all.pem", open(WORK + "/squid.pem").read() + open(WORK + "/squid.key").read())
    os.chmod(WORK + "/squid-all.pem", 0o644)


def start(name, *argv, **more):
    log = open(os.path.join(WORK, name + ".log"), "w")
    p = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=WORK, **more)
    started.append((name, p))
    return p


def wait_port(port, name):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", int(port)), 1).close()
            return True
        except OSError:
            time.sleep(0.1)
    print("  %s does not listen: %s" % (name, open(os.path.join(WORK, name + ".log")).read()[-300:]))
    return False


def start_server():
    os.makedirs(WORK + "/www", exist_ok=True)
    write("www/small", "x" * 512)
    with open(WORK + "/www/big", "wb") as f:
        f.write(os.urandom(64 << 20))
    with open(WORK + "/www/text", "w") as f:
        line = "".join('{"id": %d, "name": "some value", "url": "https:\\/\\/example.com\\/%d"}\n' % (i, i * 7) for i in range(10000))
        f.write(line * ((64 << 20) // len(line)))
    write("nginx.conf", """daemon off; pid %(w)s/nginx.pid; worker_processes 1; error_log %(w)s/nginx.err; user root;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; sendfile on; tcp_nodelay on;
  server { listen 127.0.0.1:%(p)s ssl; ssl_certificate %(w)s/server.pem; ssl_certificate_key %(w)s/server.key; root %(w)s/www; } }
""" % {"w": WORK, "p": TLS_PORT})
    start("nginx", "nginx", "-c", WORK + "/nginx.conf")
    start("source", LOAD, "serve", RAW_PORT)
    wait_port(TLS_PORT, "nginx")
    wait_port(RAW_PORT, "source")


def start_haproxy():
    write("haproxy.cfg", """global
  maxconn 2000
defaults
  mode tcp
  option splice-auto
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen raw
  bind 127.0.0.1:9107
  server s 127.0.0.1:%s
""" % RAW_PORT)
    start("haproxy", "haproxy", "-f", WORK + "/haproxy.cfg", "-db")
    return wait_port(9107, "haproxy")


def start_squid():
    run("/usr/lib/squid/security_file_certgen", "-c", "-s", WORK + "/ssl_db", "-M", "4MB")
    run("chown", "-R", "proxy:proxy", WORK + "/ssl_db")
    write("squid.conf", """http_port 127.0.0.1:3129 ssl-bump cert=%(w)s/squid-all.pem generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program /usr/lib/squid/security_file_certgen -s %(w)s/ssl_db -M 4MB
sslcrtd_children 2
acl step1 at_step SslBump1
ssl_bump peek step1
ssl_bump bump all
tls_outgoing_options cafile=%(w)s/ca.pem
acl all_ports port 1-65535
request_header_add Authorization "%(s)s" all
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log %(w)s/squid.cache
pid_filename %(w)s/squid.pid
shutdown_lifetime 0 seconds
coredump_dir %(w)s
""" % {"w": WORK, "s": SECRET})
    os.chmod(WORK, 0o777)
    start("squid", "squid", "-N", "-f", WORK + "/squid.conf")
    return wait_port(3129, "squid")


def start_mitmproxy():
    start("mitmproxy", "mitmdump", "-q", "--listen-host", "127.0.0.1", "-p", "8081", "--set", "confdir=" + WORK + "/mitm", "--set",
          "ssl_verify_upstream_trusted_ca=" + WORK + "/ca.pem", "--set", "modify_headers=/~q/Authorization/" + SECRET, "--set", "connection_strategy=lazy", "--set", "stream_large_bodies=1m")
    return wait_port(8081, "mitmproxy") and os.path.exists(WORK + "/mitm/mitmproxy-ca-cert.pem")


def policy():
    write("policy.yaml", """version: 1
name: bench
owner: bench@example.com
limits: { egress_requests: unlimited, egress_bytes: unlimited, connections: 1024 }
network:
  - { host: %s, ports: [%s], private: true, methods: [GET], ca: ca.pem, secret: { name: bench, header: Authorization, value: "Bearer {}" } }
""" % (HOST, TLS_PORT))
    write("tunnel.yaml", """version: 1
name: bench-tunnel
owner: bench@example.com
limits: { egress_requests: unlimited, egress_bytes: unlimited, connections: 1024 }
network:
  - { host: %s, ports: [%s, %s], private: true }
""" % (HOST, RAW_PORT, TLS_PORT))
    run(os.path.join(BUILD, "bulkhead"), "secret", "set", "bench", input=SECRET.split()[1].encode())


class Box:
    """A box that stays, and runs one gateload after the other: its start isn't measured."""

    def __init__(self, policy_file):
        self.p = subprocess.Popen([os.path.join(BUILD, "bulkhead"), "run", "-q", "--timeout", "20m", "--dir-mode", "none", "--policy", WORK + "/" + policy_file, "--mount", LOAD + ":/gateload", "--", "sh"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def load(self, *args):
        self.p.stdin.write("/gateload " + " ".join("'%s'" % a for a in args) + "; echo\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        while line == "\n":
            line = self.p.stdout.readline()
        return json.loads(line)

    def pids(self):
        out = subprocess.run(["ps", "-eo", "pid,ppid,comm"], capture_output=True, text=True).stdout.splitlines()[1:]
        return [int(r.split()[0]) for r in out if r.split()[1] == str(self.p.pid) and r.split()[2].startswith("bulkhead")] + [self.p.pid]

    def end(self):
        self.p.stdin.close()
        self.p.wait()


def outside(*args):
    return json.loads(subprocess.run([LOAD, *args], check=True, capture_output=True, text=True).stdout)


def measure(title, cases, keys, rounds):
    print("\n" + title)
    got = {name: [] for name in cases}
    for _ in range(rounds):
        for name, fn in cases.items():
            try:
                got[name].append(fn())
            except (subprocess.CalledProcessError, ValueError) as problem:
                print("  %s failed: %s" % (name, getattr(problem, "stderr", problem)))
    for name, results in got.items():
        if results:
            print("  %-46s %s" % (name, "   ".join("%s %8.0f" % (k, statistics.median(r[k] for r in results)) for k in keys)))


def main():
    certificates()
    start_server()
    has = {"haproxy": start_haproxy(), "squid": start_squid(), "mitmproxy": start_mitmproxy()}
    policy()
    inspected, tunnel = Box("policy.yaml"), Box("tunnel.yaml")
    own = "127.0.0.1:3128"
    raw = lambda verb, n: {
        "plain": lambda: outside(verb, "-", HOST, RAW_PORT, n),
        **({"haproxy, tcp mode": lambda: outside(verb, "-", HOST, "9107", n)} if has["haproxy"] else {}),
        "bulkhead, from a box, by name": lambda: tunnel.load(verb, "-", HOST, RAW_PORT, n),
        "bulkhead, from a box, CONNECT": lambda: tunnel.load(verb, own, HOST, RAW_PORT, n),
    }
    measure("plain tunnel, 512 MiB (MB/s)", raw("pull", "512"), ["mb_s"], ROUNDS)
    measure("plain tunnel, connect and one byte there and back (us)", raw("dial", "300"), ["p50_us", "p99_us"], ROUNDS)

    def gets(path, conns, n, mitm_n):
        cases = {"plain TLS": lambda: outside("get", "-", HOST, TLS_PORT, path, WORK + "/ca.pem", conns, n, "")}
        cases["bulkhead, secret put in, recorded, scrubbed"] = lambda: inspected.load("get", own, HOST, TLS_PORT, path, "-", conns, n, "")
        if has["squid"]:
            cases["squid ssl-bump, header added"] = lambda: outside("get", "127.0.0.1:3129", HOST, TLS_PORT, path, WORK + "/squid.pem", conns, n, "")
        if has["mitmproxy"]:
            cases["mitmproxy, header added"] = lambda: outside("get", "127.0.0.1:8081", HOST, TLS_PORT, path, WORK + "/mitm/mitmproxy-ca-cert.pem", conns, mitm_n, "")
        return cases

    measure("GET of 512 bytes over TLS, one connection kept alive", gets("/small", "1", "3000", "300"), ["p50_us", "p99_us", "rps"], ROUNDS)
    measure("GET of 512 bytes over TLS, 16 connections kept alive", gets("/small", "16", "500", "30"), ["p50_us", "p99_us", "rps"], ROUNDS)
    measure("GET of 64 MiB of random bytes over TLS (MB/s)", gets("/big", "1", "2", "1"), ["mb_s"], ROUNDS)
    measure("GET of 64 MiB of JSON over TLS (MB/s)", gets("/text", "1", "2", "1"), ["mb_s"], ROUNDS)
    inspected.end()
    tunnel.end()


try:
    main()
finally:
    for name, p in started:
        p.send_signal(signal.SIGTERM)
    for name, p in started:
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            p.kill()
