"""check.py ANSWERS RECORD SEEN: judges what the driver heard, what the record says, and what the servers saw. One "ok - …" or "not ok - …" a case."""
import collections, json, sys

import cases


def lines(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


answers = {a["case"]: a for a in lines(sys.argv[1])}
denied = collections.defaultdict(list)
for r in lines(sys.argv[2]):
    said = r["data"]
    if r["type"] in ("egress", "request") and not said["allow"]:
        denied[said["flow"]].append(said["reason"])
seen = lines(sys.argv[3])
table = cases.table()


def problem(case):
    answer = answers.get(case.number)
    if not answer:
        return "was not tried"
    arrived = [s for s in seen if case.mark in json.dumps(s)]
    told = list(denied[answer["flow"]])
    got = []
    for g in answer["got"]:
        if g[0] != "answer":
            got.append(told[-1] if told and g[0] != "timeout" else g[0])
        else:
            got.append(g[2] or ("ok" if g[1] in (200, 101) else str(g[1])))
    in_body = [w.startswith("body:") for w in case.want]
    want = [w.removeprefix("body:").removeprefix("arrived:") for w in case.want]
    if got != want:
        return f"expected {want}, got {got} ({answer['got']}, record {told})"
    refused = [w for w in want if w != "ok"]
    if told != refused:
        return f"the record has {told}, not {refused}"
    if any(in_body):  # its head was allowed: no whole request may arrive
        return f"arrived whole: {arrived}" if any(s.get("body") is not None for s in arrived) else None
    due = sum(w == "ok" or w.startswith("arrived:") for w in case.want)
    if len(arrived) != due or any("head" not in s for s in arrived):
        return f"{due} should have arrived, and {arrived} did"
    if isinstance(case.sees, list):
        saw = [l if i == 0 else l.partition(":")[0].lower() + ": " + l.partition(":")[2].strip() for i, l in enumerate(arrived[0]["head"].split("\r\n")) if l]
        due = [l if i == 0 else l.partition(":")[0].lower() + ": " + l.partition(":")[2].strip() for i, l in enumerate(map(case.fill, case.sees))]
        return None if saw == due else f"the server saw {saw}, not {due}"
    if case.sees and case.sees.startswith("body:"):
        return None if arrived[0]["body"] == case.sees[5:] else f"the server saw the body {arrived[0]['body']}"
    if case.sees == "host":
        return None if f"\r\nHost: allowed.test:{case.port}\r\n" in arrived[0]["head"] else f"the server saw {arrived[0]['head']}"
    if case.sees == "whole":
        head = arrived[0]["head"].lower()
        return None if "range" not in head and "if-none" not in head and "\r\naccept-encoding: identity\r\n" in head else f"the server saw {head}"
    if case.sees == "no upgrade":
        return f"passed on: {arrived[0]['head']}" if "upgrade" in arrived[0]["head"].lower() else None
    if case.sees and arrived[0]["head"].split("\r\n")[0] != case.fill(case.sees):
        return f"the server saw {arrived[0]['head']}"
    return None


for case in table:
    what = problem(case)
    print(f"{'not ok' if what else 'ok'} - {case.number} {case.label.encode('unicode_escape').decode()}{': ' + what if what else ''}")
unmarked = [s for s in seen if "case-" not in json.dumps(s)]
print(f"{'not ok' if unmarked else 'ok'} - nothing else arrived{': ' + str(unmarked[:3]) if unmarked else ''}")
