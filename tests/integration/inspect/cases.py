"""The bypass table: what a program in the box says to reach what policy doesn't allow, in every spelling, through each entrance, in each protocol; and
what may be said in odd ways, with what the server must see of it. Imported inside the box (driver.py) and outside (check.py)."""
import itertools

OK = "ok"
TLS, CLEAR = 9443, 9080
MALFORMED, MISMATCH, AMBIGUOUS = "http_malformed", "http_host_mismatch", "path_ambiguous"
ROADS = [("name", "h1", True), ("name", "h2", True), ("name", "h1", False), ("connect", "h1", True), ("connect", "h2", True), ("connect", "h1", False),
         ("absolute", "h1", False)]
ODD_ROADS = [ROADS[0], ROADS[2], ROADS[3]]
H2_ROADS = [ROADS[1], ROADS[4]]


class Case:
    numbers = itertools.count(1)

    def __init__(self, label, road, parts, want, host="allowed.test", port=None, sni=None, connect=None, sees=None, silent=(), method="GET"):
        self.number = next(Case.numbers)
        self.via, self.proto, self.tls = road
        self.label, self.parts, self.host = f"{label} ({self.via}, {self.proto}{'' if self.tls else ' in the clear'})", parts, host
        self.port = port or (TLS if self.tls else CLEAR)
        self.sni = host if sni is None else sni
        self.connect, self.silent, self.method, self.sees = connect, silent, method, sees
        self.want = want if isinstance(want, list) else [str(want)]
        self.mark = f"case-{self.number}."

    def fill(self, part):
        """%C% is the mark by which a request is found in the server's log."""
        return part.replace(b"%C%", self.mark.encode()) if isinstance(part, bytes) else part.replace("%C%", self.mark)


def request(road, host="allowed.test", port=None, method="GET", path="/api/x?%C%", fields=(), body=None, authority=None):
    """One well-formed message, as the road wants it: bytes, or (fields, body) for HTTP/2."""
    via, proto, tls = road
    port = port or (TLS if tls else CLEAR)
    authority = authority if authority is not None else f"{host}:{port}"
    fields = list(fields)
    if proto == "h2":
        head = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)]
        return head + [(n.lower(), v) for n, v in fields] + ([("content-length", str(len(body)))] if body is not None else []), body
    target = f"http://{authority}{path}" if via == "absolute" else path
    lines = [f"{method} {target} HTTP/1.1", f"Host: {authority}"] + [f"{n}: {v}" for n, v in fields]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8" if any(ord(c) > 255 for c in path) else "latin-1") + (body or b"")


# path → reason, or the path that the server gets
PATHS = {
    "/": "path_not_allowed", "/other": "path_not_allowed", "/apix": "path_not_allowed", "/API/x": "path_not_allowed", "/Api/x": "path_not_allowed",
    "/%61pi/x": "/api/x", "/api": "/api", "/api/": "/api/", "/api/x/": "/api/x/", "/api/%7Ex": "/api/~x", "/api/%2bx": "/api/%2Bx", "/api/a.b": "/api/a.b",
    "/api/x.": "/api/x.", "/api/%e2%82%ac": "/api/%E2%82%AC", "/api/[x]": "/api/%5Bx%5D", "/apI/x": "path_not_allowed", "/api%20/x": "path_not_allowed",
    "/api/../secret": AMBIGUOUS, "/api/./x": AMBIGUOUS, "/api/..": AMBIGUOUS, "/api/x/../../secret": AMBIGUOUS, "/../api/x": AMBIGUOUS,
    "/api/%2e%2e/secret": AMBIGUOUS, "/api/%2E%2E/secret": AMBIGUOUS, "/api/.%2e/secret": AMBIGUOUS, "/api/%2e./secret": AMBIGUOUS,
    "/api/...": AMBIGUOUS, "/api/..%20/secret": AMBIGUOUS, "/api/%20../secret": AMBIGUOUS, "/api/..+/secret": AMBIGUOUS,
    "/api/%252e%252e/secret": AMBIGUOUS, "/api/%25252e/x": AMBIGUOUS, "/api/%252Fx": AMBIGUOUS, "/api/%25%32%65/x": AMBIGUOUS,
    "/api/%c0%ae%c0%ae/secret": AMBIGUOUS, "/api/%e0%80%ae/x": AMBIGUOUS, "/api/%c0%af../x": AMBIGUOUS, "/api/%ff": AMBIGUOUS,
    "/api/%u002e%u002e/x": AMBIGUOUS, "/api/%uff0e/x": AMBIGUOUS, "/api/%ef%bc%8e%ef%bc%8e/x": AMBIGUOUS, "/api/%ef%bc%8fx": AMBIGUOUS,
    "//api/x": AMBIGUOUS, "/api//x": AMBIGUOUS, "/api/x//": AMBIGUOUS, "/api/..//secret": AMBIGUOUS,
    "/api%2fx": AMBIGUOUS, "/api/..%2fsecret": AMBIGUOUS, "/api/x%2F..%2Fsecret": AMBIGUOUS,
    "/api\\..\\secret": AMBIGUOUS, "/api/..\\secret": AMBIGUOUS, "/api/%5c..%5csecret": AMBIGUOUS, "/api/..%5Csecret": AMBIGUOUS,
    "/api/..;/secret": AMBIGUOUS, "/api;x=1/y": AMBIGUOUS, "/api/;/secret": AMBIGUOUS, "/api/..%3b/secret": AMBIGUOUS, "/api/x;jsessionid=1": AMBIGUOUS,
    "/api/%00": AMBIGUOUS, "/api/x%00.html": AMBIGUOUS, "/api/%0d%0aX-Evil:1": AMBIGUOUS, "/api/%0a": AMBIGUOUS, "/api/%09": AMBIGUOUS, "/api/%7f": AMBIGUOUS,
    "/api/%": AMBIGUOUS, "/api/%2": AMBIGUOUS, "/api/%zz": AMBIGUOUS, "/api/%e2%80%8b": AMBIGUOUS, "/secret%3f/api/x": "path_not_allowed",
}

