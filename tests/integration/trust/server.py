#!/usr/bin/env python3
"""server.py FOLDER: one HTTPS server on loopback with four certificates, chosen by the name asked for; prints PORT= and READY.
valid.test has a good one of the folder's own authority (ca.pem); expired.test, wrong.test and unknown.test have what their names say. The files of FOLDER/files are
served."""
import datetime, functools, http.server, os, ssl, subprocess, sys

FOLDER = sys.argv[1]


def run(*argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=FOLDER)


def authority(name):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", name + ".key", "-out", name + ".pem",
        "-subj", "/CN=Trust test " + name, "-addext", "keyUsage=critical,keyCertSign,cRLSign")


def leaf(host, of, ca="ca", expired=False):
    open(os.path.join(FOLDER, host + ".cnf"), "w").write(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={host}.index\nserial={host}.serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\ncopy_extensions=none\n[p]\ncommonName=supplied\n"
        f"[x]\nsubjectAltName=DNS:{of}\nextendedKeyUsage=serverAuth\nkeyUsage=digitalSignature\nbasicConstraints=CA:FALSE\nsubjectKeyIdentifier=hash\n"
        "authorityKeyIdentifier=keyid\n")
    open(os.path.join(FOLDER, host + ".index"), "w")
    open(os.path.join(FOLDER, host + ".serial"), "w").write("01\n")
    now = datetime.datetime.now(datetime.timezone.utc)
    times = [(now + datetime.timedelta(days=d)).strftime("%Y%m%d%H%M%SZ") for d in ((-3, -1) if expired else (-1, 1))]
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", host + ".key", "-out", host + ".csr", "-subj", "/CN=" + of)
    run("openssl", "ca", "-batch", "-notext", "-config", host + ".cnf", "-extensions", "x", "-cert", ca + ".pem", "-keyfile", ca + ".key", "-in", host + ".csr",
        "-out", host + ".pem", "-startdate", times[0], "-enddate", times[1])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, host + ".pem"), os.path.join(FOLDER, host + ".key"))
    return context


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


authority("ca")
authority("other")
contexts = {"valid.test": leaf("valid.test", "valid.test"), "expired.test": leaf("expired.test", "expired.test", expired=True),
            "wrong.test": leaf("wrong.test", "somebody.else.test"), "unknown.test": leaf("unknown.test", "unknown.test", ca="other")}
default = contexts["valid.test"]


def choose(sock, name, context):
    sock.context = contexts.get(name, default)


default.sni_callback = choose
server = Server(("127.0.0.1", 0), functools.partial(Handler, directory=os.path.join(FOLDER, "files")))
server.socket = default.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("PORT=%d\nREADY" % server.server_address[1], flush=True)
server.serve_forever()
