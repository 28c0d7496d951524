#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In the box: clients that a library wouldn't be. `streaming.py WHAT`; says what came of it on a line each."""
import base64, os, select, socket, ssl, struct, sys, time

HOST = "allowed.test"


def connect(port=9443, protocols=("http/1.1",)):
    context = ssl.create_default_context()
    context.set_alpn_protocols(list(protocols))
    s = context.wrap_socket(socket.create_connection((HOST, port), 10), server_hostname=HOST)
    s.settimeout(20)
    return s


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.02)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


DATA, HEADERS, RST, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
AUTHORITY = b"%s:9443" % HOST.encode()
HEAD = b"\x82\x87\x84\x41" + bytes([len(AUTHORITY)]) + AUTHORITY
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)


def field(name, value):
    def text(t):
        return bytes([len(t)]) + t if len(t) < 127 else b"\x7f" + number(len(t) - 127) + t

    def number(n):
        out = b""
        while n >= 128:
            out += bytes([n % 128 + 128])
            n //= 128
        return out + bytes([n])
    return b"\x00" + text(name) + text(value)


def rapid_reset():
    for i in range(20000):
        yield frame(HEADERS, 5, 2 * i + 1, HEAD) + frame(RST, 0, 2 * i + 1, struct.pack(">I", 8))


def settings():
    for _ in range(50000):
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100))


def ping():
    for _ in range(100000):
        yield frame(PING, 0, 0, b"12345678")


def continuation():
    yield frame(HEADERS, 1, 1, HEAD)
    for _ in range(100000):
        yield frame(CONTINUATION, 0, 1, field(b"x-a", b"b" * 100))


def empty_continuation():
    yield frame(HEADERS, 1, 1, HEAD)
    for _ in range(100000):
        yield frame(CONTINUATION, 0, 1)


def header_bomb():  # one long field in the table, and then one byte for each time that it is meant
    for i in range(2000):
        value = b"v" * 3000
        added = b"\x40" + b"\x03x-b" + b"\x7f" + bytes([(len(value) - 127) % 128 + 128, (len(value) - 127) // 128]) + value
        yield frame(HEADERS, 5, 2 * i + 1, HEAD + (added if i == 0 else b"") + b"\xbe" * 12000)


def empty_data():
    yield frame(HEADERS, 4, 1, b"\x83" + HEAD[1:])
    for _ in range(100000):
        yield frame(DATA, 0, 1)


FLOODS = {f.__name__: f for f in (rapid_reset, settings, ping, continuation, empty_continuation, header_bomb, empty_data)}


def flood(name):
    """Sends until the other side has enough: says "cut"; or "not cut" when it took all."""
    s = connect(protocols=("h2",))
    s.sendall(PREFACE)
    s.settimeout(0)
    batch = b""
    frames = FLOODS[name]()
    deadline = time.monotonic() + 15
    try:
        while time.monotonic() < deadline:
            while len(batch) < 65536 and frames:
                piece = next(frames, None)
                if piece is None:
                    frames = None
                else:
                    batch += piece
            try:
                if batch:
                    batch = batch[s.send(batch):]
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                pass
            try:
                if s.recv(65536) == b"":
                    return "cut"
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            if not batch and frames is None:
                select.select([s], [], [], 0.2)
                if name in ("settings", "ping"):
                    frames = FLOODS[name]()
    except (OSError, ssl.SSLError):
        return "cut"
    return "not cut"


def stuck():
    s = connect()
    s.sendall(b"GET /stuck/1073741824 HTTP/1.1\r\nHost: allowed.test:9443\r\n\r\n")
    got = len(s.recv(1000))
    print("began", got, flush=True)
    open("/ctl/stuck", "w").close()
    wait_for("/ctl/go-on")
    want = 200 * 1024 * 1024
    while got < want:
        got += len(s.recv(1 << 20))
    print("went on")


def websocket():
    s = connect(9444)
    key = base64.b64encode(b"0123456789abcdef").decode()
    s.sendall(f"GET /ws HTTP/1.1\r\nHost: allowed.test:9444\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += s.recv(1)
    print(head.split(b"\r\n")[0].decode())
    sent = b"~" * 99 + b"\n" + bytes(range(256)) * 1000 + b"\n"  # ends with what begins no secret: nothing has to wait for more
    s.sendall(sent[:100])
    first = s.recv(100)
    got = first
    while len(got) < 100:
        got += s.recv(100)
    s.sendall(sent[100:])
    while len(got) < len(sent):
        got += s.recv(65536)
    print("echo", "same" if got == sent else "other")


def events():
    s = connect()
    s.sendall(b"GET /events HTTP/1.1\r\nHost: allowed.test:9443\r\n\r\n")
    got = b""
    while b"first" not in got:
        got += s.recv(1000)
    t = connect()
    t.sendall(b"GET /go HTTP/1.1\r\nHost: allowed.test:9443\r\n\r\n")
    while b"second" not in got:
        got += s.recv(1000)
    print("both")


def loris():
    """Many that begin and don't go on: in the TLS handshake, in a head of HTTP/1, in the preface, a frame and a head of HTTP/2."""
    kept = []
    for i in range(12):
        raw = socket.create_connection((HOST, 9443), 10)
        raw.sendall(b"\x16\x03\x01\x02\x00\x01")
        kept.append(raw)
        h1, h2 = connect(), [connect(protocols=("h2",)) for _ in range(3)]
        h1.sendall(b"GET / HTTP/1.1\r\nHost: allo")
        h2[0].sendall(PREFACE[:10])
        h2[1].sendall(PREFACE + b"\x00\x00")
        h2[2].sendall(PREFACE + frame(HEADERS, 1, 1, HEAD))
        kept += [h1] + h2
    print("kept", len(kept), flush=True)
    open("/ctl/loris", "w").close()
    wait_for("/ctl/go-on")


def idle(count):
    kept = []
    for i in range(count):
        s = socket.create_connection((HOST, 7), 20)
        s.settimeout(20)
        s.sendall(b"x\n")
        kept.append(s)
    answered = sum(s.recv(2) == b"x\n" for s in kept)
    print("idle", answered, flush=True)
    open("/ctl/idle", "w").close()
    wait_for("/ctl/go-on")
    kept[0].sendall(b"y\n")
    kept[-1].sendall(b"z\n")
    print("alive", kept[0].recv(2) + kept[-1].recv(2))


what = sys.argv[1]
if what == "flood":
    for name in sys.argv[2:]:
        print(name, flood(name), flush=True)
elif what == "idle":
    idle(int(sys.argv[2]))
else:
    {"stuck": stuck, "websocket": websocket, "events": events, "loris": loris}[what]()
