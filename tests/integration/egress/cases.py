"""What the box tries, and what must come of it. Read by probe.py inside the box and by check.py outside: both see the same list in the same order.

A case goes through one entrance:
  name, name6     the host is looked up as programs do, and its synthetic address (IPv4, IPv6) connected to
  proxy, proxy6   the proxy at 127.0.0.1 and ::1
  address         a literal address is connected to
  dns, dnstcp, dns6   a question to the box's name server
  do              a function of probe.py
`connect` asks the proxy for a tunnel first; `say` is then sent: bytes, pauses in seconds, EOF. %PATH% is a path of this case alone, by which the
servers' log is searched.

`want` is the answer: 403 (with `reason` in header and body), 502, alert (TLS), closed, server (the real server answered), refused, unreachable,
open, or for DNS: synthetic, box, empty, silence, or a response code. `reason` is what the record must say, None: no denial.
`reach` is how many requests the HTTP servers see; `late`: the head of the request may be there before the rest of it is refused.
"""
import spellings
from hello import hello, record
from spellings import ADDRESSES, ALLOWED, ANSWERS, BAD, BROKEN, FOREIGN, NAMES, SECRET

EOF = "EOF"
HTTP_OK = "GET %PATH% HTTP/1.1\r\nHost: allowed.test\r\n\r\n"


class Case:
    def __init__(self, title, via, want, reason=None, host="allowed.test", port=80, connect=None, say=(), reach=None, name=None, lacks=(), echo=None,
                 args=(), late=False):
        self.title, self.via, self.want, self.reason, self.host, self.port = title, via, want, reason, host, port
        self.connect, self.say, self.lacks, self.echo, self.args, self.late = connect, [raw(s) for s in say], lacks, echo, args, late
        self.name = name                                                  # (name, reason) that the record must have
        self.reach = reach if reach is not None else 0


def raw(x):
    return x.encode("utf-8") if isinstance(x, str) and x != EOF else x


def joined(*parts):
    return b"".join(raw(p) for p in parts)


# ---- names: each spelling in each place where a name can be said ----

def name_reason(kind, special, place):
    if place in special:
        return special[place]
    group = "host" if place in ("fhost", "chost") else "sni" if place == "csni" else place
    if group in special:
        return special[group]
    table = {
        ALLOWED: dict(dns="synthetic", connect=None, forward=None, host=None, sni=None),
        FOREIGN: dict(dns="nxdomain", connect="no_rule", forward="no_rule", host="http_host_mismatch", sni="tls_name_mismatch"),
        BAD: dict(dns="refused", connect="bad_name", forward="bad_name", host="http_host_mismatch", sni="tls_name_mismatch"),
        BROKEN: dict(dns="refused", connect="proxy_malformed", forward="proxy_malformed", host="http_malformed", sni="tls_name_mismatch"),
    }
    return table[kind][group]


def names():
    for title, spelling, kind, *rest in NAMES:
        special = rest[0] if rest else {}
        s = raw(spelling)
        other = b"allowed.test" if kind != ALLOWED else s.lower().rstrip(b".")
        connect_to = other.decode() if kind == ALLOWED else "allowed.test"

        dns = name_reason(kind, special, "dns")
        recorded = (s.decode().lower().rstrip("."), "no_rule" if kind != ALLOWED else "allowed") if dns in ("nxdomain", "synthetic") and kind in (ALLOWED, FOREIGN) else None
        for via in ("dns", "dnstcp", "dns6"):
            yield Case(f"name in DNS ({via}): {title}", via, dns, host=s, args=("A",), name=recorded)

        reason = name_reason(kind, special, "connect")
        yield Case(f"name in CONNECT: {title}", "proxy", "403" if reason else "server", reason, reach=0 if reason else 1, say=[
            joined("CONNECT ", s, ":80 HTTP/1.1\r\n\r\n")] + ([] if reason else [joined("GET %PATH% HTTP/1.1\r\nHost: ", s, "\r\n\r\n")]))
        reason = name_reason(kind, special, "forward")
        yield Case(f"name in absolute-form: {title}", "proxy", "403" if reason else "server", reason, reach=0 if reason else 1, say=[
            joined("GET http://", s, "%PATH% HTTP/1.1\r\nHost: ", s, "\r\n\r\n")])
        for place, how in (("host", dict(via="name")), ("chost", dict(via="proxy", connect=connect_to + ":80")), ("fhost", dict(via="proxy"))):
            reason = name_reason(kind, special, place)
            if place == "fhost" and reason == "http_malformed":
                reason = "proxy_malformed"
            target = "http://" + connect_to if place == "fhost" else ""
            label = {"host": "transparent", "chost": "in a tunnel", "fhost": "absolute-form"}[place]
            yield Case(f"name in Host ({label}): {title}", want="403" if reason else "server", reason=reason, reach=0 if reason else 1, host=connect_to,
                       say=[joined("GET ", target, "%PATH% HTTP/1.1\r\nHost: ", s, "\r\n\r\n")], **how)
        for place, how in (("sni", dict(via="name")), ("csni", dict(via="proxy", connect=connect_to + ":443"))):
            reason = name_reason(kind, special, place)
            yield Case(f"name in SNI ({'transparent' if place == 'sni' else 'in a tunnel'}): {title}", want="alert" if reason else "server", reason=reason,
                       host=connect_to, port=443, say=[hello(s)], **how)


# ---- addresses ----

def addresses():
    for text, reason in ADDRESSES:
        bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        for via in ("proxy", "proxy6"):
            yield Case(f"address in CONNECT ({via}): {text!r}", via, "403", reason, say=[f"CONNECT {text}:443 HTTP/1.1\r\nHost: {text}:443\r\n\r\n"])
        yield Case(f"address in absolute-form: {text!r}", "proxy", "403", reason, say=[f"GET http://{text}%PATH% HTTP/1.1\r\nHost: {text}\r\n\r\n"])
        host = "http_malformed" if "\0" in text else "http_host_mismatch"
        yield Case(f"address in Host: {text!r}", "name", "403", host, say=[f"GET %PATH% HTTP/1.1\r\nHost: {text}\r\n\r\n"])
        yield Case(f"address in SNI: {text!r}", "name", "alert", "tls_name_mismatch" if bare else "tls_malformed", port=443, say=[hello(raw(bare))])
        if "\0" not in text and text not in ("198.18.0.1", "[fd00:b011:4ead::1]"):  # these are the entrance of an allowed name
            for port in (53, 80, 443):
                yield Case(f"address connected to, port {port}: {text!r}", "do", "nowhere", host=bare, port=port, args=("dial",))


# ---- answers of a hostile name server for names that are allowed ----