METHODS = {"PUT": "method_not_allowed", "DELETE": "method_not_allowed", "get": "method_not_allowed", "Post": "method_not_allowed", "HEAD": "method_not_allowed",
           "OPTIONS": "method_not_allowed", "TRACE": "method_not_allowed", "PROPFIND": "method_not_allowed", "GETT": "method_not_allowed", "X": "method_not_allowed"}

FIELDS = {
    ("X-HTTP-Method-Override", "DELETE"): "method_not_allowed", ("X-HTTP-Method", "PUT"): "method_not_allowed", ("X-Method-Override", "DELETE"): "method_not_allowed",
    ("x_http_method_override", "DELETE"): "method_not_allowed", ("X-HTTP-Method-Override", "POST"): OK, ("X-HTTP-Method-Override", "POST, DELETE"): "method_not_allowed",
    ("X-Original-URL", "/secret"): "header_not_allowed", ("X-Rewrite-URL", "/secret"): "header_not_allowed", ("X_Original_URL", "/secret"): "header_not_allowed",
}

# the authority that the request names → reason; for allowed.test
AUTHORITIES = {
    "other.test:{}": MISMATCH, "evil.test:{}": MISMATCH, "allowed.test:1": MISMATCH, "allowed.test": OK, "user@allowed.test:{}": MALFORMED, "other.test@allowed.test:{}": MALFORMED,
    "allowed.test:{}@other.test": MALFORMED, "allowed.test.:{}": OK, "ALLOWED.test:{}": OK, "allowed.test:0{}": MISMATCH, "11.2.2.2:{}": MISMATCH, "[::1]:{}": MISMATCH,
    "allowed.test:{}:80": MISMATCH, "allowed.test:{}, other.test": MALFORMED, "allowed.test%00:{}": MALFORMED, "allowed.test/x:{}": MALFORMED,
    "xallowed.test:{}": MISMATCH, "allowed.test.evil.test:{}": MISMATCH, "other.test#allowed.test:{}": MALFORMED, "": MALFORMED, "allowed.test\\.other.test:{}": MALFORMED,
}


def port_of(road):
    return TLS if road[2] else CLEAR


def paths():
    for road in ROADS:
        for path, want in PATHS.items():
            sees = want if want.startswith("/") else None
            yield Case(f"path {path}", road, [request(road, path=path + "?%C%")], OK if sees else want, sees=sees and f"GET {sees}?%C% HTTP/1.1")


def requests():
    for road in ROADS:
        for method, want in METHODS.items():
            yield Case(f"method {method}", road, [request(road, method=method)], want, method=method)
        for (name, value), want in FIELDS.items():
            yield Case(f"{name}: {value}", road, [request(road, fields=[(name, value)])], want)
        yield Case("_method in the query", road, [request(road, path="/api/x?_method=DELETE&%C%")], "method_not_allowed")
        yield Case("a fragment", road, [request(road, path="/api/x?%C%#y")], "proxy_malformed" if road[0] == "absolute" else MALFORMED)
        for host, path, fields, want in [
                ("q.wild.test", "/?team=red&%C%", [("X-Team", "red")], OK), ("q.wild.test", "/?%C%", [("X-Team", "red")], "query_not_allowed"),
                ("q.wild.test", "/?team=blue&%C%", [("X-Team", "red")], "query_not_allowed"), ("q.wild.test", "/?team=red&team=blue&%C%", [("X-Team", "red")], "query_not_allowed"),
                ("q.wild.test", "/?team=red&TEAM=blue&%C%", [("X-Team", "red")], "query_not_allowed"), ("q.wild.test", "/?team=red&team[]=blue&%C%", [("X-Team", "red")], "query_not_allowed"),
                ("q.wild.test", "/?team=red&%74eam=blue&%C%", [("X-Team", "red")], "query_not_allowed"), ("q.wild.test", "/?team=red;team=blue&%C%", [("X-Team", "red")], "query_not_allowed"),
                ("q.wild.test", "/?team=red&%C%", [], "header_not_allowed"), ("q.wild.test", "/?team=red&%C%", [("X-Team", "blue")], "header_not_allowed"),
                ("q.wild.test", "/?team=red&%C%", [("X-Team", "red"), ("X-Team", "blue")], "header_not_allowed"),
                ("q.wild.test", "/?team=red&%C%", [("X-Team", "red"), ("X_Team", "blue")], "header_not_allowed"),
                ("q.wild.test", "/?team=red&%C%", [("X-Team", "red, blue")], "header_not_allowed")]:
            yield Case(f"{path} {fields}", road, [request(road, host=host, path=path, fields=fields)], want, host=host)


