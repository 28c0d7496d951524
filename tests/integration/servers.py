#!/usr/bin/env python3
"""Local servers for the integration suites, all on loopback, ended with the suite.

servers.py FOLDER [--internet ADDRESS] [NAME=ADDRESS[,ADDRESS…][/ADDRESS…] …]
  With --internet they listen on every address of their network namespace at the well-known ports (DNS at 53 of ADDRESS, HTTP 80 and 8080,
  HTTPS 443 and 8443, ECHO 7, SINK 9, FIRST 22), else on loopback at free ports, which are printed.
  DNS    UDP and TCP; names given on the command line (a comma: several addresses at once; a slash: the next answer, and so on by turns), every
         other name below .test is 127.0.0.1 and ::1; logs "dns NAME TYPE"
  HTTP   answers any request with a JSON description of what arrived; logs "http METHOD PATH HOST"; /big/N sends N bytes; /echo returns the body;
         /ws accepts an upgrade to websocket and echoes; /files/PATH is FOLDER/files/PATH; /git/PATH is git's own server for FOLDER/git/PATH
  HTTPS  the same with a certificate of the folder's own CA for *.test names and 127.0.0.1; logs "https …" with the server name asked for
  ECHO   raw TCP echo; logs "echo connect"
  SINK   reads to the end; logs "sink BYTES"
  FIRST  raw TCP that speaks first ("220 hello\\r\\n"), then echoes
"""
import collections, http.server, json, os, socket, ssl, struct, subprocess, sys, threading, urllib.parse

FOLDER, ARGUMENTS = sys.argv[1], sys.argv[2:]
INTERNET = ARGUMENTS[1] if ARGUMENTS[:1] == ["--internet"] else None
NAMES = dict(a.lower().split("=", 1) for a in ARGUMENTS[2 if INTERNET else 0:])
ASKED = collections.Counter()
LOG = open(os.path.join(FOLDER, "log"), "a", buffering=1)


def log(*words):
    LOG.write(" ".join(str(w) for w in words) + "\n")


def make_certificates():
    def run(*argv):
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=FOLDER)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj",
        "/CN=Test CA")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server.test")
    names = ["DNS:*.test", "DNS:*.allowed.test", "DNS:allowed.test", "DNS:*.wild.test", "DNS:*.b.wild.test", "DNS:localhost", "IP:127.0.0.1"]
    open(os.path.join(FOLDER, "ext"), "w").write("subjectAltName=" + ",".join(names) + "\n")
    run("openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "server.pem")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def any(self):
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        log(scheme, self.command, self.path, self.headers.get("Host"))
        body = b""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/files/"):
            self.answer_file()
            return
        if self.path.startswith("/git/"):
            self.answer_git(body)
            return
        if self.path == "/ws" and self.headers.get("Upgrade"):
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            for data in iter(lambda: self.connection.recv(65536), b""):
                self.connection.sendall(data)
            self.close_connection = True
            return
        if self.path.startswith("/big/"):
            size = int(self.path.split("/")[2])
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            block = b"\0" * 65536
            while size > 0:
                self.wfile.write(block[:min(size, 65536)])
                size -= 65536
            return
        if self.path == "/echo":
            answer = body
        else:
            answer = json.dumps({"method": self.command, "path": self.path, "headers": list(self.headers.items()), "body": body.decode("latin-1")}).encode()
        self.answer(200, [], answer)

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_file(self):
        path = os.path.normpath(FOLDER + urllib.parse.unquote(self.path.split("?")[0]))
        if os.path.isdir(path):
            path = os.path.join(path, "index.html")
        if path.startswith(FOLDER + "/files/") and os.path.isfile(path):
            kind = "text/html" if path.endswith(".html") else "application/json" if "." not in os.path.basename(path) else "application/octet-stream"
            self.answer(200, [("Content-Type", kind)], open(path, "rb").read())
        else:
            self.answer(404, [], b"")

    def answer_git(self, body):
        path, _, query = self.path.partition("?")
        environment = {"GIT_PROJECT_ROOT": FOLDER + "/git", "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path[len("/git"):], "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                       "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                       "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "PATH": os.environ["PATH"], "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
                       "GIT_CONFIG_VALUE_0": "*", "REMOTE_USER": "tester"}
        said = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True).stdout
        head, _, answer = said.partition(b"\r\n\r\n")
        headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n") if ": " in line]
        status = dict(headers).get("Status", "200").split(" ")[0]
        self.answer(int(status), [h for h in headers if h[0] != "Status"], answer)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = any

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def addresses_of(name, kind):
    """The addresses of one family, or None when the name doesn't exist."""
    listed = NAMES.get(name)
    if listed is None:
        return {1: ["127.0.0.1"], 28: ["::1"]}.get(kind, []) if name.endswith(".test") else None
    turns = listed.split("/")
    ASKED[name, kind] += 1
    now = turns[(ASKED[name, kind] - 1) % len(turns)].split(",")
    return [a for a in now if a and kind == (28 if ":" in a else 1)]


