"""The world outside the box: one host that has every address there is, at the far end of a link; which names lead where; what may be reached.
`world.py` prints the names for servers.py."""
import re

from spellings import ANSWERS

RESOLVER = "11.1.1.2"     # the far end of the link; 11.1.1.1 and 2a00:1:1::1 are this machine's own addresses
NAMES = {
    "allowed.test": "11.2.2.2,2606:4700::2",
    "other.test": "11.2.2.3",
    "a.wild.test": "11.2.2.4", "b.wild.test": "11.2.2.4", "a.b.wild.test": "11.2.2.4", "a.b.c.wild.test": "11.2.2.4",
    "files.wild.test": "11.2.2.4", "registry.wild.test": "11.2.2.4", "pypi.wild.test": "11.2.2.4",
    "v4.wild.test": "11.2.2.5", "v6.wild.test": "2606:4700::6",
    "mixed.rebind.test": "127.0.0.1,::1,11.2.2.7",
    "turns.rebind.test": "11.2.2.8/127.0.0.1",
    "gone.rebind.test": "",
    "inside.private.test": "10.5.5.5", "meta.private.test": "169.254.169.254", "zero.private.test": "0.0.0.0",
    **{f"r{i}.rebind.test": answer for i, (answer, _) in enumerate(ANSWERS)},
}
REACHABLE = {"11.2.2.2", "2606:4700::2", "11.2.2.3", "11.2.2.4", "11.2.2.5", "2606:4700::6", "11.2.2.7", "11.2.2.8", "10.5.5.5",
             "11.9.9.9", "10.77.0.1", "fd77::1", "2606:4700::1111", "169.254.42.42", "192.0.2.77"}
PORTS = {"7", "9", "22", "80", "443", "8080", "8443"}


def may_be_looked_up(name):
    return name in ("allowed.test", "other.test") or re.search(r"[^.]\.(wild|rebind|private)\.test$", name) is not None


def may_be_sent(interface, protocol, address, port):
    if interface == "lo":
        return False
    return (protocol, address, port) == ("udp", RESOLVER, "53") or protocol == "tcp" and address in REACHABLE and port in PORTS


if __name__ == "__main__":
    for item in NAMES.items():
        print("=".join(item))
