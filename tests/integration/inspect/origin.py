#!/usr/bin/env python3
"""The servers that inspected requests are meant for: origin.py FOLDER [NAME…] listens with TLS at 9443 and in the clear at 9080, and writes every
byte down: one JSON line a request into FOLDER/seen, {"tls", "sni", "head", "body"}, and what came behind a request's end as {"rest"}.
/…/big/N answers with N bytes, /…/slow/SECONDS one byte now and the rest then, /ws takes an upgrade and echoes, everything else a few words. For h2.wild.test it speaks HTTP/2, and writes heads down as HTTP/1 has them."""
import base64, hashlib, json, os, socket, ssl, struct, sys, threading, time

import hpack

from wire import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS, WINDOW, frame

folder = sys.argv[1]
seen = open(os.path.join(folder, "seen"), "a", buffering=1)
lock = threading.Lock()


def note(**what):
    with lock:
        seen.write(json.dumps(what) + "\n")


class Reader:
    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        self.data += data

    def until(self, end):
        while end not in self.data:
            self.more()
        head, _, self.data = self.data.partition(end)
        return head + end

    def take(self, n):
        while len(self.data) < n:
            self.more()
        taken, self.data = self.data[:n], self.data[n:]
        return taken


def read_body(reader, fields):
    if "transfer-encoding" in fields:
        body = b""
        while True:
            size = int(reader.until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                while reader.until(b"\r\n") != b"\r\n":
                    pass
                return body
            body += reader.take(size)
            reader.take(2)
    return reader.take(int(fields.get("content-length", 0)))


def answer(sock, path):
    parts = path.split("?")[0].split("/")
    if parts[2:3] == ["big"]:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % int(parts[3]) + b"x" * int(parts[3]))
    elif parts[2:3] == ["slow"]:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1")
        time.sleep(float(parts[3]))
        sock.sendall(b"234")
    else:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")


def head_as_text(fields):
    pseudo = {n: v for n, v in fields if n.startswith(":")}
    lines = [f"{pseudo[':method']} {pseudo[':path']} HTTP/1.1", f"Host: {pseudo[':authority']}"] + [f"{n}: {v}" for n, v in fields if not n.startswith(":")]
    return "\r\n".join(lines) + "\r\n\r\n"


def serve_h2(sock, reader):
    decoder, encoder, heads, bodies = hpack.Decoder(), hpack.Encoder(), {}, {}
    reader.take(len(PREFACE))
    sock.sendall(frame(SETTINGS, 0, 0))
    while True:
        head = reader.take(9)
        size, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
        payload = reader.take(size)
        if kind == SETTINGS and not flags & ACK:
            sock.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            sock.sendall(frame(PING, ACK, 0, payload))
        elif kind == HEADERS:
            heads.setdefault(stream, head_as_text([(n.decode("latin-1"), v.decode("latin-1")) for n, v in decoder.decode(payload[5:] if flags & 0x20 else payload, raw=True)]))
        elif kind == DATA:
            bodies[stream] = bodies.get(stream, b"") + payload
            if payload:
                sock.sendall(frame(WINDOW, 0, 0, struct.pack(">I", len(payload))) + frame(WINDOW, 0, stream, struct.pack(">I", len(payload))))
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            note(tls=True, version=2, head=heads[stream], body=bodies.pop(stream, b"").decode("latin-1"))
            sock.sendall(frame(HEADERS, END_HEADERS, stream, encoder.encode([(":status", "200"), ("content-length", "3")])) + frame(DATA, END_STREAM, stream, b"ok\n"))


def serve(sock, context):
    try:
        if context:
            sock = context.wrap_socket(sock, server_side=True)
        reader = Reader(sock)
        if context and sock.selected_alpn_protocol() == "h2":
            serve_h2(sock, reader)
        while True:
            head = reader.until(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            fields = {l.partition(":")[0].lower(): l.partition(":")[2].strip() for l in lines[1:] if l}
            if fields.get("upgrade"):
                note(tls=bool(context), head=head.decode("latin-1"), body="")
                key = hashlib.sha1((fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
                sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + base64.b64encode(key) + b"\r\n\r\n")
                while True:
                    reader.more()
                    note(rest=reader.data.decode("latin-1"))
                    sock.sendall(reader.take(len(reader.data)))
            if fields.get("expect"):
                sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            try:
                body = read_body(reader, fields)
            except EOFError:
                note(tls=bool(context), head=head.decode("latin-1"), body=None, rest=reader.data.decode("latin-1"))
                return
            note(tls=bool(context), head=head.decode("latin-1"), body=body.decode("latin-1"))
            answer(sock, lines[0].split(" ")[1])
    except (OSError, EOFError, ValueError, IndexError) as problem:
        if "reader" in locals() and reader.data:
            note(rest=reader.data.decode("latin-1"), problem=str(problem))
    finally:
        sock.close()


def listen(port, context):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
    def loop():
        while True:
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(sock, context), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def tls_context(alpn):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
    context.set_alpn_protocols(alpn)
    return context


def choose(sock, name, _):
    if name == "h2.wild.test":
        sock.context = newer


context, newer = tls_context(["http/1.1"]), tls_context(["h2", "http/1.1"])
context.sni_callback = choose
listen(9443, context)
listen(9080, None)
print("READY", flush=True)
threading.Event().wait()