def answers():
    for i, (answer, reason) in enumerate(ANSWERS):
        host = f"r{i}.rebind.test"
        get = f"GET %PATH% HTTP/1.1\r\nHost: {host}\r\n\r\n"
        yield Case(f"answer {answer}, CONNECT", "proxy", "403", reason, say=[f"CONNECT {host}:443 HTTP/1.1\r\n\r\n"])
        yield Case(f"answer {answer}, absolute-form", "proxy6", "403", reason, say=[get.replace("%PATH%", f"http://{host}%PATH%")])
        yield Case(f"answer {answer}, transparent HTTP", "name", "403", reason, host=host, say=[get])
        yield Case(f"answer {answer}, transparent TLS", "name6", "alert", reason, host=host, port=443, say=[hello(raw(host))])
        yield Case(f"answer {answer}, transparent, silent client", "name", "closed", reason, host=host, port=7, say=[EOF])
    for via, connect in (("name", None), ("name6", None), ("proxy", "mixed.rebind.test:80")):
        yield Case(f"a public address among forbidden ones is the one dialled ({via})", via, "server", host="mixed.rebind.test", connect=connect, reach=1,
                   say=["GET %PATH% HTTP/1.1\r\nHost: mixed.rebind.test\r\n\r\n"])
    yield Case("an answer that changes: first public", "name", "server", host="turns.rebind.test", reach=1, say=["GET %PATH% HTTP/1.1\r\nHost: turns.rebind.test\r\n\r\n"])
    yield Case("time passes", "do", "open", args=("sleep", 1.2))
    yield Case("an answer that changes: then loopback", "name", "403", "address_loopback", host="turns.rebind.test",
               say=["GET %PATH% HTTP/1.1\r\nHost: turns.rebind.test\r\n\r\n"])
    for via, connect in (("name", None), ("proxy", "inside.private.test:80")):
        yield Case(f"private: true opens a private address by name ({via})", via, "server", host="inside.private.test", connect=connect, reach=1,
                   say=["GET %PATH% HTTP/1.1\r\nHost: inside.private.test\r\n\r\n"])
        yield Case(f"but never metadata by name ({via})", via, "403", "address_metadata", host="meta.private.test",
                   say=[("CONNECT meta.private.test:80" if connect else "GET /") + " HTTP/1.1\r\nHost: meta.private.test\r\n\r\n"])
        yield Case(f"nor 0.0.0.0 ({via})", via, "403", "address_loopback", host="zero.private.test",
                   say=[("CONNECT zero.private.test:80" if connect else "GET /") + " HTTP/1.1\r\nHost: zero.private.test\r\n\r\n"])
    for via in ("name", "proxy"):
        say = "CONNECT gone.rebind.test:80 HTTP/1.1\r\n\r\n" if via == "proxy" else "GET / HTTP/1.1\r\nHost: gone.rebind.test\r\n\r\n"
        yield Case(f"an allowed name without addresses is a failure, not a denial ({via})", via, "502", None, host="gone.rebind.test", say=[say])


# ---- TLS ----

RIGHT = b"allowed.test"
TLS = [
    ("as it should be", [hello(RIGHT)], None),
    ("upper case", [hello(b"ALLOWED.TEST")], None),
    ("trailing dot", [hello(b"allowed.test.")], None),
    ("name in the second record", [hello(RIGHT, split=[60])], None),
    ("records of one byte", [hello(RIGHT, split=range(1, 120))], None),
    ("byte by byte", [bytes([b]) for b in hello(RIGHT)], None),
    ("record by record, with pauses", [hello(RIGHT)[:3], 0.1, hello(RIGHT)[3:90], 0.1, hello(RIGHT)[90:]], None),
    ("hello of 12 kB", [hello(RIGHT, padding=12000)], None),
    ("encrypted hello beside the right name", [hello(RIGHT, extensions=[(0xfe0d, b"\0" * 40)])], None),
    ("no SNI", [hello(None)], "tls_name_missing"),
    ("no extensions at all", [hello(None, bare=True)], "tls_name_missing"),
    ("encrypted hello without a name", [hello(None, extensions=[(0xfe0d, b"\0" * 40)])], "tls_name_missing"),
    ("another name", [hello(b"evil.test")], "tls_name_mismatch"),
    ("another allowed name", [hello(b"other.test")], "tls_name_mismatch"),
    ("another name, in the second record", [hello(b"evil.test", split=[60])], "tls_name_mismatch"),
    ("another name, records of one byte", [hello(b"evil.test", split=range(1, 120))], "tls_name_mismatch"),
    ("another name, byte by byte", [bytes([b]) for b in hello(b"evil.test")], "tls_name_mismatch"),
    ("another name, with pauses", [hello(b"evil.test")[:7], 0.1, hello(b"evil.test")[7:]], "tls_name_mismatch"),
    ("another name behind 12 kB", [hello(b"evil.test", padding=12000)], "tls_name_mismatch"),
    ("two names, the right one first", [hello([b"allowed.test", b"evil.test"])], "tls_malformed"),
    ("two names, the right one last", [hello([b"evil.test", b"allowed.test"])], "tls_malformed"),
    ("the extension twice, the right one first", [hello(RIGHT, extensions=[(0, b"\0\x0c\0\0\x09evil.test")])], "tls_malformed"),
    ("the extension twice, equal", [hello(RIGHT, extensions=[(0, b"\0\x0f\0\0\x0callowed.test")])], "tls_malformed"),
    ("another extension twice", [hello(RIGHT, extensions=[(0x1234, b""), (0x1234, b"")])], "tls_malformed"),
    ("name of another type", [hello(RIGHT, name_type=1)], "tls_malformed"),
    ("empty name", [hello(b"")], "tls_malformed"),
    ("empty name list", [hello([])], "tls_malformed"),
    ("name of 256 bytes", [hello(b"a" * 256)], "tls_malformed"),
    ("name of 16 kB", [hello(b"a." * 8000)], "tls_malformed"),
    ("bytes behind the name list", [hello(RIGHT, tail=b"\0")], "tls_malformed"),
    ("hello that claims 16 MB", [record(b"\x01\xff\xff\xff" + b"\0" * 100)], "tls_malformed"),
    ("hello of 70 kB", [hello(RIGHT, padding=70000)], "tls_malformed"),
    ("bytes behind the hello in its record", [record(hello(RIGHT)[5:] + b"\x01")], "tls_malformed"),
    ("a record of another type between", [hello(RIGHT, split=[60], between=b"\x15\x03\x01\0\x02\x01\0")], "tls_malformed"),
    ("an empty record first", [b"\x16\x03\x01\0\0" + hello(RIGHT)], "tls_malformed"),
    ("an empty record between", [hello(RIGHT, split=[60], between=b"\x16\x03\x01\0\0")], "tls_malformed"),
    ("a record of 17 kB", [b"\x16\x03\x01\x42\x68" + b"\x01" * 17000], "tls_malformed"),
    ("a server's hello", [record(b"\x02" + hello(RIGHT)[6:])], "tls_malformed"),
    ("a hello request", [record(b"\0\0\0\0")], "tls_malformed"),
    ("random bytes in a record", [record(bytes(range(1, 200)))], "tls_malformed"),
    ("cut off, then the end", [hello(RIGHT)[:100], EOF], "tls_malformed"),
]
NOT_TLS = [ # at port 443 only: other ports may carry anything
    ("SSLv2 hello", [b"\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10" + b"\0" * 40], "protocol_mismatch", "closed"),
    ("garbage", [b"\xde\xad\xbe\xef" * 20], "protocol_mismatch", "closed"),
    ("SSH", [b"SSH-2.0-x\r\n"], "protocol_mismatch", "closed"),
    ("HTTP in clear", [HTTP_OK], "protocol_mismatch", "403"),
    ("HTTP in clear for another host", ["GET %PATH% HTTP/1.1\r\nHost: evil.test\r\n\r\n"], "protocol_mismatch", "403"),
    ("a line end, then a hello", [b"\r\n" + hello(RIGHT)], "protocol_mismatch", "closed"),
    ("application data", [b"\x17\x03\x03\0\x05hello"], "protocol_mismatch", "closed"),
    ("an alert", [b"\x15\x03\x01\0\x02\x01\0"], "protocol_mismatch", "closed"),
    ("one byte, then the end", [b"\x16", EOF], "tls_malformed", "alert"),
]


