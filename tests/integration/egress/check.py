"""Outside: check.py GROUP LABEL FOLDER compares what the box was told (FOLDER/LABEL.answers), what the
record says (FOLDER/LABEL.record), and what was seen outside (FOLDER/servers/log, FOLDER/packets) with what each case wants. One "ok" or "not ok" line for each case, and some for all together."""
import collections, json, re, sys

import cases
import world

GROUP, LABEL, FOLDER = sys.argv[1:4]
ENTRANCES = dict(name="name", name6="name", proxy="proxy", proxy6="proxy", address="address")


def verdict(good, title, why=""):
    print(f"{'ok' if good else 'not ok'} - {LABEL}: {title}{'' if good else ': ' + why}")


def read_record():
    flows, ends, names = collections.defaultdict(list), {}, collections.defaultdict(set)
    for line in open(f"{FOLDER}/{LABEL}.record"):
        event = json.loads(line)
        data = event["data"]
        if event["type"] == "egress":
            flows[data.get("flow")].append(data)
        elif event["type"] == "egress.end":
            ends[data["flow"]] = data
        elif event["type"] == "name":
            names[data["name"]].add((data["allow"], data["reason"]))
    return flows, ends, names


def lines_of(path):
    return open(path, errors="replace").read().splitlines()


def requests_seen():
    """By path: how often an HTTP server saw it."""
    seen = collections.Counter()
    for line in lines_of(f"{FOLDER}/servers/log"):
        words = line.split(" ")
        if words[0] in ("http", "https") and len(words) > 2:
            seen[words[2]] += 1
    return seen


def hidden_part(case, path):
    """(bytes that may go up, at most) when the case has a second request behind the first, which nobody may see; else None."""
    said = b"".join(part for part in case.say if isinstance(part, bytes)).replace(b"%PATH%", path.encode())
    at = said.find(b"GET " + path.encode() + b"-hidden")
    return at + len("Connection: close\r\n:8080") if at >= 0 else None


class Checker:
    def __init__(self):
        self.flows, self.ends, self.names = read_record()
        self.seen = requests_seen()

    def wrong_answer(self, case, told):
        if told["answer"] != case.want:
            return f"answered «{told['answer']}» (reason {told['reason']}), wanted «{case.want}»"
        if case.want == "403" and told["reason"] != case.reason:
            return f"told the reason {told['reason']}, wanted {case.reason}"
        if case.want == "502" and told["reason"] != "resolve_failed":
            return f"told the reason {told['reason']}, wanted resolve_failed"
        return None

    def wrong_record(self, case, told):
        first, last = told["flows"]
        events = [e for flow in range(first, last + 1) for e in self.flows.get(flow, [])]
        denials = {e["reason"] for e in events if not e["allow"]}
        if denials != ({case.reason} if case.reason else set()):
            return f"the record of flows {first}–{last} has the denials {sorted(denials)}, wanted {case.reason}"
        for flow in range(first, last + 1):
            entrance = {e["entrance"] for e in self.flows.get(flow, [])}
            if case.via in ENTRANCES and entrance != {ENTRANCES[case.via]} and case.want != "closed":
                return f"the record says entrance {sorted(entrance)} of flow {flow}"
            if case.via in ENTRANCES and case.want != "closed" and not self.flows.get(flow):
                return f"flow {flow} is not on the record"
            if case.reason and not case.late and self.ends.get(flow, {}).get("bytes_up", 0) > 0:
                return f"{self.ends[flow]['bytes_up']} bytes of a refused flow reached the server"
        if case.name and (case.name[1] == "allowed", case.name[1]) not in self.names.get(case.name[0], set()):
            return f"the name {case.name} is not on the record: {self.names.get(case.name[0])}"
        return None

    def wrong_outside(self, case, told, path):
        if self.seen[path] != case.reach and not case.late:
            return f"the servers saw {self.seen[path]} requests, wanted {case.reach}"
        most = hidden_part(case, path)
        up = self.ends.get(told["flows"][1], {}).get("bytes_up", 0)
        if self.seen[path + "-hidden"] or (most is not None and up > most):
            return f"the hidden request was forwarded: {up} bytes went up, {most} may"
        if case.lacks:
            got = [f"{k}: {v}" for k, v in json.loads(told["got"])["headers"]]
            for header in case.lacks:
                if any(h.lower().startswith(header.lower() if ":" in header else header.lower() + ":") for h in got):
                    return f"the server got {header}: {got}"
        return None

    def check(self, n, case, told):
        if told is None:
            return "was not tried"
        return self.wrong_answer(case, told) or self.wrong_record(case, told) or self.wrong_outside(case, told, f"/{LABEL}-{n}")


def check_names():
    asked = {line.split(" ")[1] for line in lines_of(f"{FOLDER}/servers/log") if line.startswith("dns ")}
    foreign = sorted(name for name in asked if not world.may_be_looked_up(name))
    verdict(not foreign, f"outside, no name was looked up but allowed ones ({len(asked)} were)", ", ".join(foreign))


def check_packets():
    packets = {tuple(line.split(" ")[1:]) for line in lines_of(f"{FOLDER}/packets") if line.startswith("packet ")}
    foreign = sorted(p for p in packets if not world.may_be_sent(*p))
    verdict(not foreign, f"outside, no packet left but to allowed places ({len(packets)} kinds did)", ", ".join(map(" ".join, foreign)))


def main():
    told = {}
    for line in lines_of(f"{FOLDER}/{LABEL}.answers"):
        if re.match(r'\{"n": ', line):
            answer = json.loads(line)
            told[answer["n"]] = answer
    checker = Checker()
    for n, case in enumerate(cases.cases(GROUP)):
        why = checker.check(n, case, told.get(n))
        verdict(not why, f"{case.title}{' → ' + case.reason if case.reason else ''}", why or "")
    check_names()
    check_packets()


main()