def authorities():
    for road in ROADS:
        if road[0] == "absolute":
            continue
        for authority, want in AUTHORITIES.items():
            authority = authority.replace("{}", str(port_of(road)))
            yield Case(f"authority «{authority}»", road, [request(road, authority=authority)], want, sees="host" if want == OK else None)
        yield Case("another tenant in the second request", road, [request(road), request(road, host="other.test")], [OK, MISMATCH])
        yield Case("another port in the second request", road, [request(road), request(road, port=1)], [OK, MISMATCH])
        yield Case("another path in the second request", road, [request(road), request(road, path="/secret?%C%")], [OK, "path_not_allowed"])
        yield Case("allowed, refused, allowed", road, [request(road), request(road, method="PUT"), request(road)], [OK, "method_not_allowed", OK])
        if road[2]:
            yield Case("SNI of another tenant", road, [request(road)], "tls_name_mismatch", sni="other.test")
            yield Case("SNI and Host of another tenant", road, [request(road, host="other.test")], "tls_name_mismatch", sni="other.test")
            yield Case("SNI of a part", road, [request(road)], "tls_name_mismatch", sni="x.allowed.test")
            yield Case("no SNI", road, [request(road)], "tls_name_missing", sni="")
    for road in [r for r in ROADS if r[0] == "connect"]:
        port = port_of(road)
        for target, want in [(f"evil.test:{port}", "no_rule"), (f"11.2.2.2:{port}", "address_literal"), ("allowed.test:1", "port_not_allowed"),
                             (f"user@allowed.test:{port}", None), (f"allowed.test.:{port}", OK), (f"allowed.test:{port}/x", None), (f"http://allowed.test:{port}", None),
                             ("allowed.test", None), (f"allowed.test:0{port}", None)]:
            yield Case(f"CONNECT {target}", road, [request(road)], want or "proxy_malformed", connect=target.encode())
        if road[2]:
            yield Case("CONNECT to another tenant than SNI and Host", road, [request(road)], "tls_name_mismatch", connect=b"q.wild.test:%d" % port)
            yield Case("CONNECT and SNI to another tenant than Host", road, [request(road)], MISMATCH, connect=b"q.wild.test:%d" % port, sni="q.wild.test")


def raw(lines, body=b"", end=b"\r\n"):
    return end.join(lines) + end + end + body