def tls():
    entrances = [("name", 443, None), ("name6", 443, None), ("proxy", 443, "allowed.test:443"), ("name", 8443, None), ("proxy6", 8443, "allowed.test:8443")]
    for via, port, connect in entrances:
        for title, say, reason in TLS:
            yield Case(f"TLS at {port} ({via}): {title}", via, "alert" if reason else "server", reason, port=port, connect=connect, say=say)
    for via, port, connect in entrances[:3]:
        for title, say, reason, want in NOT_TLS:
            yield Case(f"TLS at 443 ({via}): {title}", via, want, reason, port=443, connect=connect, say=say)
    for via, connect in (("name", None), ("proxy", "allowed.test:80")):
        yield Case(f"TLS at 80 ({via})", via, "alert", "protocol_mismatch", connect=connect, say=[hello(RIGHT)])
        yield Case(f"TLS at 80 for another name ({via})", via, "alert", "protocol_mismatch", connect=connect, say=[hello(b"evil.test")])
    yield Case("CONNECT one name, SNI of another below the same wildcard", "proxy", "alert", "tls_name_mismatch", connect="a.wild.test:443", say=[hello(b"b.wild.test")])
    yield Case("one name looked up, SNI of another below the same wildcard", "name", "alert", "tls_name_mismatch", host="a.wild.test", port=443, say=[hello(b"b.wild.test")])


# ---- HTTP ----

