"""Runs inside the box: the bytes of HTTP/1 and HTTP/2, written by hand so that they can be wrong, and what is heard in answer."""
import socket, ssl, struct

import hpack

WAIT = 8
PROXY = ("127.0.0.1", 3128)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Gone(Exception):
    """The connection ended before an answer: "alert", "closed", "reset" or "timeout"."""


class Connection:
    """One flow of the gate: through the proxy with CONNECT, to the proxy as it is, or to the address of the name."""

    def __init__(self, via, host, port, tls, sni, alpn, connect=None):
        self.data = b""
        self.sock = self.raw = socket.create_connection(PROXY if via != "name" else (host, port), WAIT)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if via == "connect":
            target = connect or f"{host}:{port}".encode()
            self.send(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target))
            status, fields, _ = self.response("CONNECT")
            if status != 200:
                raise Refused(status, fields.get("bulkhead-reason"))
        if tls:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.set_alpn_protocols([alpn])
            try:
                self.sock = context.wrap_socket(self.sock, server_hostname=sni or None)
            except ssl.SSLError as problem:
                raise Gone("alert" if "ALERT" in str(problem) else "closed " + str(problem))
            except OSError:
                raise Gone("closed")

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            pass  # the other side may refuse before it has heard all

    def more(self):
        try:
            data = self.sock.recv(65536)
        except socket.timeout:
            raise Gone("timeout")
        except ssl.SSLEOFError:
            raise Gone("closed")
        except ssl.SSLError as problem:
            raise Gone("alert" if "ALERT" in str(problem) else "closed")
        except OSError:
            raise Gone("reset")
        if not data:
            raise Gone("closed")
        self.data += data

    def until(self, end):
        while end not in self.data:
            self.more()
        head, _, self.data = self.data.partition(end)
        return head

    def take(self, n):
        while len(self.data) < n:
            self.more()
        taken, self.data = self.data[:n], self.data[n:]
        return taken

    def response(self, method="GET"):
        """(status, fields, body) of the next final answer."""
        while True:
            lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
            fields = {l.partition(":")[0].lower(): l.partition(":")[2].strip() for l in lines[1:]}
            if status == 101 or status >= 200:
                break
        body = b""
        if method == "HEAD" or status in (101, 204, 304) or method == "CONNECT" and status == 200:
            pass
        elif "transfer-encoding" in fields:
            while True:
                size = int(self.until(b"\r\n"), 16)
                body += self.take(size)
                self.take(2)
                if size == 0:
                    break
        else:
            body = self.take(int(fields.get("content-length", 0)))
        return status, fields, body

    def close(self):
        self.sock.close()


class Refused(Exception):
    """CONNECT was refused: status, reason."""


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


class H2:
    def __init__(self, connection):
        self.c, self.encoder, self.decoder = connection, hpack.Encoder(), hpack.Decoder()
        self.answers, self.ended, self.body, self.tunnels = {}, {}, {}, set()
        self.c.send(PREFACE + frame(SETTINGS, 0, 0) + frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30)))

    def block(self, fields):
        """Literals without indexing: what is sent is what stands here."""
        return self.encoder.encode([hpack.NeverIndexedHeaderTuple(n, v) for n, v in fields], huffman=False)

    def request(self, stream, fields, body=None, end=True):
        self.c.send(frame(HEADERS, END_HEADERS | (END_STREAM if body is None and end else 0), stream, self.block(fields)))
        if body is not None:
            self.c.send(frame(DATA, END_STREAM if end else 0, stream, body))

    def step(self):
        """Takes one frame."""
        head = self.c.take(9)
        size, kind, flags, of = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
        payload = self.c.take(size)
        if kind == SETTINGS and not flags & ACK:
            self.c.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.c.send(frame(PING, ACK, 0, payload))
        elif kind == HEADERS:
            fields = dict((str(n), str(v)) for n, v in self.decoder.decode(payload))
            if not fields.get(":status", "").startswith("1"):
                self.answers.setdefault(of, fields)
        elif kind == DATA:
            self.body[of] = self.body.get(of, b"") + payload
            if payload:
                self.c.send(frame(WINDOW, 0, of, struct.pack(">I", len(payload))))
        elif kind == RST:
            self.ended.setdefault(of, f"reset {int.from_bytes(payload[:4], 'big')}")
        elif kind == GOAWAY and int.from_bytes(payload[4:8], "big"):
            raise Gone(f"goaway {int.from_bytes(payload[4:8], 'big')}")
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.ended.setdefault(of, "end")

    def wait(self, stream):
        """(status, fields, body), or Gone("reset CODE" or "goaway CODE")."""
        while stream not in self.ended and not (stream in self.tunnels and stream in self.answers):
            self.step()
        if stream not in self.answers:
            raise Gone(self.ended[stream])
        fields = self.answers[stream]
        return int(fields[":status"]), fields, self.body.get(stream, b"")