def framing():
    """Shapes that two parsers read differently. Nothing behind the refused head is a request for anybody."""
    inner = b"GET /api/inner?%C% HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
    for road in ODD_ROADS:
        host = b"Host: allowed.test:%d" % port_of(road)
        post, get, chunked = b"POST /api/x?%C% HTTP/1.1", b"GET /api/x?%C% HTTP/1.1", b"Transfer-Encoding: chunked"
        for label, data in {
            "CL and TE": raw([post, host, b"Content-Length: 4", chunked], b"0\r\n\r\n" + inner),
            "TE and CL": raw([post, host, chunked, b"Content-Length: 4"], b"5c\r\n" + inner),
            "two Content-Length": raw([post, host, b"Content-Length: 4", b"Content-Length: 5"], b"12345"),
            "a list of Content-Length": raw([post, host, b"Content-Length: 4, 5"], b"12345"),
            "Content-Length +4": raw([post, host, b"Content-Length: +4"], b"1234"),
            "Content-Length 0x4": raw([post, host, b"Content-Length: 0x4"], b"1234"),
            "Content-Length 4 4": raw([post, host, b"Content-Length: 4 4"], b"1234"),
            "Content-Length -1": raw([post, host, b"Content-Length: -1"], b""),
            "Content-Length beyond 64 bits": raw([post, host, b"Content-Length: 18446744073709551620"], b"1234"),
            "empty Content-Length": raw([post, host, b"Content-Length:"], b"1234"),
            "TE xchunked": raw([post, host, b"Transfer-Encoding: xchunked"], b"0\r\n\r\n" + inner),
            "TE chunked, identity": raw([post, host, b"Transfer-Encoding: chunked, identity"], b"0\r\n\r\n" + inner),
            "TE identity": raw([post, host, b"Transfer-Encoding: identity"], b"0\r\n\r\n" + inner),
            "TE gzip, chunked": raw([post, host, b"Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n" + inner),
            "TE twice": raw([post, host, chunked, chunked], b"0\r\n\r\n" + inner),
            "TE chunked and identity": raw([post, host, chunked, b"Transfer-Encoding: identity"], b"0\r\n\r\n" + inner),
            "TE with a vertical tab": raw([post, host, b"Transfer-Encoding:\x0bchunked"], b"0\r\n\r\n" + inner),
            "TE with a blank in front of the colon": raw([post, host, b"Transfer-Encoding : chunked"], b"0\r\n\r\n" + inner),
            "TE in quotes": raw([post, host, b'Transfer-Encoding: "chunked"'], b"0\r\n\r\n" + inner),
            "TE in a folded line": raw([post, host, b"X: y\r\n Transfer-Encoding: chunked"], b"0\r\n\r\n" + inner),
            "TE with a folded value": raw([post, host, b"Transfer-Encoding:\r\n chunked"], b"0\r\n\r\n" + inner),
            "TE in HTTP/1.0": raw([b"POST /api/x?%C% HTTP/1.0", host, chunked], b"0\r\n\r\n" + inner),
            "Transfer_Encoding": raw([post, host, b"Transfer_Encoding: chunked", b"Content-Length: 0"], inner),
            "Content_Length": raw([post, host, b"Content_Length: 4"], inner),
            "folded first header": raw([get, b" X: y", host]),
            "folded header": raw([get, host, b"X: y", b"\tz"]),
            "bare LF": raw([get, host], end=b"\n"), "one bare LF": raw([get, host + b"\nX: y"]), "bare CR": raw([get, host, b"X: y\rEvil: z"]),
            "bare CR at the end of the head": get + b"\r\n" + host + b"\r\n\r" + b"\r\n" + inner,
            "NUL in a value": raw([get, host, b"X: y\0z"]), "NUL in the path": raw([b"GET /api/x\0?%C% HTTP/1.1", host]),
            "a blank in a name": raw([get, host, b"X Y: z"]), "no colon": raw([get, host, b"XY"]), "no name": raw([get, host, b": z"]),
            "a blank in the path": raw([b"GET /api/x?%C% /secret HTTP/1.1", host]), "a tab in the request line": raw([b"GET\t/api/x?%C% HTTP/1.1", host]),
            "two blanks": raw([b"GET  /api/x?%C% HTTP/1.1", host]), "a blank at the end of the line": raw([get + b" ", host]), "a blank in front": b" " + raw([get, host]), "an empty line in front": b"\r\n" + raw([get, host]),
            "two Host": raw([get, host, host]), "two different Host": raw([get, host, b"Host: other.test"]), "Host behind a fold": raw([get, b"X: y\r\n " + host, b"Host: other.test"]),
            "Host with a blank in front of the colon": raw([get, host, b"Host : other.test"]),
            "no Host": raw([get, b"X: y"]), "no Host in HTTP/1.0": raw([b"GET /api/x?%C% HTTP/1.0", b"X: y"]),
            "absolute form, no proxy": raw([b"GET http://allowed.test:%d/api/x?%%C%% HTTP/1.1" % port_of(road), host]),
            "absolute form of another host": raw([b"GET http://other.test/api/x?%C% HTTP/1.1", host]),
            "authority form": raw([b"CONNECT allowed.test:9443 HTTP/1.1", host, b"X: %C%"]), "CONNECT of another host": raw([b"CONNECT other.test:443 HTTP/1.1", b"Host: other.test:443", b"X: %C%"]),
            "HTTP/1.2": raw([b"GET /api/x?%C% HTTP/1.2", host]), "HTTP/2.0": raw([b"GET /api/x?%C% HTTP/2.0", host]), "http/1.1": raw([b"GET /api/x?%C% http/1.1", host]),
            "HTTP/0.9": b"GET /api/x?%C%\r\n\r\n", "HTTP/1.10": raw([b"GET /api/x?%C% HTTP/1.10", host]),
            "cleartext HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"%C%",
            "asterisk": raw([b"GET * HTTP/1.1", host, b"X: %C%"]), "no slash": raw([b"GET api/x?%C% HTTP/1.1", host]), "a scheme only": raw([b"GET http:///api/x?%C% HTTP/1.1", host]),
            "a NUL in front": b"\0" + raw([get, host]), "not HTTP": b"\x01\x02\x03%C%\r\n\r\n",
        }.items():
            yield Case(label, road, [data], WANT_FRAMING.get((label, road[2]), WANT_FRAMING.get(label, MALFORMED)))
        for label, body in {"negative chunk": b"-1\r\n\r\n", "chunk with 0x": b"0x3\r\nabc\r\n0\r\n\r\n", "chunk without an end": b"3\r\nabcX\r\n0\r\n\r\n", "chunk of 2^64": b"10000000000000003\r\nabc\r\n0\r\n\r\n",
                            "chunk with a blank": b" 3\r\nabc\r\n0\r\n\r\n", "chunk ended by LF": b"3\nabc\n0\n\n", "chunk extension": b"3;x=y\r\nabc\r\n0\r\n\r\n", "chunk extension with LF": b"3;x\ny\r\nabc\r\n0\r\n\r\n", "chunk extension with CR": b"3;x\ry\r\nabc\r\n0\r\n\r\n",
                            "Content-Length in the trailers": b"3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n", "Host in the trailers": b"3\r\nabc\r\n0\r\nHost: other.test\r\n\r\n"}.items():
            yield Case(label, road, [raw([post, host, chunked], body + inner)], "body:" + MALFORMED)
        for label, body in {"chunks": b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n", "chunk with zeros": b"0003\r\nabc\r\n04\r\ndefg\r\n00\r\n\r\n"}.items():
            yield Case(label, road, [raw([post, host, chunked], body)], OK, sees="body:abcdefg")
        pipelined = b"".join(raw([g, host]) for g in (get, b"GET /secret?%C% HTTP/1.1", get))
        yield Case("pipelined: allowed, refused, allowed", road, [pipelined, b"", b""], [OK, "path_not_allowed", OK])
        yield Case("a request behind a body", road, [raw([post, host, b"Content-Length: 3"], b"abc" + b"DELETE /api/x?%C% HTTP/1.1\r\n" + host + b"\r\n\r\n"), b""], [OK, "method_not_allowed"])
    road = ROADS[6]
    for label, line, host, want in [
            ("absolute form and another Host", b"GET http://allowed.test:9080/api/x?%C% HTTP/1.1", b"other.test", MISMATCH), ("absolute form of a tenant without a rule", b"GET http://evil.test:9080/api/x?%C% HTTP/1.1", b"evil.test:9080", "no_rule"),
            ("absolute form of a tenant without a rule, Host allowed", b"GET http://evil.test:9080/api/x?%C% HTTP/1.1", b"allowed.test:9080", MISMATCH),
            ("absolute form with a user", b"GET http://u:p@allowed.test:9080/api/x?%C% HTTP/1.1", b"allowed.test:9080", "proxy_malformed"), ("https to the proxy", b"GET https://allowed.test:9443/api/x?%C% HTTP/1.1", b"allowed.test:9443", "proxy_malformed"),
            ("ftp to the proxy", b"GET ftp://allowed.test:9080/api/x?%C% HTTP/1.1", b"allowed.test:9080", "proxy_malformed"), ("origin form to the proxy", b"GET /api/x?%C% HTTP/1.1", b"allowed.test:9080", "proxy_malformed"),
            ("absolute form by address", b"GET http://11.2.2.2:9080/api/x?%C% HTTP/1.1", b"11.2.2.2:9080", "address_literal"), ("absolute form, another port", b"GET http://allowed.test:1/api/x?%C% HTTP/1.1", b"allowed.test:1", "port_not_allowed"),
            ("absolute form, no path", b"GET http://allowed.test:9080 HTTP/1.1\r\nX: %C%", b"allowed.test:9080", "path_not_allowed"), ("absolute form, a query at once", b"GET http://allowed.test:9080?%C% HTTP/1.1", b"allowed.test:9080", "proxy_malformed"),
            ("absolute form, upper case", b"GET HTTP://ALLOWED.test:9080/api/x?%C% HTTP/1.1", b"allowed.TEST:9080", OK)]:
        yield Case(label, road, [raw([line, b"Host: " + host])], want)
    yield Case("absolute form, another tenant in the second request", road, [request(road), request(road, host="other.test")], [OK, MISMATCH])


WANT_FRAMING = {
    "HTTP/1.2": "http_version", "HTTP/2.0": "http_version", "http/1.1": MALFORMED, "HTTP/0.9": "http_version", "HTTP/1.10": "http_version", "cleartext HTTP/2": "http_version",
    ("a NUL in front", False): "protocol_mismatch", ("not HTTP", False): "protocol_mismatch", "no Host in HTTP/1.0": "http_host_missing",
}


def websocket(road, path, host="allowed.test"):
    if road[1] == "h2":
        head = [(":method", "CONNECT"), (":scheme", "https"), (":authority", f"{host}:{TLS}"), (":path", path), (":protocol", "websocket"), ("sec-websocket-version", "13")]
        def tunnel(h2, stream, case):
            h2.tunnels.add(stream)
            h2.request(stream, [(n, case.fill(v)) for n, v in head], end=False)
        return tunnel
    return request(road, host=host, path=path, fields=[("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])


def upgrades():
    for road in ROADS:
        yield Case("WebSocket to a path not allowed", road, [websocket(road, "/secret?%C%")], "path_not_allowed")
        yield Case("WebSocket through dots", road, [websocket(road, "/api/../ws?%C%")], AMBIGUOUS)
        yield Case("WebSocket", road, [websocket(road, "/ws?%C%")], OK, sees="GET /ws?%C% HTTP/1.1")
        if road[1] == "h1":
            yield Case("upgrade to h2c", road, [request(road, fields=[("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABkAAQAAP__")])], OK, sees="no upgrade")
            yield Case("upgrade to TLS", road, [request(road, fields=[("Connection", "Upgrade"), ("Upgrade", "TLS/1.0")])], OK, sees="no upgrade")
            yield Case("Connection names the host", road, [request(road, fields=[("Connection", "host, x-team"), ("X-Team", "red")])], OK)


def http2():
    def head(*more, method="GET", path="/api/x?%C%", authority=f"allowed.test:{TLS}", scheme="https"):
        return [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *more]
    get = head()
    for road in H2_ROADS:
        for label, fields in {
            "two :path": get + [(":path", "/secret?%C%")], "two :authority": get + [(":authority", "other.test")], "two :method": get + [(":method", "PUT")], "pseudo field behind a plain one": get[:3] + [("x", "y")] + get[3:],
            "unknown pseudo field": get + [(":evil", "x")], ":status in a request": get + [(":status", "200")], "upper case": get + [("X-Upper", "y")], "connection": get + [("connection", "close")], "keep-alive": get + [("keep-alive", "1")],
            "transfer-encoding": get + [("transfer-encoding", "chunked")], "upgrade": get + [("upgrade", "websocket")], "proxy-connection": get + [("proxy-connection", "close")], "te: gzip": get + [("te", "gzip")],
            "empty :path": head(path="") + [("x", "%C%")], "no :path": [f for f in get if f[0] != ":path"] + [("x", "%C%")], "no :method": [f for f in get if f[0] != ":method"], "no :scheme": [f for f in get if f[0] != ":scheme"],
            "no slash": head(path="api/x?%C%"), "absolute :path": head(path="http://other.test/api/x?%C%"), ":path with a blank": head(path="/api/x?%C% HTTP/1.1"), ":path with CR LF": head(path="/api/x?%C% HTTP/1.1\r\nHost: other.test\r\n\r\n"),
            ":method with CR LF": head(method="GET /secret HTTP/1.1\r\nX: y\r\n\r\n"), "CR LF in a value": get + [("x", "y\r\nEvil: z")], "LF in a value": get + [("x", "y\nz")], "NUL in a value": get + [("x", "y\0z")], "blank in a name": get + [("x y", "z")],
            "colon in a name": get + [("x:y", "z")], "CR LF in a name": get + [("x: y\r\nevil", "z")], "empty name": get + [("", "z")], "host of another tenant": get + [("host", "other.test")], "two host": get + [("host", f"allowed.test:{TLS}"), ("host", "other.test")],
            "scheme http": head(scheme="http"), "scheme file": head(scheme="file"), "two content-length": get + [("content-length", "0"), ("content-length", "4")], "content-length list": get + [("content-length", "0, 4")],
            "Content_Length": get + [("content_length", "4")], "content-length without a body": get + [("content-length", "4")], "CONNECT": [(":method", "CONNECT"), (":authority", "other.test:443"), ("x", "%C%")],
            "CONNECT to the same": [(":method", "CONNECT"), (":authority", f"allowed.test:{TLS}"), ("x", "%C%")], "extended CONNECT of an unknown protocol": head(method="CONNECT")[:1] + [(":protocol", "connect-udp")] + get[1:], "user in :authority": head(authority=f"u@allowed.test:{TLS}"),
        }.items():
            yield Case("h2: " + label, road, [(fields, None)], WANT_H2.get(label, MALFORMED))
        yield Case("h2: asterisk", road, [(head(("x", "%C%"), path="*"), None)], MALFORMED)
        yield Case("h2: no :authority, but host", road, [([f for f in get if f[0] != ":authority"] + [("host", f"allowed.test:{TLS}")], None)], OK)
        yield Case("h2: no :authority, host of another tenant", road, [([f for f in get if f[0] != ":authority"] + [("host", "other.test")], None)], MISMATCH)
        yield Case("h2: neither :authority nor host", road, [([f for f in get if f[0] != ":authority"], None)], MALFORMED)
        yield Case("h2: te: trailers", road, [(get + [("te", "trailers")], None)], OK)
        for label, fields, body in [("more than announced", head(("content-length", "2"), method="POST"), b"abc"), ("less than announced", head(("content-length", "4"), method="POST"), b"abc")]:
            yield Case("h2: body " + label, road, [(fields, body)], "body:" + MALFORMED)
        yield Case("h2: another tenant in stream 3", road, [(get, None), (head(authority=f"other.test:{TLS}"), None), (get, None)], [OK, MISMATCH, OK])
        yield Case("h2: another path in stream 3", road, [(get, None), (head(path="/secret?%C%"), None)], [OK, "path_not_allowed"])
        yield Case("h2: three streams at once, the second refused", road, [(get, None), (head(path="/secret?%C%"), None), (get, None)], [OK, "path_not_allowed", OK])


WANT_H2 = {"CONNECT": MALFORMED}


def swallowed():
    """Bodies that look like requests, of requests that are refused and of ones that aren't: they are bodies."""
    for road in ROADS:
        port = port_of(road)
        inner = f"GET /api/inner?%C% HTTP/1.1\r\nHost: allowed.test:{port}\r\n\r\n".encode()
        if road[1] == "h2":
            yield Case("a refused body that looks like a request", road, [request(road, method="POST", path="/secret?%C%", body=inner), request(road)], ["path_not_allowed", OK])
            continue
        refused, allowed = request(road, method="POST", path="/secret?%C%"), request(road, method="POST")
        too_large = "proxy_malformed" if road[0] == "absolute" else MALFORMED

        def sized(message, body):
            return message.replace(b"\r\n\r\n", b"\r\nContent-Length: %LENGTH%\r\n\r\n") + body
        def chunked(message, body):
            return message.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n") + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        plain = f"GET /api/inner HTTP/1.1\r\nHost: allowed.test:{port}\r\n\r\n".encode()
        length = str(len(plain)).encode()
        yield Case("a refused body that looks like a request", road, [sized(refused, plain).replace(b"%LENGTH%", length), request(road)], ["path_not_allowed", OK])
        yield Case("a refused chunked body that looks like a request", road, [chunked(refused, plain), request(road)], ["path_not_allowed", OK])
        yield Case("a body of a GET that looks like a request", road, [sized(request(road), plain).replace(b"%LENGTH%", length)], OK, sees="body:" + plain.decode())
        yield Case("a body that looks like a request", road, [sized(allowed, plain).replace(b"%LENGTH%", length)], OK, sees="body:" + plain.decode())
        yield Case("a chunked body that looks like a request", road, [chunked(allowed, plain)], OK, sees="body:" + plain.decode())
        yield Case("a WebSocket without a key", road, [request(road, path="/ws?%C%", fields=[("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")])], MALFORMED)
        yield Case("a WebSocket by POST", road, [request(road, method="POST", path="/ws?%C%", fields=[("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])], OK, sees="no upgrade")
        yield Case("a path of 20,000 bytes", road, [request(road, path="/api/" + "x" * 20000 + "?%C%")], AMBIGUOUS)
        yield Case("a header of 100,000 bytes", road, [request(road, fields=[("X-Long", "x" * 100000)])], too_large)
        yield Case("1,000 headers", road, [request(road, fields=[(f"X-{i}", "x") for i in range(1000)])], too_large)
        expecting = refused.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
        yield Case("a request where the body of a refused one was expected", road, [expecting, plain.ljust(1000) + request(road)], ["path_not_allowed", OK])


def forwarded():
    """What the server sees of odd but legal requests, to the byte."""
    for road in ROADS:
        port = port_of(road)
        where = f"Host: allowed.test:{port}"
        if road[1] == "h2":
            head = request(road)[0]
            for label, fields, lines in [
                    ("cookies in crumbs", [("cookie", "a=1"), ("cookie", "b=2")], ["cookie: a=1; b=2"]), ("two of a field", [("x-a", "1"), ("x-a", "2")], ["x-a: 1", "x-a: 2"]), ("an empty value", [("x-a", "")], ["x-a:"]),
                    ("bytes above 127", [("x-a", b"\xe9")], ["x-a: \xe9"])]:
                yield Case(label, road, [(head + fields, None)], OK, sees=["GET /api/x?%C% HTTP/1.1", where] + lines)
            continue
        target = f"http://allowed.test:{port}" if road[0] == "absolute" else ""
        start = f"GET {target}/api/x?%C% HTTP/1.1\r\n"
        for label, head, lines in [
                ("blanks around values", f"Host:\t allowed.test:{port} \t\r\nX-A:1  \r\nX-B:\t2\r\n", ["x-a: 1", "x-b: 2"]), ("names in any case", f"hOST: allowed.test:{port}\r\nX-UPPER: y\r\n", ["x-upper: y"]),
                ("Host behind others", f"X-A: 1\r\n{where}\r\n", ["x-a: 1"]), ("two cookies", f"{where}\r\nCookie: a=1\r\nCookie: b=2\r\n", ["cookie: a=1; b=2"]),
                ("what belongs to the connection", f"{where}\r\nConnection: keep-alive, X-Mine\r\nKeep-Alive: 5\r\nX-Mine: y\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nX-A: 1\r\n", ["x-a: 1"]),
                ("an empty value", f"{where}\r\nX-A:\r\n", ["x-a:"]), ("two of a field", f"{where}\r\nX-A: 1\r\nX-A: 2\r\n", ["x-a: 1", "x-a: 2"]),
                ("fields of the gate's own", f"{where}\r\nbulkhead-flow: 1\r\nX-A: 1\r\n", ["x-a: 1"])]:
            yield Case(label, road, [(start + head + "\r\n").encode("latin-1")], OK, sees=["GET /api/x?%C% HTTP/1.1", where] + lines)


def to_http2():
    """The same to a server that speaks HTTP/2."""
    host = "h2.wild.test"
    for road in ROADS[:2] + ROADS[3:5]:
        where = f"Host: {host}:{TLS}"
        for path, want in PATHS.items():
            sees = [f"GET {want}?%C% HTTP/1.1", where] if want.startswith("/") else None
            yield Case(f"to HTTP/2: path {path}", road, [request(road, host=host, path=path + "?%C%")], OK if sees else want, host=host, sees=sees)
        for method, want in METHODS.items():
            yield Case(f"to HTTP/2: method {method}", road, [request(road, host=host, method=method)], want, host=host, method=method)
        yield Case("to HTTP/2: another tenant in the second request", road, [request(road, host=host), request(road, host="allowed.test"), request(road, host=host)], [OK, MISMATCH, OK], host=host)
        yield Case("to HTTP/2: fields", road, [request(road, host=host, fields=[("Cookie", "a=1"), ("Cookie", "b=2"), ("X-Upper", " y ") if road[1] == "h1" else ("X-Upper", "y")])], OK, host=host,
                   sees=["GET /api/x?%C% HTTP/1.1", where, "cookie: a=1; b=2", "x-upper: y"])
        yield Case("to HTTP/2: a body", road, [request(road, host=host, method="POST", body=b"GET / HTTP/1.1\r\n\r\n")], OK, host=host, sees="body:GET / HTTP/1.1\r\n\r\n")
        yield Case("to HTTP/2: WebSocket to a path not allowed", road, [websocket(road, "/secret?%C%", host)], "path_not_allowed", host=host)
        yield Case("to HTTP/2: WebSocket", road, [websocket(road, "/ws?%C%", host)], OK, host=host, sees="GET /ws?%C% HTTP/1.1")


GIT = [("GET", "/acme/tools.git/info/refs?service=git-upload-pack", OK), ("POST", "/acme/tools.git/git-upload-pack", OK), ("GET", "/acme/tools/info/refs?service=git-upload-pack", OK),
       ("GET", "/acme/tools.git/info/refs?service=git-receive-pack", "push_not_allowed"), ("POST", "/acme/tools.git/git-receive-pack", "push_not_allowed"),
       ("POST", "/acme/tools.git/info/lfs/objects/batch", "push_not_allowed"), ("GET", "/acme/tools.git/git-upload-pack", "method_not_allowed"), ("PUT", "/acme/tools.git/git-receive-pack", "method_not_allowed"),
       ("GET", "/acme/tools.git/info/refs", "path_not_allowed"), ("GET", "/acme/tools.git/info/refs?service=git-upload-pack&service=git-receive-pack", "path_not_allowed"),
       ("GET", "/acme/tools.git/info/refs?service=git%2dreceive-pack", "path_not_allowed"), ("GET", "/acme/tools.git/info/refs?SERVICE=git-receive-pack", "path_not_allowed"),
       ("GET", "/acme/tools.git/HEAD", "path_not_allowed"), ("GET", "/acme/tools.git/objects/info/packs", "path_not_allowed"), ("GET", "/acme/tools", "repository_not_allowed"), ("GET", "/acme/tools/settings", "path_not_allowed"),
       ("GET", "/acme/other.git/info/refs?service=git-upload-pack", "repository_not_allowed"), ("POST", "/acme/other.git/git-upload-pack", "repository_not_allowed"),
       ("POST", "/acme/other.git/git-receive-pack", "repository_not_allowed"), ("GET", "/ACME/tools.git/info/refs?service=git-upload-pack", "repository_not_allowed"),
       ("GET", "/acme/tools.git.git/info/refs?service=git-upload-pack", "repository_not_allowed"), ("GET", "/x/acme/tools.git/info/refs?service=git-upload-pack", "repository_not_allowed"),
       ("GET", "/acme/tools.git/../other.git/info/refs?service=git-upload-pack", AMBIGUOUS), ("GET", "/acme/tools.git/%2e%2e/other.git/info/refs?service=git-upload-pack", AMBIGUOUS),
       ("GET", "/acme%2ftools.git/info/refs?service=git-upload-pack", AMBIGUOUS), ("GET", "/acme//tools.git/info/refs?service=git-upload-pack", AMBIGUOUS), ("GET", "/info/refs?service=git-upload-pack", "repository_not_allowed")]
NPM = [("GET", "/npm/hello-box", OK), ("GET", "/npm/hello-box/latest", OK), ("GET", "/npm/hello-box/-/hello-box-1.2.3.tgz", OK), ("GET", "/npm/@acme/x", OK), ("GET", "/npm/@acme%2fx", OK), ("GET", "/npm/@acme/x/-/x-1.0.0.tgz", OK),
       ("GET", "/npm/-/ping", OK), ("GET", "/npm/-/package/hello-box/dist-tags", OK), ("GET", "/npm/evil", "package_not_allowed"), ("GET", "/npm/evil/-/evil-1.0.0.tgz", "package_not_allowed"), ("GET", "/npm/@evil/x", "package_not_allowed"),
       ("GET", "/npm/@evil%2fx", "package_not_allowed"), ("GET", "/npm/HELLO-BOX", "package_not_allowed"), ("GET", "/npm/hello-box/-/evil-1.0.0.tgz", "path_not_allowed"), ("GET", "/npm/hello-box/-/hello-box-1.2.3.tgz/x", "path_not_allowed"),
       ("GET", "/npm/@acme%2f..%2fevil", AMBIGUOUS), ("GET", "/npm/hello-box/../evil", AMBIGUOUS), ("GET", "/npm/hello-box%2f..%2fevil", AMBIGUOUS), ("GET", "/hello-box", "path_not_allowed"), ("GET", "/npm", "path_not_allowed"),
       ("GET", "/npm/-/v1/search?text=x", "package_not_allowed"), ("POST", "/npm/-/npm/v1/security/audits/quick", "package_not_allowed"), ("GET", "/npm/-/npm/v1/tokens", "path_not_allowed"), ("GET", "/npm/-/package/evil/dist-tags", "package_not_allowed"),
       ("PUT", "/npm/hello-box", "method_not_allowed"), ("PUT", "/npm/evil", "method_not_allowed"), ("DELETE", "/npm/hello-box/-rev/1", "method_not_allowed"), ("PUT", "/npm/-/user/org.couchdb.user:x", "method_not_allowed"),
       ("POST", "/npm/-/npm/v1/tokens", "method_not_allowed"), ("PUT", "/npm/-/package/hello-box/dist-tags/latest", "method_not_allowed"), ("POST", "/npm/hello-box", "method_not_allowed")]
LOCKED = [("GET", "/npm/hello-box/-/hello-box-1.2.3.tgz", OK), ("GET", "/npm/hello-box", OK), ("GET", "/npm/hello-box/-/hello-box-1.2.4.tgz", "not_pinned"), ("GET", "/npm/evil", "package_not_allowed"),
          ("GET", "/npm/bad-box/-/bad-box-1.0.0.tgz", "arrived:digest_mismatch"), ("GET", "/npm/hello-box/-/hello-box-1.2.3.tgz?x=y", OK), ("GET", "/npm/hello-box/-/HELLO-BOX-1.2.3.tgz", "path_not_allowed")]
CHANGING = [("GET", "/acme/tools.git/info/refs?service=git-receive-pack", OK), ("POST", "/acme/tools.git/git-receive-pack", OK), ("POST", "/other/tools.git/git-receive-pack", "repository_not_allowed")]


def protocols():
    for road in ROADS[:2] + ROADS[3:5]:
        for host, rows in ("git.wild.test", GIT), ("push.wild.test", CHANGING), ("npm.wild.test", NPM), ("lock.wild.test", LOCKED):
            for method, path, want in rows:
                yield Case(f"{host}: {method} {path}", road, [request(road, host=host, method=method, path=path, fields=[("X-Case", "%C%")], body=b"x" if method in ("POST", "PUT") else None)], want, host=host)
        whole = [("X-Case", "%C%"), ("Range", "bytes=0-1"), ("If-None-Match", '"x"'), ("Accept-Encoding", "gzip")]
        yield Case("a part of what is pinned", road, [request(road, host="lock.wild.test", path=LOCKED[0][1], fields=whole)], OK, host="lock.wild.test", sees="whole")


def table():
    Case.numbers = itertools.count(1)
    return list(itertools.chain(paths(), requests(), authorities(), framing(), upgrades(), http2(), swallowed(), forwarded(), to_http2(), protocols()))
