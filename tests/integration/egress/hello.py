"""TLS client hellos, well made and not: a genuine one of OpenSSL is taken apart and put together with the wanted server name."""
import functools, ssl, struct


@functools.lru_cache(None)
def genuine():
    """The body of a hello without server name, and the extensions in it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    body = outgoing.read()[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + struct.unpack(">H", body[at:at + 2])[0]
    at += 1 + body[at]
    return body[:at], body[at + 2:]


def record(payload):
    return b"\x16\x03\x01" + struct.pack(">H", len(payload)) + payload


def extension(kind, data):
    return struct.pack(">HH", kind, len(data)) + data


def server_name(names, name_type, tail):
    entries = b"".join(struct.pack(">BH", name_type, len(n)) + n for n in names)
    return extension(0, struct.pack(">H", len(entries)) + entries + tail)


def hello(name, split=(), extensions=(), padding=0, between=b"", bare=False, name_type=0, tail=b""):
    """`name`: bytes, a list of them, or None. `split`: where the message is cut into records. `bare`: no extensions at all."""
    head, ours = genuine()
    names = [name] if isinstance(name, bytes) else name
    if names is not None:
        ours = server_name(names, name_type, tail) + ours
    ours += b"".join(extension(kind, data) for kind, data in extensions)
    for kind, at in enumerate(range(0, padding, 16000), 0x5000):
        ours += extension(kind, b"\0" * min(padding - at, 16000))
    if len(ours) > 65535:
        ours = ours[:65535]
    body = head if bare else head + struct.pack(">H", len(ours)) + ours
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    cuts = [0] + [c for c in split if c < len(message)] + list(range(max([0] + list(split)), len(message), 16384))[1:] + [len(message)]
    return between.join(record(message[a:b]) for a, b in zip(cuts, cuts[1:]))
