#!/usr/bin/env python3
"""`bulkhead run` on a terminal of its own making: terminal.py BULKHEAD FOLDER. Prints "ok - …" and "not ok - …" lines."""
import errno, fcntl, glob, json, os, pty, re, select, signal, struct, subprocess, sys, termios, time

BULKHEAD, FOLDER = sys.argv[1:3]
PATIENCE = 20


def check(name, good, detail=""):
    print(("ok - %s" % name) if good else "not ok - %s: %s" % (name, detail), flush=True)


class Terminal:
    """A pseudo terminal on which one program runs in the foreground; the slave end stays open here, so that its state outlives the program."""

    def __init__(self, argv, rows=40, columns=100, stdout=None):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(stdout if stdout is not None and fd == 1 else self.slave, fd)
            os.closerange(3, 1000)
            os.chdir(FOLDER)
            os.execv(argv[0], argv)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, data):
        os.write(self.master, data)

    def read_some(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def expect(self, pattern):
        """Waits until the pattern has come; what was read up to its end is taken."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.seen, re.S)
            if found:
                self.seen = self.seen[found.end():]
                return found
            if time.monotonic() > end or not self.read_some(1) and self.over():
                return re.search(pattern, self.seen, re.S)

    def over(self):
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def end(self):
        """The exit status; everything that was printed is in .seen."""
        deadline = time.monotonic() + PATIENCE
        while not self.over() and time.monotonic() < deadline:
            self.read_some(0.1)
        if not self.over():
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        while self.read_some(0):
            pass
        return os.waitstatus_to_exitcode(status)

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        os.close(self.master)
        os.close(self.slave)


def run(*argv, options=(), **how):
    return Terminal([BULKHEAD, "run", "-q", *options, "--", *argv], **how)


def finished(name, t, status):
    got = t.end()
    check("%s: status %d" % (name, status), got == status, "status %d, printed %r" % (got, t.seen[-500:]))
    check("%s: the terminal is as it was" % name, t.restored(), "%r" % (termios.tcgetattr(t.slave),))
    t.close()


def agent_of(supervisor):
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(path).read()
        except OSError:
            continue
        if "(bulkhead-agent)" in text and text.rsplit(")", 1)[1].split()[1] == str(supervisor):
            return int(path.split("/")[2])
    return None


def its_own():
    spare = [pty.openpty() for _ in range(2)]  # so that ours has a number that the box's own doesn't have
    t = run("sh", "-c", "tty; ls /dev/pts; stty size; test -t 0 && test -t 1 && test -t 2 && echo all three; for i in 1 2 3 4 5 6 7 8 9; do test -e /dev/pts/$i && echo seen $i; done; "
            "echo one; echo two")
    number = os.ttyname(t.slave)
    found = t.expect(rb"(/dev/pts/\d+)\r\n(.*?)40 100\r\n")
    check("its own terminal, the first of its own kind", found and found.group(1) == b"/dev/pts/0", t.seen)
    check("no other terminal is in its /dev/pts", found and found.group(2).split() == [b"0", b"ptmx"], found and found.group(2))
    check("the size is that of the terminal outside (40 × 100)", bool(found))
    check("standard input, output and error are the terminal", bool(t.expect(rb"all three")), t.seen)
    got = t.end()
    check("the outer terminal %s isn't there" % number, b"seen" not in t.seen, t.seen)
    check("lines end with one carriage return", b"one\r\ntwo\r\n" in t.seen and b"\r\r" not in t.seen, t.seen)
    check("status 0", got == 0, got)
    check("the terminal is as it was", t.restored())
    t.close()
    for pair in spare:
        os.close(pair[0]), os.close(pair[1])


def resizing():
    t = run("bash", "-c", "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done")
    t.expect(rb"ready")
    state = termios.tcgetattr(t.slave)
    check("while it runs the terminal is raw", not state[3] & (termios.ICANON | termios.ECHO | termios.ISIG), state)
    t.resize(50, 120)
    check("a new size arrives, with its signal", bool(t.expect(rb"50 120")), t.seen)
    finished("resize", t, 3)


def control_c():
    t = run("sh", "-c", "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done")
    t.expect(rb"ready")
    t.send(b"\x03")
    check("Ctrl-C reaches the command", bool(t.expect(rb"caught")), t.seen)
    finished("Ctrl-C", t, 7)
    t = run("sh", "-c", "echo ready; exec sleep 60")
    t.expect(rb"ready")
    t.send(b"\x03")
    finished("Ctrl-C without a handler", t, 130)
    t = run("sh", "-c", "echo ready; exec sleep 60")
    t.expect(rb"ready")
    t.send(b"\x1c")
    finished("Ctrl-\\", t, 131)


def raw_program():
    t = run("bash", "-c", "stty raw -echo; echo ready; head -c 3 | od -An -tx1; stty sane")
    t.expect(rb"ready")
    t.send(b"\x03\x1a\x04")
    check("a program that wants raw bytes gets Ctrl-C, Ctrl-Z and Ctrl-D as bytes", bool(t.expect(rb"03 1a 04")), t.seen)
    finished("raw program", t, 0)


def job_control():
    t = run("bash", "--norc", "-i", options=("--env", "PS1=$ "))
    t.expect(rb"\$ ")
    t.send(b"sleep 100\r")
    t.expect(rb"sleep 100\r\n")
    time.sleep(0.3)
    t.send(b"\x1a")
    check("Ctrl-Z stops a job inside", bool(t.expect(rb"Stopped.*\$ ")), t.seen)
    check("and not the sandbox", not t.over())
    t.send(b"jobs; echo mark\r")
    check("jobs lists it", bool(t.expect(rb"Stopped +sleep 100.*mark.*\$ ")), t.seen)
    t.send(b"fg\r")
    t.expect(rb"sleep 100")
    time.sleep(0.3)
    t.send(b"\x03")
    check("fg, then Ctrl-C ends it", bool(t.expect(rb"\$ ")), t.seen)
    t.send(b"echo status $?\r")
    check("the job was ended by the signal", bool(t.expect(rb"status 130")), t.seen)
    t.send(b"sleep 101 & wait %1; echo back\r")
    time.sleep(0.3)
    t.send(b"\x03")
    t.send(b"exit 5\r")
    finished("job control", t, 5)


def end_of_input():
    t = run("sh", "-c", "echo ready; cat; echo rest")
    t.expect(rb"ready")
    t.send(b"word\r")
    check("echo and output", bool(t.expect(rb"word\r\nword\r\n")), t.seen)
    t.send(b"\x04")
    check("Ctrl-D is the end of input", bool(t.expect(rb"rest")), t.seen)
    finished("Ctrl-D", t, 0)


def ends():
    t = run("sh", "-c", "stty raw; echo ready; exec sleep 60")
    t.expect(rb"ready")
    agent = agent_of(t.pid)
    if agent is None:
        check("the box's first process is found", False)
    else:
        os.kill(agent, signal.SIGKILL)
        got = t.end()
        check("kill -9 of the box: the supervisor ends, and not with success", got not in (0, -9), got)
        check("kill -9 of the box: the terminal is as it was", t.restored())
    t.close()
    t = run("sh", "-c", "stty raw; echo ready; exec sleep 60", options=("--timeout", "1s"))
    t.expect(rb"ready")
    finished("deadline", t, 124)
    t = run("sh", "-c", "stty raw; echo ready; exec sleep 60")
    t.expect(rb"ready")
    os.kill(t.pid, signal.SIGTERM)
    finished("SIGTERM to the supervisor", t, 143)
    t = run("sh", "-c", "echo ready; exec sleep 60")
    t.expect(rb"ready")
    ids = json.loads(subprocess.run([BULKHEAD, "ls", "--json"], capture_output=True, check=True).stdout)
    rows = ids if isinstance(ids, list) else next(v for v in ids.values() if isinstance(v, list))
    live = [r["id"] for r in rows if r.get("phase", r.get("state")) not in ("ended", "dead", None)]
    subprocess.run([BULKHEAD, "kill", *live], capture_output=True)
    got = t.end()
    check("bulkhead kill: ended, and not with success", got not in (0, -9), got)
    check("bulkhead kill: the terminal is as it was", t.restored())
    t.close()


def injection():
    code = """
import fcntl, os, termios
for name, request in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541c)):
    for fd in (0, os.open("/dev/tty", os.O_RDWR)):
        try:
            fcntl.ioctl(fd, request, b"\\x03")
            print(name, "SUCCEEDED")
        except OSError as problem:
            print(name, problem.errno)
