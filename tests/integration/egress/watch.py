"""Outside: writes down every packet that begins something (TCP SYN, UDP, ICMP but for neighbour discovery, anything else) on any interface, once each:
"packet INTERFACE PROTOCOL ADDRESS PORT". SIGTERM ends it; the last line says how many packets the kernel couldn't keep for it.
watch.py FILE FOLDER: it also listens, as a service of this machine would, at an abstract socket and at FOLDER/host.sock, for boxes to try."""
import ctypes, os, signal, socket, struct, sys

SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER, SO_RCVBUFFORCE = 263, 6, 26, 33
NEIGHBOUR_DISCOVERY = range(133, 138)


def layers(frame, protocol):
    """(next protocol, destination, payload) of an IP packet, or None."""
    if protocol == 0x0800:
        return frame[9], socket.inet_ntop(socket.AF_INET, frame[16:20]), frame[(frame[0] & 15) * 4:]
    if protocol == 0x86dd:
        kind, payload = frame[6], frame[40:]
        if kind == 0:  # hop by hop: multicast listener reports
            kind, payload = payload[0], payload[(payload[1] + 1) * 8:]
        return kind, socket.inet_ntop(socket.AF_INET6, frame[24:40]), payload
    return None


def describe(frame, protocol):
    found = layers(frame, protocol)
    if not found:
        return None if protocol == 0x0806 else f"ethernet-{protocol:04x} - 0"
    kind, to, payload = found
    if kind == 6:
        return f"tcp {to} {struct.unpack('>H', payload[2:4])[0]}" if payload[13] & 0x12 == 0x02 else None
    if kind == 17:
        return f"udp {to} {struct.unpack('>H', payload[2:4])[0]}"
    if kind == 58 and (payload[0] in NEIGHBOUR_DISCOVERY or payload[0] == 143):
        return None
    return f"{'icmp' if kind in (1, 58) else f'ip-{kind}'} {to} 0"


# Classic BPF (code, jump if true, jump if false, operand): all packets but those in the middle of a TCP connection, of which a fast transfer has more
# than can be looked at.
FILTER = [
    (0x30, 0, 0, 0), (0x54, 0, 0, 0xf0),          # 0: the version of IP
    (0x15, 0, 5, 0x40),                           # 2: 4, else to 8
    (0x30, 0, 0, 9), (0x15, 0, 9, 6),             # 3: TCP, else accept
    (0xb1, 0, 0, 0), (0x50, 0, 0, 13),            # 5: its flags, behind the header of variable length
    (0x05, 0, 0, 4),                              # 7: to 12
    (0x15, 0, 5, 0x60),                           # 8: 6, else accept
    (0x30, 0, 0, 6), (0x15, 0, 3, 6),             # 9: TCP, else accept
    (0x30, 0, 0, 53),                             # 11: its flags
    (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02),       # 12: SYN without ACK, else drop
    (0x06, 0, 0, 0x40000), (0x06, 0, 0, 0),       # 14: accept; 15: drop
]


def attach_filter(s):
    program = b"".join(struct.pack("=HBBI", *line) for line in FILTER)
    memory = ctypes.create_string_buffer(program)
    s.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(FILTER), ctypes.addressof(memory)))


def main():
    out = open(sys.argv[1], "a", buffering=1)
    services = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for service, address in zip(services, ("\0bulkhead-test-outside", sys.argv[2] + "/host.sock")):
        service.bind(address)
        service.listen()
    os.chmod(sys.argv[2] + "/host.sock", 0o777)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    attach_filter(s)

    def stop(*_):
        dropped = struct.unpack("II", s.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        out.write(f"dropped {dropped}\n")
        sys.exit(0)
    signal.signal(signal.SIGTERM, stop)
    print("READY", flush=True)
    seen = set()
    while True:
        frame, (interface, protocol, direction, *_) = s.recvfrom(65536)
        line = describe(frame, protocol) if direction == 4 else None  # what leaves; loopback shows it so too
        if line and (interface, line) not in seen:
            seen.add((interface, line))
            out.write(f"packet {interface} {line}\n")


main()
