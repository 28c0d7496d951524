"""Outside: writes down every packet that begins something (TCP SYN, UDP, ICMP but for neighbour discovery, anything else) on any interface, once each:
"packet INTERFACE PROTOCOL ADDRESS PORT". SIGTERM ends it; the last line says how many packets the kernel couldn't keep for it."""
import signal, socket, struct, sys

SOL_PACKET, PACKET_STATISTICS = 263, 6
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


def main():
    out = open(sys.argv[1], "a", buffering=1)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)

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
