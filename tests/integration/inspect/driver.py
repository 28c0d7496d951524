"""Runs inside the box: driver.py tries each case of the table and prints one JSON line for each: what was answered to each of its requests, and which of
the gate's flows it used (they are counted as they are opened, one by one, so the record can be searched by them)."""
import json, sys

import cases
from wire import H2, Connection, Gone, Refused


def shown(status, fields):
    return ["answer", status, fields.get("bulkhead-reason")]


def try_h1(c, case):
    for i, part in enumerate(case.parts):
        c.send(case.fill(part))
        if i in case.silent:
            continue
        status, fields, _ = c.response(case.method)
        yield shown(status, fields)


def try_h2(c, case):
    h2 = H2(c)
    for i, part in enumerate(case.parts):
        stream = 2 * i + 1
        if callable(part):
            part(h2, stream, case)
        else:
            fields, body = part
            h2.request(stream, [(case.fill(n), case.fill(v)) for n, v in fields], body)
        if i in case.silent:
            continue
        status, fields, _ = h2.wait(stream)
        yield shown(status, fields)


def attempt(case):
    got, c = [], None
    try:
        c = Connection(case.via, case.host, case.port, case.tls, case.sni, case.proto if case.proto == "h2" else "http/1.1", case.connect)
        for answer in (try_h2 if case.proto == "h2" else try_h1)(c, case):
            got.append(answer)
    except Refused as refused:
        got.append(["answer", *refused.args])
    except Gone as gone:
        got.append([str(gone)])
    finally:
        if c:
            c.close()
    return got


for flow, case in enumerate(cases.table(), 1):
    try:
        got = attempt(case)
    except OSError as problem:
        got = [["error " + str(problem)]]
    print(json.dumps({"case": case.number, "flow": flow, "got": got}), flush=True)
