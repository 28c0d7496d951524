#!/usr/bin/env python3
"""The servers that inspected requests are meant for: origin.py FOLDER [NAME…] listens with TLS at 9443 and in the clear at 9080, and writes every
byte down: one JSON line a request into FOLDER/seen, {"tls", "sni", "head", "body"}, and what came behind a request's end as {"rest"}.
/…/big/N answers with N bytes, /…/slow/SECONDS one byte now and the rest then, /ws takes an upgrade and echoes, everything else a few words."""
import base64, hashlib, json, os, socket, ssl, sys, threading, time

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


def serve(sock, context):
    try:
        if context:
            sock = context.wrap_socket(sock, server_side=True)
        reader = Reader(sock)
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


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
listen(9443, context)
listen(9080, None)
print("READY", flush=True)
threading.Event().wait()
