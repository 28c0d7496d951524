#!/usr/bin/env python3
"""What of the host an attempt could reach: listeners and shared memory. Every contact is a line in FOLDER/contacts.

host.py FOLDER COPY     COPY gets host.sock and host.fifo, as a project's folder may hold them. Prints KEY=VALUE lines, then READY.
"""
import ctypes, os, socket, sys, threading

folder, copy = sys.argv[1:3]
contacts = open(os.path.join(folder, "contacts"), "a", buffering=1)


def watch(name, sock):
    def loop():
        while True:
            try:
                if sock.type == socket.SOCK_STREAM:
                    sock.accept()
                else:
                    sock.recv(100)
                contacts.write("contact: %s\n" % name)
            except OSError:
                return
    threading.Thread(target=loop, daemon=True).start()


def listen_unix(name, path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(8)
    if path[0] != "\0":
        os.chmod(path, 0o777)
    watch(name, sock)


def watch_fifo(path):
    os.mkfifo(path, 0o666)
    os.chmod(path, 0o666)

    def loop():
        fd = os.open(path, os.O_RDWR)
        while os.read(fd, 100):
            contacts.write("contact: fifo\n")
    threading.Thread(target=loop, daemon=True).start()


tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
tcp.bind(("0.0.0.0", 0))
tcp.listen(8)
port = tcp.getsockname()[1]
watch("tcp", tcp)
try:
    tcp6 = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    tcp6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    tcp6.bind(("::1", port))
    tcp6.listen(8)
    watch("tcp6", tcp6)
except OSError:
    pass
abstract = "bulkhead-escape-%d" % os.getpid()
listen_unix("abstract", "\0" + abstract)
listen_unix("path", os.path.join(folder, "host.sock"))
listen_unix("run", "/run/bulkhead-escape-%d.sock" % os.getpid())
listen_unix("planted", os.path.join(copy, "host.sock"))
watch_fifo(os.path.join(copy, "host.fifo"))
libc = ctypes.CDLL(None, use_errno=True)
key = 0x42480000 + (os.getpid() & 0xffff)
segment = libc.shmget(key, 4096, 0o1666)
try:
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.connect(("192.0.2.1", 9))
    address = probe.getsockname()[0]
except OSError:
    address = "192.0.2.7"
print("port=%d abstract=%s socket=%s run=%s key=%d shm=%d address=%s" % (port, abstract, os.path.join(folder, "host.sock"),
      "/run/bulkhead-escape-%d.sock" % os.getpid(), key, segment, address))
print("READY", flush=True)
try:
    sys.stdin.read()
finally:
    os.unlink("/run/bulkhead-escape-%d.sock" % os.getpid())
    libc.shmctl(segment, 0, None)
