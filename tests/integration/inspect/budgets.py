"""Runs inside the box: budgets.py uses up what each rule gives, and prints one JSON line for each: what was answered, with which reason, and how many bytes."""
import json, sys

from wire import H2, Connection, Gone


HEAD_DOWN = 32                                        # what a head costs: 32 and its texts
HEAD_UP = 32 + len("POST/api/xb-upN.wild.test:9443")  # of b-up2; that of b-up is one shorter


def connection(name, proto="h1"):
    return Connection("name", f"{name}.wild.test", 9443, True, f"{name}.wild.test", "h2" if proto == "h2" else "http/1.1")


def get(c, name, path="/api/x"):
    c.send(f"GET {path} HTTP/1.1\r\nHost: {name}.wild.test:9443\r\n\r\n".encode())
    status, fields, body = c.response()
    return fields.get("bulkhead-reason", status)


def attempt(name, path="/api/x"):
    try:
        return get(connection(name), name, path)
    except Gone as gone:
        return str(gone)


def requests(name):
    first = connection(name)
    said = [get(first, name) for _ in range(4)]
    return said + [attempt(name)]


def connections():
    held = [connection("b-connections") for _ in range(2)]
    said = [get(c, "b-connections") for c in held] + [attempt("b-connections")]
    held.pop().close()
    while (last := attempt("b-connections")) != 200:
        pass
    return said + [last]


def down(name, proto, at_once=100000):
    """How many bytes of the body came."""
    c = connection(name, proto)
    if proto == "h2":
        h2 = H2(c)
        h2.request(1, [(":method", "GET"), (":scheme", "https"), (":authority", f"{name}.wild.test:9443"), (":path", f"/api/big/{at_once}")])
        try:
            h2.wait(1)
            end = h2.ended[1]
        except Gone as gone:
            end = str(gone)
        return [len(h2.body.get(1, b"")), end, attempt(name)]
    c.send(f"GET /api/big/{at_once} HTTP/1.1\r\nHost: {name}.wild.test:9443\r\n\r\n".encode())
    c.until(b"\r\n\r\n")
    try:
        c.take(at_once)
        end = "whole"
    except Gone:
        end = "cut"
    return [len(c.data), end, attempt(name)]


def up(name, size=100000):
    c = connection(name)
    c.send(f"POST /api/x HTTP/1.1\r\nHost: {name}.wild.test:9443\r\nContent-Length: {size}\r\n\r\n".encode() + b"u" * size)
    try:
        status, fields, _ = c.response()
        said = fields.get("bulkhead-reason", status)
    except Gone as gone:
        said = str(gone)
    return [said, attempt(name)]


for what, run in {"requests": lambda: requests("b-requests"), "rate": lambda: requests("b-rate"), "connections": connections, "down": lambda: down("b-down", "h1"),
                  "down, h2": lambda: down("b-down2", "h2"), "down, just enough": lambda: down("b-down3", "h1", 50000 - HEAD_DOWN),
                  "up": lambda: up("b-up", 50000 - HEAD_UP + 2), "up, just enough": lambda: up("b-up2", 50000 - HEAD_UP)}.items():
    try:
        print(json.dumps({what: run()}), flush=True)
    except (Gone, OSError) as problem:
        print(json.dumps({what: repr(problem)}), flush=True)
