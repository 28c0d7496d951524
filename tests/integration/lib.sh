# Shared by the integration suites: `. "$(dirname "$0")/lib.sh" "$1"`. Each suite is run with the build folder and ends with `finish`.
# shellcheck shell=bash
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-build}" && pwd)
bulkhead=$build/bulkhead
work=$(mktemp -d /tmp/bulkhead-test.XXXXXX)
export BULKHEAD_STATE=$work/state
unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy ALL_PROXY NO_PROXY no_proxy
passed=0 failed=0 skipped=0
server_pids=()

cleanup() {
  local p
  for p in "${server_pids[@]}"; do kill "$p" 2>/dev/null; done
  rm -rf "$work"
}
trap cleanup EXIT

ok() { passed=$((passed + 1)); echo "ok - $*"; }
not_ok() { failed=$((failed + 1)); echo "not ok - $*"; }
skip() { skipped=$((skipped + 1)); echo "skip - $*"; }

# check NAME COMMAND…: the command must succeed.
check() {
  local name=$1 out; shift
  if out=$("$@" 2>&1); then ok "$name"; else not_ok "$name"; sed 's/^/    /' <<<"$out" | tail -20; fi
}

# equal NAME EXPECTED GOT
equal() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: expected «$2», got «$3»"; fi; }

# contains NAME NEEDLE TEXT
contains() { if [[ $3 == *"$2"* ]]; then ok "$1"; else not_ok "$1: «$2» is not in «${3:0:600}»"; fi; }
lacks() { if [[ $3 != *"$2"* ]]; then ok "$1"; else not_ok "$1: «$2» is in «${3:0:600}»"; fi; }

# box OPTIONS… -- COMMAND…: runs quietly in an empty folder; sets $out, $err, $status, $json (last line of stderr).
box() {
  mkdir -p "$work/empty"
  out=$(cd "${box_dir:-$work/empty}" && "$bulkhead" run --json "$@" 2>"$work/err" </dev/null)
  status=$?
  err=$(cat "$work/err")
  json=$(tail -1 "$work/err")
  id=$(sed -nE 's/.*"id":"([a-z0-9]+)".*/\1/p' <<<"$json")
}

# field NAME: a top-level string, number or list of $json
field() { /usr/bin/python3 -c 'import json,sys; v=json.loads(sys.argv[1])
for k in sys.argv[2].split("."): v=v[k]
print(v if not isinstance(v,(list,dict,bool)) else json.dumps(v))' "$json" "$1"; }

# servers: local DNS, HTTP, HTTPS, raw echo and others (servers.py), run through the command servers_through if set; sets DNS_PORT HTTP_PORT
# HTTPS_PORT ECHO_PORT SINK_PORT FIRST_PORT CA SERVER_LOG
servers_through=()
start_servers() {
  mkdir -p "$work/servers"
  "${servers_through[@]}" /usr/bin/python3 "$here/servers.py" "$work/servers" "$@" >"$work/servers/ports" 2>"$work/servers/errors" &
  server_pids+=($!)
  local i
  for i in $(seq 100); do grep -q READY "$work/servers/ports" && break; sleep 0.1; done
  grep -q READY "$work/servers/ports" || { cat "$work/servers/errors"; not_ok "local servers start"; finish; }
  # shellcheck disable=SC1090
  eval "$(grep = "$work/servers/ports")"
  SERVER_LOG=$work/servers/log
}

finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
  exit
}
