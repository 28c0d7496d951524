# Part of inspect.test: `bulkhead policy set` tightens what a running box may: a running request is cut, the next on an idle connection refused, the rest goes on.
# shellcheck shell=bash
cat >"$work/wide.yaml" <<'YAML'
version: 1
name: change
owner: tests
network:
  - { host: change.wild.test, ports: [9443], paths: ["/api/**", "/keep/**"], ca: ca.pem }
  - { host: gone.wild.test, ports: [9443], paths: ["/**"], ca: ca.pem }
YAML
sed -e '/gone/d' -e 's|"/api/\*\*", ||' "$work/wide.yaml" >"$work/tight.yaml"
mkdir -p "$work/empty"
(cd "$work/empty" && exec "$bulkhead" run --json --policy "$work/wide.yaml" --resolver "$resolver" --mount "$inspect:/inspect" --env PYTHONDONTWRITEBYTECODE=1 --timeout 50s \
  -- /usr/bin/python3 /inspect/change.py >"$work/change" 2>"$work/change.err" </dev/null) &
running=$!
for _ in $(seq 300); do grep -q READY "$work/change" && break; kill -0 $running 2>/dev/null || break; sleep 0.1; done
id=$("$bulkhead" ls | awk 'NR == 2 { print $1 }')
set_says=$("$bulkhead" policy set "$id" "$work/tight.yaml" 2>&1); set_status=$?
wait $running
equal "policy set: status" 0 "$set_status"
equal "policy set: what it says" "$id: policy of generation 2 holds, 3 connections or requests cut" "$set_says"
# became WHAT EXPECTED
became() { equal "after policy set: $1" "$2" "$(tail -1 "$work/change" | sed -nE "s/.*\"$1\": \"([^\"]*)\".*/\1/p")"; }
became running cut
became "running h2" "reset 8"
became idle path_not_allowed
became "h2, the next" path_not_allowed
became "a host that is gone" closed
became kept "200 ok"
became "h2, kept" "200 ok"
became "kept running" 234
became "kept running h2" "200 1234"
changed=$("$bulkhead" log "$id" --json | grep '"reason":"policy_changed"')
equal "after policy set: the record has the two requests" 2 "$(grep -c '"allow":false.*"type":"request"' <<<"$changed")"
equal "after policy set: and their ends" 2 "$(grep -c '"type":"request.end"' <<<"$changed")"
equal "after policy set: and the connection to the host that is gone" 1 "$(grep -c '"type":"egress.end"' <<<"$changed")"
equal "after policy set: nothing refused arrived" 3 "$(grep -c 'GET /api/.*Host: change' "$work/servers/seen")"