G, P, H = "GET {T}%PATH% HTTP/1.1\r\n", "POST {T}%PATH% HTTP/1.1\r\n", "Host: allowed.test\r\n"
HIDDEN = "GET %PATH%-hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n"
CHUNKED = P + H + "Transfer-Encoding: chunked\r\n\r\n"
BAD_HTTP, MISMATCH, MISSING, VERSION = "http_malformed", "http_host_mismatch", "http_host_missing", "http_version"
# (title, what is said, reason, and what differs: reach, lacks, proxy (reason at the proxy entrance), skip (entrances), late)
HTTP = [
    ("as it should be", [G + H + "\r\n"], None),
    ("HTTP/1.0", ["GET {T}%PATH% HTTP/1.0\r\n" + H + "\r\n"], None),
    ("Host with its port", [G + "Host: allowed.test:{P}\r\n\r\n"], None),
    ("Host with tabs around", [G + "Host:\t allowed.test \t\r\n\r\n"], None),
    ("header name in upper case", [G + "HOST: allowed.test\r\n\r\n"], None),
    ("byte by byte", [G + H + "\r\n"], None, dict(bytewise=True)),
    ("a body", [P + H + "Content-Length: 5\r\n\r\n", 0.05, "hello"], None),
    ("a chunked body", [CHUNKED + "5\r\nhello\r\n0\r\n\r\n"], None),
    ("chunked in upper case", [P + H + "Transfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n"], None),
    ("expects to be told to go on", [P + H + "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", 0.05, "hello"], None),
    ("a method nobody knows", ["FROB {T}%PATH% HTTP/1.1\r\n" + H + "\r\n"], None, dict(reach=0)),
    ("lower-case method", ["get {T}%PATH% HTTP/1.1\r\n" + H + "\r\n"], None, dict(reach=0)),
    ("Host missing", [G + "\r\n"], MISSING),
    ("Host missing in HTTP/1.0", ["GET {T}%PATH% HTTP/1.0\r\n\r\n"], MISSING),
    ("Host empty", [G + "Host:\r\n\r\n"], MISMATCH),
    ("another Host", [G + "Host: evil.test\r\n\r\n"], MISMATCH),
    ("another allowed name as Host", [G + "Host: other.test\r\n\r\n"], MISMATCH),
    ("another Host, byte by byte", [G + "Host: evil.test\r\n\r\n"], MISMATCH, dict(bytewise=True)),
    ("another Host, lower-case method", ["get {T}%PATH% HTTP/1.1\r\nHost: evil.test\r\n\r\n"], MISMATCH),
    ("another Host, unknown method", ["FROB {T}%PATH% HTTP/1.1\r\nHost: evil.test\r\n\r\n"], MISMATCH),
    ("another Host, HTTP/1.0", ["GET {T}%PATH% HTTP/1.0\r\nHost: evil.test\r\n\r\n"], MISMATCH),
    ("another Host behind 60 kB of headers", [G + "".join(f"X-{i}: {'x' * 600}\r\n" for i in range(98)) + "Host: evil.test\r\n\r\n"], MISMATCH),
    ("Host with another port", [G + "Host: allowed.test:81\r\n\r\n"], MISMATCH),
    ("Host with a port that wraps", [G + "Host: allowed.test:65616\r\n\r\n"], MISMATCH),
    ("Host with a port that is no number", [G + "Host: allowed.test:80@evil.test\r\n\r\n"], MISMATCH),
    ("Host list", [G + "Host: allowed.test, evil.test\r\n\r\n"], MISMATCH),
    ("Host twice, equal", [G + H + H + "\r\n"], BAD_HTTP),
    ("Host twice, the right one first", [G + H + "Host: evil.test\r\n\r\n"], BAD_HTTP),
    ("Host twice, the right one last", [G + "Host: evil.test\r\n" + H + "\r\n"], BAD_HTTP),
    ("Host twice, in another case", [G + H + "hOST: evil.test\r\n\r\n"], BAD_HTTP),
    ("space before the colon", [G + "Host : allowed.test\r\n\r\n"], BAD_HTTP),
    ("tab before the colon", [G + "Host\t: allowed.test\r\n\r\n"], BAD_HTTP),
    ("space before the colon of a second Host", [G + H + "Host : evil.test\r\n\r\n"], BAD_HTTP),
    ("folded Host", [G + "Host: allowed.test\r\n .evil.test\r\n\r\n"], BAD_HTTP),
    ("folded with a tab", [G + H + "X: y\r\n\tz\r\n\r\n"], BAD_HTTP),
    ("folded first header", [G + " Host: evil.test\r\n" + H + "\r\n"], BAD_HTTP),
    ("header without colon", [G + H + "evil\r\n\r\n"], BAD_HTTP),
    ("header without name", [G + H + ": evil.test\r\n\r\n"], BAD_HTTP),
    ("header name that isn't ASCII", [G + H + "H\u043est: evil.test\r\n\r\n"], BAD_HTTP),
    ("Host with an underscore twin", [G + H + "Ho_st: x\r\n\r\n"], None),
    ("NUL in a header", [G + H + "X: a\0b\r\n\r\n"], BAD_HTTP),
    ("NUL in the path", ["GET {T}%PATH%\0 HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("CR in a header", [G + H + "X: a\rHost: evil.test\r\n\r\n"], BAD_HTTP),
    ("CR CR LF", [G + H[:-2] + "\r\r\n\r\n"], BAD_HTTP),
    ("LF alone everywhere", [(G + H + "\r\n").replace("\r\n", "\n")], BAD_HTTP),
    ("LF alone in one line", [G + H[:-2] + "\nX: y\r\n\r\n"], BAD_HTTP),
    ("LF LF ends the head", [G + H[:-2] + "\n\n"], BAD_HTTP),
    ("control bytes in a header", [G + H + "X: a\x01b\r\n\r\n"], BAD_HTTP),
    ("257 headers", [G + H + "X: y\r\n" * 256 + "\r\n"], BAD_HTTP),
    ("head of 70 kB", [G + H + "X: " + "y" * 70000 + "\r\n\r\n"], BAD_HTTP),
    ("empty line first", ["\r\n" + G + H + "\r\n"], BAD_HTTP),
    ("LF first", ["\n" + G + H + "\r\n"], BAD_HTTP),
    ("space first", [" " + G + H + "\r\n"], BAD_HTTP),
    ("two spaces", ["GET  {T}%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("tab for a space", ["GET\t{T}%PATH%\tHTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("vertical tab for a space", ["GET\x0b{T}%PATH%\x0bHTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("space at the end of the line", ["GET {T}%PATH% HTTP/1.1 \r\n" + H + "\r\n"], BAD_HTTP),
    ("words behind the version", ["GET {T}%PATH% HTTP/1.1 HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("colon in the method", ["GE:T {T}%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("HTTP/0.9", ["GET {T}%PATH%\r\n\r\n"], VERSION, dict(proxy="proxy_malformed")),
    ("HTTP/1.2", ["GET {T}%PATH% HTTP/1.2\r\n" + H + "\r\n"], VERSION),
    ("HTTP/1.10", ["GET {T}%PATH% HTTP/1.10\r\n" + H + "\r\n"], VERSION),
    ("HTTP/2.0", ["GET {T}%PATH% HTTP/2.0\r\n" + H + "\r\n"], VERSION),
    ("lower-case version", ["GET {T}%PATH% http/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("HTTP/2 with prior knowledge", ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], VERSION, dict(proxy="http_version")),
    ("absolute-form, another Host", ["GET http://allowed.test%PATH% HTTP/1.1\r\nHost: evil.test\r\n\r\n"], MISMATCH),
    ("absolute-form of another host", ["GET http://evil.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], MISMATCH),
    ("absolute-form of another host and its Host", ["GET http://evil.test%PATH% HTTP/1.1\r\nHost: evil.test\r\n\r\n"], MISMATCH, dict(proxy="no_rule")),
    ("absolute-form, https", ["GET https://allowed.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("absolute-form, ftp", ["GET ftp://allowed.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("absolute-form, file", ["GET file:///etc/passwd HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("absolute-form, userinfo", ["GET http://allowed.test@evil.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("absolute-form, userinfo in front of the right host", ["GET http://evil.test@allowed.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("absolute-form, backslash", ["GET http://allowed.test\\.evil.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], MISMATCH, dict(proxy="bad_name")),
    ("absolute-form, no host", ["GET http://%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("absolute-form, no slashes", ["GET http:allowed.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("absolute-form, query right behind the host", ["GET http://allowed.test?x HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("fragment", ["GET {T}%PATH%#http://evil.test/ HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("a path that looks like a host", ["GET //evil.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], None, dict(proxy="proxy_malformed", reach=0)),
    ("a path without slash", ["GET evil.test%PATH% HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    ("CONNECT behind the entrance", ["CONNECT evil.test:443 HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP, dict(proxy=MISMATCH)),
    ("CONNECT to the host itself", ["CONNECT allowed.test:{P} HTTP/1.1\r\nHost: allowed.test:{P}\r\n\r\n"], BAD_HTTP, dict(skip=["proxy"])),
    ("OPTIONS * of another host", ["OPTIONS * HTTP/1.1\r\nHost: evil.test\r\n\r\n"], MISMATCH, dict(proxy="proxy_malformed")),
    ("GET *", ["GET * HTTP/1.1\r\n" + H + "\r\n"], BAD_HTTP),
    # one request that two servers would read differently
    ("Content-Length and Transfer-Encoding", [P + H + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX" + HIDDEN], BAD_HTTP),
    ("Transfer-Encoding and Content-Length", [P + H + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX" + HIDDEN], BAD_HTTP),
    ("Content-Length twice, equal", [P + H + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length twice, different", [P + H + "Content-Length: 0\r\nContent-Length: 50\r\n\r\n" + HIDDEN], BAD_HTTP),
    ("Content-Length as a list", [P + H + "Content-Length: 5, 5\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length with a sign", [P + H + "Content-Length: +5\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length below zero", [P + H + "Content-Length: -1\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length in hexadecimal", [P + H + "Content-Length: 0x5\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length with a space inside", [P + H + "Content-Length: 5 0\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length empty", [P + H + "Content-Length:\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length that overflows", [P + H + "Content-Length: 18446744073709551621\r\n\r\nhello"], BAD_HTTP),
    ("Content-Length with an underscore", [P + H + "Content_Length: 5\r\n\r\nhello"], BAD_HTTP),
    ("Transfer-Encoding with an underscore", [P + H + "Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello"], BAD_HTTP),
    ("Transfer-Encoding: gzip, chunked", [P + H + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"], BAD_HTTP),
    ("Transfer-Encoding: chunked, identity", [P + H + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"], BAD_HTTP),
    ("Transfer-Encoding: identity", [P + H + "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello"], BAD_HTTP),
    ("Transfer-Encoding: xchunked", [P + H + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"], BAD_HTTP),
    ("Transfer-Encoding in quotes", [P + H + 'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n'], BAD_HTTP),
    ("Transfer-Encoding with a vertical tab", [P + H + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"], BAD_HTTP),
    ("Transfer-Encoding with a parameter", [P + H + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"], BAD_HTTP),
    ("Transfer-Encoding twice", [P + H + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"], BAD_HTTP),
    ("Transfer-Encoding, space before the colon", [P + H + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\nhello"], BAD_HTTP),
    ("Transfer-Encoding in HTTP/1.0", ["POST {T}%PATH% HTTP/1.0\r\n" + H + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk size in C notation", [CHUNKED + "0x5\r\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk size below zero", [CHUNKED + "-5\r\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk size with a space", [CHUNKED + "5 \r\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk size missing", [CHUNKED + "\r\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk size that overflows", [CHUNKED + "10000000000000005\r\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk extension", [CHUNKED + "5;a=b\r\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk extension with a line end", [CHUNKED + "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk line ends in LF", [CHUNKED + "5\nhello\r\n0\r\n\r\n"], BAD_HTTP),
    ("chunk data not followed by a line end", [CHUNKED + "5\r\nhelloX0\r\n\r\n"], BAD_HTTP),
    ("trailer without colon", [CHUNKED + "0\r\nevil\r\n\r\n"], BAD_HTTP),
    ("bad chunk after a pause", [CHUNKED, 0.1, "0x5\r\nhello\r\n0\r\n\r\n"], BAD_HTTP, dict(late=True)),
    # a second request behind the first is nobody's: it isn't forwarded
    ("second request for another Host", [G + H + "\r\n" + HIDDEN], None),
    ("second request for the same Host", [G + H + "\r\n" + HIDDEN.replace("evil", "allowed")], None),
    ("second request after the answer", [G + H + "\r\n", 0.1, HIDDEN], None),
    ("second request behind a body", [P + H + "Content-Length: 5\r\n\r\nhello" + HIDDEN], None),
    ("second request as body of a GET", [G + H + "Content-Length: 0\r\n\r\n" + HIDDEN], None),
    ("second request behind the last chunk", [CHUNKED + "0\r\n\r\n" + HIDDEN], None),
    ("second request, kept alive by wish", [G + H + "Connection: keep-alive\r\n\r\n" + HIDDEN], None, dict(lacks=["Keep-Alive"])),
    ("trailer that names another host", [CHUNKED + "5\r\nhello\r\n0\r\nHost: evil.test\r\n\r\n"], None, dict(lacks=["Host: evil.test"])),
    # what one hop tells the next
    ("upgrade to h2c", [G + H + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" + HIDDEN], None, dict(lacks=["Upgrade", "HTTP2-Settings"])),
    ("upgrade to TLS", [G + H + "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n" + HIDDEN], None, dict(lacks=["Upgrade"])),
    ("upgrade to websocket that isn't accepted", [G + H + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 0.1, HIDDEN], None),
    ("upgrade without Connection", [G + H + "Upgrade: websocket\r\n\r\n" + HIDDEN], None, dict(lacks=["Upgrade"])),
    ("Connection names Host", [G + H + "Connection: Host, close\r\n\r\n"], None),
    ("Connection names a header", [G + H + "Connection: X-Hop\r\nX-Hop: 1\r\n\r\n"], None, dict(lacks=["X-Hop"])),
    ("credentials for the proxy", [G + H + "Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\n\r\n"], None, dict(lacks=["Proxy-Authorization", "Proxy-Connection"])),
    ("TE and Trailer", [G + H + "TE: trailers\r\nTrailer: Host\r\n\r\n"], None, dict(lacks=["TE", "Trailer"])),
]
NOT_HTTP = [ # at port 80 only
    ("garbage", [b"\xde\xad\xbe\xef" * 20], "protocol_mismatch", "closed"),
    ("SSH", ["SSH-2.0-x\r\n"], "protocol_mismatch", "closed"),
    ("PROXY protocol in front", ["PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + HTTP_OK], "protocol_mismatch", "closed"),
    ("a word and a line end", ["HELLO\r\n"], "protocol_mismatch", "closed"),
    ("half a method, then the end", ["GE", EOF], "protocol_mismatch", "closed"),
    ("half a head, then the end", ["GET %PATH% HTTP/1.1\r\nHost: allowed.test\r\n", EOF], BAD_HTTP, "403"),
    ("nothing, then the end", [EOF], None, "closed"),
]


def http():
    entrances = [("name", 80, None, ""), ("name6", 80, None, ""), ("proxy", 80, "allowed.test:80", ""), ("name", 8080, None, ""),
                 ("proxy", 80, None, "http://allowed.test"), ("proxy6", 8080, None, "http://allowed.test:8080")]
    for via, port, connect, target in entrances:
        forward = bool(target)
        label = "absolute-form" if forward else "tunnel" if connect else "transparent"
        for title, say, reason, *rest in HTTP:
            more = rest[0] if rest else {}
            if forward and "proxy" in more.get("skip", []):
                continue
            if forward:
                reason = more.get("proxy", "proxy_malformed" if reason == BAD_HTTP and not more.get("late") and not chunk_fault(say) else reason)
            said = [s.replace("{T}", target).replace("{P}", str(port)) if isinstance(s, str) else s for s in say]
            if forward and port != 80:
                said = [s.replace("http://allowed.test%", target + "%") if isinstance(s, str) else s for s in said]
            if more.get("bytewise"):
                said = ["%PATH%" if c == "\0" else c for c in "".join(said).replace("%PATH%", "\0")]
            reach = 0 if reason and not more.get("late") else more.get("reach", 1)
            yield Case(f"HTTP at {port} ({via}, {label}): {title}", via, "403" if reason else "server", reason, port=port, connect=connect, say=said,
                       reach=reach, lacks=more.get("lacks", ()), late=more.get("late", False))
    for via, connect in (("name", None), ("name6", None), ("proxy", "allowed.test:80")):
        for title, say, reason, want in NOT_HTTP:
            yield Case(f"HTTP at 80 ({via}): {title}", via, want, reason, connect=connect, say=say)
        upgrade = "GET /ws HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        yield Case(f"websocket that is accepted ({via})", via, "server", connect=connect, say=[upgrade, 0.1, "through and back"], echo=b"through and back")


def chunk_fault(say):
    """The head is fine, the body isn't: judged after the proxy's own reading."""
    text = "".join(s for s in say if isinstance(s, str))
    return text.startswith(CHUNKED)


# ---- the proxy's own language ----

PROXY = [
    ("SOCKS4", [b"\x04\x01\x01\xbb\x08\x08\x08\x08user\0", EOF], "proxy_malformed"),
    ("SOCKS4a", [b"\x04\x01\x01\xbb\0\0\0\x01\0allowed.test\0", EOF], "proxy_malformed"),
    ("SOCKS5", [b"\x05\x01\0", EOF], "proxy_malformed"),
    ("SOCKS5, everything at once", [b"\x05\x01\0\x05\x01\0\x03\x0callowed.test\x01\xbb", EOF], "proxy_malformed"),
    ("SOCKS5, name with a NUL", [b"\x05\x01\0\x05\x01\0\x03\x16evil.test\0allowed.test\x01\xbb", EOF], "proxy_malformed"),
    ("TLS to the proxy", [hello(RIGHT), EOF], "proxy_malformed"),
    ("SSH to the proxy", ["SSH-2.0-x\r\n\r\n"], "proxy_malformed"),
    ("HTTP/2 to the proxy", ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], "http_version"),
    ("origin-form", [HTTP_OK], "proxy_malformed"),
    ("origin-form, Host of another", ["GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"], "proxy_malformed"),
    ("OPTIONS *", ["OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n\r\n"], "proxy_malformed"),
    ("no port", ["CONNECT allowed.test HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("empty port", ["CONNECT allowed.test: HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port 0", ["CONNECT allowed.test:0 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port with a leading zero", ["CONNECT allowed.test:0443 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port that wraps to 443", ["CONNECT allowed.test:65979 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port of 2^32 + 443", ["CONNECT allowed.test:4294967739 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port with a sign", ["CONNECT allowed.test:+443 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port below zero", ["CONNECT allowed.test:-443 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port in hexadecimal", ["CONNECT allowed.test:0x1bb HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port and a letter", ["CONNECT allowed.test:443x HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port and a space", ["CONNECT allowed.test: 443 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port by name", ["CONNECT allowed.test:https HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port in full-width digits", ["CONNECT allowed.test:\uff14\uff14\uff13 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("two ports", ["CONNECT allowed.test:443:80 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("only a port", ["CONNECT :443 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("port not named", ["CONNECT allowed.test:444 HTTP/1.1\r\n\r\n"], "port_not_allowed"),
    ("port of another rule", ["CONNECT a.wild.test:22 HTTP/1.1\r\n\r\n"], "port_not_allowed"),
    ("SSH of the host named for the web", ["CONNECT other.test:22 HTTP/1.1\r\n\r\n"], "port_not_allowed"),
    ("the name server's port", ["CONNECT allowed.test:53 HTTP/1.1\r\n\r\n"], "port_not_allowed"),
    ("forward to a port not named", ["GET http://allowed.test:81/ HTTP/1.1\r\nHost: allowed.test:81\r\n\r\n"], "port_not_allowed"),
    ("forward in clear to port 443", ["GET http://allowed.test:443/ HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"], "protocol_mismatch"),
    ("forward, Host with another port", ["GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n"], "http_host_mismatch"),
    ("CONNECT, Host of another", ["CONNECT allowed.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n"], "http_host_mismatch"),
    ("CONNECT another, Host allowed", ["CONNECT evil.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"], "http_host_mismatch"),
    ("CONNECT, Host with another port", ["CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:444\r\n\r\n"], "http_host_mismatch"),
    ("CONNECT, two Hosts", ["CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\nHost: evil.test\r\n\r\n"], "proxy_malformed"),
    ("CONNECT with a body", ["CONNECT allowed.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"], "proxy_malformed"),
    ("CONNECT with chunks", ["CONNECT allowed.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], "proxy_malformed"),
    ("CONNECT a URL", ["CONNECT http://allowed.test:443 HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("CONNECT with a path", ["CONNECT allowed.test:443/ HTTP/1.1\r\n\r\n"], "proxy_malformed"),
    ("CONNECT in lower case is judged as CONNECT", ["connect evil.test:443 HTTP/1.1\r\n\r\n"], "no_rule"),
    ("CONNECT, LF alone", ["CONNECT allowed.test:443 HTTP/1.1\n\n"], "proxy_malformed"),
    ("CONNECT, NUL in a header", ["CONNECT allowed.test:443 HTTP/1.1\r\nX: \0\r\n\r\n"], "proxy_malformed"),
    ("CONNECT, HTTP/2.0", ["CONNECT allowed.test:443 HTTP/2.0\r\n\r\n"], "http_version"),
    ("CONNECT, HTTP/0.9", ["CONNECT allowed.test:443\r\n\r\n"], "proxy_malformed"),
    ("CONNECT, head of 70 kB", ["CONNECT allowed.test:443 HTTP/1.1\r\nX: " + "y" * 70000 + "\r\n\r\n"], "proxy_malformed"),
    ("half a CONNECT, then the end", ["CONNECT allowed.test:443 HTTP/1.1\r\n", EOF], "proxy_malformed"),
    ("the proxy itself", ["CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n"], "address_loopback"),
    ("the proxy itself by name", ["CONNECT localhost:3128 HTTP/1.1\r\n\r\n"], "no_rule"),
    ("forward to the proxy itself", ["GET http://127.0.0.1:3128/ HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n"], "address_loopback"),
    ("a synthetic address", ["CONNECT 198.18.0.1:443 HTTP/1.1\r\n\r\n"], "address_reserved"),
    ("the resolver of the host", ["CONNECT 11.1.1.2:53 HTTP/1.1\r\n\r\n"], "address_literal"),
    ("a public resolver", ["CONNECT 8.8.8.8:53 HTTP/1.1\r\n\r\n"], "address_literal"),
    ("FTP by URL", ["GET ftp://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n"], "proxy_malformed"),
    ("https by URL", ["GET https://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n"], "proxy_malformed"),
    ("scheme relative", ["GET //allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"], "proxy_malformed"),
]


def proxy():
    for via in ("proxy", "proxy6"):
        for title, say, reason in PROXY:
            yield Case(f"proxy ({via}): {title}", via, "403", reason, say=say)
    # what is inside a tunnel is judged as it is outside
    inside = "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"
    yield Case("a CONNECT inside a tunnel", "proxy", "403", "http_malformed", connect="allowed.test:80", say=[inside])
    yield Case("a forward inside a tunnel", "proxy", "403", "http_host_mismatch", connect="allowed.test:80", say=["GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"])
    yield Case("SOCKS inside a tunnel to the web", "proxy", "closed", "protocol_mismatch", connect="allowed.test:443", say=[b"\x05\x01\0"])
    yield Case("a tunnel's first request together with CONNECT", "proxy", "403", "http_host_mismatch",
               say=["CONNECT allowed.test:80 HTTP/1.1\r\n\r\nGET %PATH% HTTP/1.1\r\nHost: evil.test\r\n\r\n"])
    yield Case("a tunnel's TLS together with CONNECT", "proxy", "alert", "tls_name_mismatch",
               say=[joined("CONNECT allowed.test:443 HTTP/1.1\r\n\r\n", hello(b"evil.test"))])
    yield Case("a relay of the box in front of the proxy changes nothing", "do", "403", "no_rule", args=("relay",))


# ---- questions to the name server ----

def dns():
    for via in ("dns", "dnstcp", "dns6"):
        for kind in ("A", "AAAA", "TXT", "NULL", "ANY", "MX", "SRV", "NS", "CNAME", "SOA", "HTTPS", "SVCB", "PTR", "AXFR", "TYPE65399"):
            yield Case(f"{kind} of a name that isn't allowed ({via})", via, "nxdomain", host=f"{kind.lower()}.{SECRET}.evil.test", args=(kind,),
                       name=(f"{kind.lower()}.{SECRET}.evil.test", "no_rule"))
            want = "synthetic" if kind in ("A", "AAAA", "ANY") else "empty"
            yield Case(f"{kind} of an allowed name ({via})", via, want, host="allowed.test", args=(kind,), name=("allowed.test", "allowed"))
        for kind in ("CH", "HS", "ANYCLASS"):
            yield Case(f"class {kind} ({via})", via, "refused", host="version.bind", args=("TXT", kind))
        for how, want in (("response", "silence"), ("status", "notimp"), ("update", "notimp"), ("notify", "notimp"), ("two questions", "formerr"), ("no question", "formerr"),
                          ("pointer", "formerr"), ("pointer loop", "formerr"), ("trailing bytes", "formerr"), ("answers", "formerr"), ("header only", "formerr"),
                          ("half a header", "silence"), ("dot in a label", "refused"), ("EDNS version 1", "badvers"), ("two OPT", "formerr"), ("root", "refused")):
            yield Case(f"question with {how} ({via})", via, want, host="allowed.test", args=("A", "IN", how))
    for address, name in (("1.0.0.127.in-addr.arpa", "loopback"), ("254.169.254.169.in-addr.arpa", "metadata"), ("8.8.8.8.in-addr.arpa", "public")):
        yield Case(f"reverse lookup of {name}", "dns", "ptr" if name == "loopback" else "nxdomain", host=address, args=("PTR",))
    for i in range(3):
        yield Case(f"data in the labels of a reverse lookup, {i}", "dns", "nxdomain", host=f"{SECRET}.{i}.in-addr.arpa", args=("PTR",), name=(f"{SECRET}.{i}.in-addr.arpa", "no_rule"))
    yield Case("a hundred names with data in them", "do", "nxdomain", args=("exfiltrate", 100))
    for name in ("evil.test", "evilallowed.test", "metadata.google.internal", "x.allowed.test", "wild.test", "evil.test.", "allowed.test.evil"):
        yield Case(f"looked up by the C library: {name}", "do", "unknown", host=name, args=("lookup",), name=(name.rstrip("."), "no_rule"))


# ---- around both entrances ----

def direct():
    for address in ("8.8.8.8", "11.1.1.2", "169.254.169.254", "10.0.0.1", "2001:4860:4860::8888", "2a00:1:1::2"):
        for op in ("udp", "dial"):
            yield Case(f"DNS straight to {address} by {op}", "do", "nowhere", host=address, port=53, args=(op,))
    for address in ("11.4.4.4", "198.18.0.1", "fd00:b011:4ead::1", "2606:4700::1"):
        yield Case(f"QUIC to {address}", "do", "nowhere", host=address, port=443, args=("udp",))
    for address in ("224.0.0.251", "255.255.255.255", "ff02::fb"):
        yield Case(f"UDP to everyone at {address}", "do", "nowhere", host=address, port=5353, args=("udp",))
    for what in ("raw socket", "raw IPv6 socket", "ping socket", "ping to the host", "packet socket", "route", "address", "vsock", "sctp", "dccp", "mptcp to the host", "tipc",
                 "bluetooth", "alg", "can", "x25", "io_uring", "other interface", "other namespace", "source routing", "tcp fast open", "kernel module", "tun"):
        yield Case(f"another way out: {what}", "do", "nowhere", args=("way", what))
    yield Case("port of an allowed host that no rule names", "do", "nowhere", host="allowed.test", port=444, args=("dial name",))
    yield Case("port of another host at this one's address", "do", "nowhere", host="other.test", port=22, args=("dial name",))
    yield Case("a synthetic address that no name has", "do", "nowhere", host="198.18.200.200", port=443, args=("dial",))
    yield Case("a synthetic IPv6 address that no name has", "do", "nowhere", host="fd00:b011:4ead::ffff", port=443, args=("dial",))
    yield Case("only loopback exists", "do", "lo", args=("interfaces",))
    yield Case("nothing listens but the entrances", "do", "tcp 53 tcp 3128 udp 53", args=("listeners",))
    yield Case("abstract socket of the host", "do", "nowhere", args=("unix", "\0bulkhead-test-outside"))
    yield Case("socket of the host in the working copy", "do", "nowhere", args=("unix", "/workspace/host.sock"))
    yield Case("literal address that a rule names, port that it doesn't", "proxy", "403", "port_not_allowed", say=["CONNECT 11.9.9.9:81 HTTP/1.1\r\n\r\n"])
    yield Case("literal address that a rule names, transparent, port that it doesn't", "do", "nowhere", host="11.9.9.9", port=81, args=("dial",))
    yield Case("neighbour of a literal address that a rule names", "proxy", "403", "address_literal", say=["CONNECT 11.9.9.8:80 HTTP/1.1\r\n\r\n"])
    yield Case("neighbour of a private literal that a rule names", "proxy", "403", "address_private", say=["CONNECT 10.77.0.2:80 HTTP/1.1\r\n\r\n"])
    yield Case("a literal that a rule names, through NAT64", "proxy", "403", "address_literal", say=["CONNECT [64:ff9b::b09:909]:80 HTTP/1.1\r\n\r\n"])
    yield Case("another spelling of a literal that a rule names", "proxy", "403", "bad_name", say=["CONNECT 11.9.2313:80 HTTP/1.1\r\n\r\n"])
    for via in ("address", "proxy"):
        connect = "11.9.9.9:80" if via == "proxy" else None
        yield Case(f"literal, HTTP for another host ({via})", via, "403", "http_host_mismatch", host="11.9.9.9", connect=connect, say=["GET %PATH% HTTP/1.1\r\nHost: evil.test\r\n\r\n"])
        yield Case(f"literal, HTTP for an allowed name ({via})", via, "403", "http_host_mismatch", host="11.9.9.9", connect=connect, say=[HTTP_OK])
        connect = "11.9.9.9:443" if via == "proxy" else None
        yield Case(f"literal, TLS for a name ({via})", via, "alert", "tls_name_mismatch", host="11.9.9.9", port=443, connect=connect, say=[hello(b"allowed.test")])


# ---- what must work, so that a gate that refuses everything can't pass ----

def allowed():
    def get(host):
        return f"GET %PATH% HTTP/1.1\r\nHost: {host}\r\n\r\n"
    for via, host, port in (("name", "allowed.test", 80), ("name6", "allowed.test", 80), ("name", "allowed.test", 8080), ("name", "other.test", 80), ("name", "v6.wild.test", 80),
                            ("name6", "v4.wild.test", 80), ("address", "11.9.9.9", 80), ("address", "10.77.0.1", 80), ("address", "2606:4700::1111", 80),
                            ("address", "fd77::1", 80), ("address", "169.254.42.42", 80), ("address", "192.0.2.77", 80)):
        shown = f"[{host}]" if ":" in host else host
        authority = shown if port == 80 else f"{shown}:{port}"
        yield Case(f"HTTP to {host}:{port} ({via})", via, "server", host=host, port=port, reach=1, say=[get(authority)])
        yield Case(f"HTTP to {host}:{port} (tunnel)", "proxy", "server", connect=f"{shown}:{port}", reach=1, say=[get(authority)])
        yield Case(f"HTTP to {host}:{port} (absolute-form)", "proxy6", "server", reach=1, say=[get(authority).replace("%PATH%", f"http://{authority}%PATH%")])
    for via, host, port, name in (("name", "allowed.test", 443, b"allowed.test"), ("name6", "a.b.wild.test", 443, b"a.b.wild.test"), ("name", "allowed.test", 8443, b"allowed.test"),
                                  ("address", "11.9.9.9", 443, None), ("address", "2606:4700::1111", 443, None)):
        shown = f"[{host}]" if ":" in host else host
        yield Case(f"TLS to {host}:{port} ({via})", via, "server", host=host, port=port, say=[hello(name)])
        yield Case(f"TLS to {host}:{port} (tunnel)", "proxy", "server", connect=f"{shown}:{port}", say=[hello(name)])
        yield Case(f"a whole TLS exchange with {host}:{port} ({via})", "do", "server", host=host, port=port, reach=1, args=("https", via))
        yield Case(f"a whole TLS exchange with {host}:{port} (tunnel)", "do", "server", host=host, port=port, reach=1, args=("https", "proxy"))
    for via, connect in (("name", None), ("name6", None), ("proxy", "allowed.test")):
        echo, first = connect and connect + ":7", connect and connect + ":22"
        yield Case(f"any protocol ({via})", via, "server", port=7, connect=echo, say=[b"\0\x01\x02 anything\n", EOF], echo=b"\0\x01\x02 anything\n")
        yield Case(f"half-close: all comes back after our end ({via})", via, "server", port=7, connect=echo, say=[b"x" * 300000, EOF], echo=b"x" * 300000)
        yield Case(f"slow client ({via})", via, "server", port=7, connect=echo, say=["a", 0.3, "b", 0.3, "c", EOF], echo=b"abc")
        yield Case(f"server that speaks first ({via})", via, "server", port=22, connect=first, say=[0.1, "hello\r\n", EOF], echo=b"220 hello\r\nhello\r\n")
        yield Case(f"server that speaks first, silent client ({via})", via, "server", port=22, connect=first, say=[0.3, EOF], echo=b"220 hello\r\n")
        yield Case(f"20 MB up and down, byte-exact ({via})", "do", "server", port=7, args=("bulk", via, 20000000))
    yield Case("a hundred connections at once", "do", "server", args=("many", 100))


# ---- budgets: each group under a policy with one small limit ----

def everywhere(reason, host="allowed.test"):
    """The same refusal at each entrance."""
    yield Case(f"{reason}: transparent HTTP to {host}", "name", "403", reason, host=host, say=[f"GET %PATH% HTTP/1.1\r\nHost: {host}\r\n\r\n"])
    yield Case(f"{reason}: transparent TLS to {host}", "name6", "alert", reason, host=host, port=443, say=[hello(raw(host))])
    yield from at_proxy(reason, host)


def at_proxy(reason, host):
    yield Case(f"{reason}: CONNECT {host}", "proxy", "403", reason, say=[f"CONNECT {host}:443 HTTP/1.1\r\n\r\n"])
    yield Case(f"{reason}: absolute-form, {host}", "proxy6", "403", reason, say=[f"GET http://{host}%PATH% HTTP/1.1\r\nHost: {host}\r\n\r\n"])


def fetch(title, via="name"):
    target = "http://allowed.test" if via.startswith("proxy") else ""
    return Case(title, via, "server", reach=1, say=[f"GET {target}%PATH% HTTP/1.1\r\nHost: allowed.test\r\n\r\n"])


def connections():
    yield Case("three connections at once", "do", "server", args=("hold", 3))
    yield from everywhere("budget_connections")
    yield from at_proxy("no_rule", "evil.test")
    yield Case("one is closed", "do", "open", args=("release", 1))
    yield fetch("so another one fits")
    yield fetch("and the next, one after the other", "proxy")


def requests():
    for _ in range(2):
        yield from at_proxy("no_rule", "evil.test")  # what is refused uses nothing up
    for via in ("name", "proxy", "name6", "proxy6", "name", "proxy"):
        yield fetch(f"within the budget of six ({via})", via)
    yield from everywhere("budget_requests")
    yield from at_proxy("no_rule", "evil.test")
    yield Case("names are answered still", "dns", "synthetic", args=("A",))


def bytes_by(op, via):
    yield Case(f"{op} 250 kB under a budget of 100 kB ({via})", "do", "cut", port=9 if op == "send" else 80, args=(op, via, 250000))
    yield from everywhere("budget_bytes")


def bytes_exact():
    for via in ("name", "proxy"):
        yield Case(f"25 kB up and down ({via})", "name" if via == "name" else "proxy", "server", port=7, connect=None if via == "name" else "allowed.test:7",
                   say=[b"x" * 25000, EOF], echo=b"x" * 25000)
    yield from everywhere("budget_bytes")


# ---- a policy that allows nothing ----

def nothing():
    for host in ("allowed.test", "a.wild.test", "other.test", "evil.test", "r0.rebind.test"):
        for via in ("dns", "dnstcp", "dns6"):
            yield Case(f"{host} in DNS ({via})", via, "nxdomain", host=host, args=("A",), name=(host, "no_rule"))
        yield from at_proxy("no_rule", host)
        yield Case(f"{host} looked up by the C library", "do", "unknown", host=host, args=("lookup",))
    for host in ("198.18.0.1", "fd00:b011:4ead::1", "11.9.9.9", "11.2.2.2", "2606:4700::2"):
        for port in (80, 443):
            yield Case(f"{host} port {port}", "do", "nowhere", host=host, port=port, args=("dial",))


GROUPS = dict(names=names, addresses=addresses, answers=answers, tls=tls, http=http, proxy=proxy, dns=dns, direct=direct, allowed=allowed, nothing=nothing,
              connections=connections, requests=requests, bytes_exact=bytes_exact,
              send_transparent=lambda: bytes_by("send", "name"), send_tunnel=lambda: bytes_by("send", "proxy"),
              fetch_transparent=lambda: bytes_by("fetch", "name"), fetch_tunnel=lambda: bytes_by("fetch", "proxy"))


def cases(group):
    return list(GROUPS[group]())
