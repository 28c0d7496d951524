#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which running bulkhead programs hold a text in memory, plain or in base64, besides the ones that were told not to be looked at. `memory.py FOLDER TEXT`: programs whose file is
in FOLDER. Prints "looked NAME…" and "holds NAME…"."""
import base64, os, re, sys

folder, needles = sys.argv[1], [sys.argv[2].encode(), base64.b64encode(sys.argv[2].encode())[:-4]]


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


looked, found = set(), set()
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        name = os.path.basename(open(f"/proc/{pid}/cmdline").read().split("\0")[0])
        if program.startswith(folder + "/") or name.startswith("bulkhead"):
            looked.add(name)
            if holds(pid):
                found.add(name)
    except OSError:
        pass
print("looked", *sorted(looked))
print("holds", *sorted(found))
