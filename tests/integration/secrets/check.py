#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the box saw of each answer, against what the server sent: the same but for the credential, of which nothing is left. `check.py SECRET SENT SEEN`"""
import base64, html, json, re, sys, urllib.parse

SECRET = sys.argv[1]
PIECES = {SECRET[i:i + 4] for i in range(len(SECRET) - 3)}
DECODE = {
    "plain": lambda b: b, "hex": lambda b: bytes.fromhex(b.decode()), "hex_upper": lambda b: bytes.fromhex(b.decode()), "percent": urllib.parse.unquote_to_bytes,
    "percent_all": urllib.parse.unquote_to_bytes, "json": lambda b: json.loads(b'"' + b + b'"').encode(), "javascript": lambda b: b.decode().encode().decode("unicode_escape").encode(),
    "html": lambda b: html.unescape(b.decode()).encode(), "html_hex": lambda b: html.unescape(b.decode()).encode(),
    "utf16le": lambda b: b.decode("utf-16-le").encode(), "utf16be": lambda b: b.decode("utf-16-be").encode(),
}


def decode(spelling, data):
    if spelling.startswith("base64"):
        text = data.decode().replace("-", "+").replace("_", "/")
        return base64.b64decode(text + "=" * (-len(text) % 4))
    return DECODE[spelling](data)


def pieces_in(data):
    text = data.decode("latin-1")
    return sorted(p for p in PIECES if p in text)


def report(label, problem):
    print(f"not ok - {label}: {problem}" if problem else f"ok - {label}")


def judge_reflected(seen, sent):
    spelling, coding, split = (urllib.parse.unquote(p) for p in seen["case"].split("/")[3:6])
    body, whole = base64.b64decode(seen.get("body", "")), base64.b64decode(sent["body"])
    start, end = sent["from"], sent["to"]
    if seen.get("error") or seen["status"] != (404 if split == "lost" else 200):
        return f"status {seen.get('status')}, {seen.get('error')}"
    if len(body) != len(whole) or body[:start] != whole[:start] or body[end:] != whole[end:]:
        return f"what stands around it came otherwise: {body[max(0, start - 20):end + 20]!r}"
    if SECRET.encode() not in decode(spelling, whole[start:end]):
        return "the server had not got the credential"
    try:
        left = decode(spelling, body[start:end])
    except ValueError as e:
        return f"isn't valid in its spelling any more: {e}: {body[start:end]!r}"
    return f"{pieces_in(left)} is left in {body[start:end]!r}" if pieces_in(left) else None


def all_text(seen):
    """Heads, trailers and body, and what their words are in base64, hex and percent-encoding."""
    raw = json.dumps([seen.get("headers"), seen.get("trailers")]).encode() + base64.b64decode(seen.get("body", ""))
    read = [raw, urllib.parse.unquote_to_bytes(raw)]
    for word in re.findall(rb"[A-Za-z0-9+/_=-]{16,}", raw):
        for form in ("base64", "hex"):
            try:
                read.append(decode(form, word))
            except ValueError:
                pass
    return b"\n".join(read)


def judge_other(seen):
    name = seen["case"].split("/")[2]
    wanted = {"heads": 302, "trailers": 200, "events": 200}[name]
    if seen.get("error") or seen["status"] != wanted:
        return f"status {seen.get('status')}, {seen.get('error')}"
    marks = {"heads": [b"x-plain", b"x-based", b"x-hex", b"a=", b"b=", b"allowed.test/?key="], "trailers": [b"x-late", b"x-based"], "events": [b" 1\n\n", b" 3\n\n"]}[name]
    text = all_text(seen)
    missing = [m for m in marks if m not in text.lower()]
    return f"{missing} is missing in {seen}" if missing else f"{pieces_in(text)} is left in {seen}" if pieces_in(text) else None


def main():
    sent = {json.loads(line)["case"]: json.loads(line) for line in open(sys.argv[2])}
    for line in open(sys.argv[3]):
        seen = json.loads(line)
        label = f"{urllib.parse.unquote(seen['case'])}, HTTP/{seen['version']} from {'HTTP/2' if seen['port'] == 9443 else 'HTTP/1'}"
        if "/reflect/" in seen["case"]:
            report(label, judge_reflected(seen, sent[seen["case"]]) if seen["case"] in sent else "never reached the server")
        else:
            report(label, judge_other(seen))


main()
