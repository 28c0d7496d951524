# Part of inspect.test: the budgets of a rule, to the last request and the last byte, with the reason that says which.
# shellcheck shell=bash
cat >"$work/budgets.yaml" <<'YAML'
version: 1
name: budgets
owner: tests
network:
  - { host: b-requests.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { requests: 3 } }
  - { host: b-rate.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { rate: 3/h } }
  - { host: b-connections.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { connections: 2 } }
  - { host: b-down.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { bytes_down: 50000 } }
  - { host: b-down2.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { bytes_down: 50000 } }
  - { host: b-down3.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { bytes_down: 50000 } }
  - { host: b-up2.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { bytes_up: 50000 } }
  - { host: b-up.wild.test, ports: [9443], paths: ["/api/**"], ca: ca.pem, limits: { bytes_up: 50000 } }
YAML
box --policy "$work/budgets.yaml" --resolver "$resolver" --mount "$inspect:/inspect" --env PYTHONDONTWRITEBYTECODE=1 --timeout 60s -- /usr/bin/python3 /inspect/budgets.py
"$bulkhead" log "$id" --json >"$work/record"
said() { sed -nE "s/^\{\"$1\": (.*)\}\$/\1/p" <<<"$out"; }
# of HOST KIND MEMBER: the sum of a member over the host's flows
of() { /usr/bin/python3 -c '
import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
flows = {r["data"]["flow"] for r in records if r["type"] == "egress" and r["data"]["host"] == sys.argv[2]}
print(sum(r["data"][sys.argv[4]] for r in records if r["type"] == sys.argv[3] and r["data"]["flow"] in flows))' "$work/record" "$@"; }

equal "requests of a rule" '[200, 200, 200, "budget_requests", "budget_requests"]' "$(said requests)"
equal "rate of a rule" '[200, 200, 200, "budget_rate", "budget_rate"]' "$(said rate)"
equal "requests of a rule: what arrived" 3 "$(grep -c 'Host: b-requests' "$work/servers/seen")"
equal "rate of a rule: what arrived" 3 "$(grep -c 'Host: b-rate' "$work/servers/seen")"
equal "connections of a rule, at once" '[200, 200, "alert", 200]' "$(said connections)"
equal "bytes down of a rule: each but those of the head arrives" '[49968, "cut", "alert"]' "$(said down)"
# A reset of HTTP/2 overtakes what is queued behind it: never one byte more, perhaps some fewer.
never_more() { [[ $1 =~ ^\[([0-9]+),\ \"reset\ 8\",\ \"alert\"\]$ ]] && [ "${BASH_REMATCH[1]}" -le 49968 ] && [ "${BASH_REMATCH[1]}" -gt 0 ] || { echo "got $1"; return 1; }; }
check "bytes down of a rule: HTTP/2" never_more "$(said 'down, h2')"
equal "bytes down of a rule: just enough" '[0, "whole", "alert"]' "$(said 'down, just enough')"
equal "bytes up of a rule: one too many" '["budget_bytes", "alert"]' "$(said up)"
equal "bytes up of a rule: just enough" '[200, "alert"]' "$(said 'up, just enough')"
for host in b-down b-down2 b-down3; do equal "$host: on the record" "50000 50000" "$(of $host.wild.test request.end bytes_down) $(of $host.wild.test egress.end bytes_down)"; done
for host in b-up b-up2; do equal "$host: on the record" "50000 50000" "$(of $host.wild.test request.end bytes_up) $(of $host.wild.test egress.end bytes_up)"; done
equal "bytes up of a rule: only what is whole arrives as a request" 1 "$(grep -c '"body": "uu*"' "$work/servers/seen")"
for reason in budget_requests budget_rate budget_connections budget_bytes; do
  contains "$reason: stderr" "bulkhead run: $reason" "$err"
  contains "$reason: --json" "$reason" "$(field limits)"
  contains "$reason: the record" "\"limit\":\"$reason\"" "$(grep '"type":"limit"' "$work/record")"
done
