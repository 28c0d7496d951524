#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which programs of a run hold a text in memory, plain or in base64. `memory.py PID TEXT`: of `bulkhead run`, and all that it started. Prints "looked NAME…" and "holds NAME…"."""
import base64, os, re, sys

root, needles = int(sys.argv[1]), [sys.argv[2].encode(), base64.b64encode(sys.argv[2].encode())[:-4]]


def holds(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            start, end, rights, name = re.match(r"(\w+)-(\w+) (\S+)(?: \S+){3}\s*(.*)", line).groups()
            if not rights.startswith("r") or name in ("[vvar]", "[vsyscall]"):
                continue
            try:
                memory.seek(int(start, 16))
                data = memory.read(int(end, 16) - int(start, 16))
            except (OSError, ValueError, OverflowError):
                continue
            if any(n in data for n in needles):
                return True
    return False


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def is_ours(pid):
    while pid > 1:
        if pid == root:
            return True
        pid = parent(pid)
    return False


looked, found = set(), set()
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        with open(f"/proc/{pid}/cmdline") as words:
            name = os.path.basename(words.read().split("\0")[0])
        if is_ours(pid) and name.startswith("bulkhead"):
            looked.add(name)
            if holds(pid):
                found.add(name)
    except OSError:
        pass
print("looked", *sorted(looked))
print("holds", *sorted(found))