def dns_reply(query):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    name = ".".join(labels).lower()
    log("dns", name, {1: "A", 28: "AAAA"}.get(kind, kind))
    found = addresses_of(name, kind)
    packed = [socket.inet_pton(socket.AF_INET6 if kind == 28 else socket.AF_INET, a) for a in found or []]
    answers = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 1, len(data)) + data for data in packed)
    return query[:2] + struct.pack(">HHHHH", 0x8183 if found is None else 0x8180, 1, len(packed), 0, 0) + query[12:at + 5] + answers


def dns_udp(sock):
    while True:
        try:
            query, peer = sock.recvfrom(4096)
            sock.sendto(dns_reply(query), peer)
        except (IndexError, struct.error, OSError):
            pass


def dns_tcp(conn):
    try:
        size = struct.unpack(">H", conn.recv(2))[0]
        reply = dns_reply(conn.recv(size))
        conn.sendall(struct.pack(">H", len(reply)) + reply)
    except (IndexError, struct.error, OSError):
        pass
    conn.close()


def echo(conn, greeting):
    log("echo connect" if not greeting else "first connect")
    try:
        if greeting:
            conn.sendall(greeting)
        while True:
            data = conn.recv(65536)
            if not data:
                break
            log("echo bytes", len(data))
            conn.sendall(data)
        conn.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    conn.close()


def sink(conn):
    total = 0
    try:
        for data in iter(lambda: conn.recv(65536), b""):
            total += len(data)
    except OSError:
        pass
    log("sink", total)
    conn.close()


def serve(listener, handler, *more):
    def loop():
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                continue
            threading.Thread(target=handler, args=(conn,) + more, daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()
    return listener.getsockname()[1]


def listen(port):
    """A listening socket: the port everywhere with --internet, else any port of loopback."""
    if INTERNET:
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
    return socket.create_server(("127.0.0.1", 0), backlog=512)


def serve_http(port, context):
    server = Server(("", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listen(port)
    server.server_port = server.socket.getsockname()[1]
    server.server_name = "server.test"
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def serve_dns():
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((INTERNET, 53) if INTERNET else ("127.0.0.1", 0))
    threading.Thread(target=dns_udp, args=(udp,), daemon=True).start()
    serve(socket.create_server(udp.getsockname()), dns_tcp)
    return udp.getsockname()[1]


def main():
    make_certificates()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"), os.path.join(FOLDER, "server.key"))
    context.sni_callback = lambda sock, name, ctx: log("sni", name)
    print("DNS_PORT=%d" % serve_dns())
    print("HTTP_PORT=%d" % serve_http(80, None))
    print("HTTPS_PORT=%d" % serve_http(443, context))
    print("ECHO_PORT=%d" % serve(listen(7), echo, b""))
    print("SINK_PORT=%d" % serve(listen(9), sink))
    print("FIRST_PORT=%d" % serve(listen(22), echo, b"220 hello\r\n"))
    if INTERNET:
        serve_http(8080, None)
        serve_http(8443, context)
    print("CA=%s" % os.path.join(FOLDER, "ca.pem"))
    print("READY", flush=True)
    threading.Event().wait()


main()
