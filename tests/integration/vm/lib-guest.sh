# shellcheck shell=bash
# lib.sh in a guest without Python.
. /opt/tests/lib.sh "$1"

field() { # NAME or LIST.NAME: by its last part, which is enough for the summary of a run
  sed -nE 's/.*"'"${1##*.}"'":(\[[^]]*\]|"[^"]*"|[^,}]*).*/\1/p' <<<"$json"
}

# hit NAME REASON STATUS OPTIONS… -- COMMAND…
hit() {
  local name=$1 reason=$2 want=$3; shift 3
  box "$@"
  [ "$want" = any ] || equal "$name: status" "$want" "$status"
  contains "$name: --json" "$reason" "$(field limits)"
  contains "$name: stderr" "bulkhead run: $reason" "$err"
}

# wait_for COMMAND…: up to ten seconds
wait_for() {
  local i
  for i in $(seq 100); do "$@" 2>/dev/null && return 0; sleep 0.1; done
  return 1
}
