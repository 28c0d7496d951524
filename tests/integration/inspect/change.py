"""Runs inside the box: change.py holds connections, says READY, and tells what became of them when the policy was tightened."""
import json

from wire import H2, Connection, Gone

HOST = "change.wild.test"


def connection(proto="http/1.1", host=HOST):
    return Connection("name", host, 9443, True, host, proto)


def ask(c, path, host=HOST):
    c.send(f"GET {path} HTTP/1.1\r\nHost: {host}:9443\r\n\r\n".encode())


def fields(path):
    return [(":method", "GET"), (":scheme", "https"), (":authority", f"{HOST}:9443"), (":path", path)]


def outcome(run):
    try:
        status, head, body = run()
        return head.get("bulkhead-reason", f"{status} {body.decode()}".strip())
    except Gone as gone:
        return str(gone)


def begin(c, path):
    """A request whose answer has begun."""
    ask(c, path)
    c.until(b"\r\n\r\n")
    c.take(1)


idle, running, kept, kept_running, gone, h2 = connection(), connection(), connection(), connection(), connection(host="gone.wild.test"), H2(connection("h2"))
first = [ask(idle, "/api/x") or idle.response()[0], ask(kept, "/keep/x") or kept.response()[0], ask(gone, "/api/x", "gone.wild.test") or gone.response()[0]]
begin(running, "/api/slow/60")
begin(kept_running, "/keep/slow/2")
h2.request(1, fields("/api/slow/60"))
h2.request(3, fields("/keep/slow/2"))
while not (h2.body.get(1) and h2.body.get(3)):
    h2.step()
print("READY", flush=True)

said = {"first": first}
try:
    running.take(3)
    said["running"] = "whole"
except Gone:
    said["running"] = "cut"
try:
    while 1 not in h2.ended:
        h2.step()
    said["running h2"] = h2.ended[1]
except Gone as lost:
    said["running h2"] = str(lost)
ask(idle, "/api/x")
said["idle"] = outcome(idle.response)
ask(kept, "/keep/x")
said["kept"] = outcome(kept.response)
try:
    said["kept running"] = kept_running.take(3).decode()
except Gone as lost:
    said["kept running"] = str(lost)
said["kept running h2"] = outcome(lambda: h2.wait(3))
h2.request(5, fields("/api/x"))
said["h2, the next"] = outcome(lambda: h2.wait(5))
h2.request(7, fields("/keep/x"))
said["h2, kept"] = outcome(lambda: h2.wait(7))
ask(gone, "/api/x", "gone.wild.test")
said["a host that is gone"] = outcome(gone.response)
print(json.dumps(said), flush=True)