"""
    t = run("/usr/bin/python3", "-c", code)
    got = t.end()
    check("TIOCSTI and TIOCLINUX are refused on its own terminal", t.seen.count(b" 1\r\n") == 4 and got == 0, t.seen)
    pending = struct.unpack("i", fcntl.ioctl(t.slave, termios.FIONREAD, b"\0\0\0\0"))[0]
    check("nothing waits to be read on the outer terminal", pending == 0, pending)
    t.close()


def without():
    t = run("sh", "-c", "test -t 0 || test -t 1 || echo pipes", options=("--no-tty",))
    check("--no-tty gives pipes", bool(t.expect(rb"pipes")), t.seen)
    finished("--no-tty", t, 0)
    read_end, write_end = os.pipe()
    t = run("sh", "-c", "test -t 0 || test -t 1 || echo pipes", stdout=write_end)
    os.close(write_end)
    got = t.end()
    check("output that goes elsewhere gives pipes", os.read(read_end, 100) == b"pipes\n" and got == 0, t.seen)
    os.close(read_end)
    t.close()


def shown():
    """What a box printed or named can't write to the terminal of whoever looks at it later."""
    out = subprocess.run([BULKHEAD, "run", "--json", "--", "bash", "-c", r"""printf 'a\033]0;owned\007b\n' >$'name\033[2J'; printf '\033[2Jtext\n' >text; true"""], cwd=FOLDER,
                         stdin=subprocess.DEVNULL, capture_output=True)
    box = json.loads(out.stderr.splitlines()[-1])["id"]
    for command in (["diff", box], ["diff", "--stat", box], ["diff", "--name-only", box], ["log", box], ["log", box, "--json"], ["ls"]):
        t = Terminal([BULKHEAD, *command])
        got = t.end()
        harmless = re.sub(rb"\x1b\[[0-9;]*m", b"", t.seen)  # colours of our own
        check("%s prints no control sequence of the box's" % " ".join(w for w in command if w != box), b"\x1b" not in harmless and b"\x07" not in harmless and got in (0, 1),
              "status %d, %r" % (got, t.seen[:300]))
        t.close()


for test in (its_own, resizing, control_c, raw_program, job_control, end_of_input, ends, injection, without, shown):
    try:
        test()
    except Exception as problem:  # one broken test must not hide the others
        check(test.__name__, False, repr(problem))
