# Shared by the suites that need a world outside: `. "$(dirname "$0")/world.sh" "$@"`, instead of lib.sh.
#
# The suite runs in a network namespace of its own, one link away from a host that has every address there is (egress/world.py), so that whatever
# is dialled, looked up or sent is answered, and written down: by the servers there, and by a watcher of the packets that leave.
# more_names: names that the suite needs besides, as servers.py takes them.
# shellcheck shell=bash
if [ "${TEST_WORLD:-}" != made ]; then
  if ! problem=$(unshare -n ip link set lo up 2>&1); then
    echo "skip - $(basename "$0"): needs a network namespace of its own and iproute2, as root: $problem"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  fi
  exec env TEST_WORLD=made unshare -n "$0" "$@"
fi
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh" "${1:-build}"
egress=$here/egress
resolver=11.1.1.2

ip link set lo up
unshare -n sleep 600 &
far=$!
server_pids+=("$far")
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
ip link add va type veth peer name vb netns "$far"
ip addr add 11.1.1.1/24 dev va; ip addr add 2a00:1:1::1/64 dev va nodad; ip link set va up
servers_through=(nsenter -t "$far" -n --)
"${servers_through[@]}" sh -c 'ip link set lo up; ip addr add 11.1.1.2/24 dev vb; ip addr add 2a00:1:1::2/64 dev vb nodad; ip link set vb up
  ip route add local 0.0.0.0/0 dev lo table main; ip -6 route add local ::/0 dev lo table main'
ip route add default via 11.1.1.2; ip -6 route add default via 2a00:1:1::2
mapfile -t world_names < <(/usr/bin/python3 -B "$egress/world.py")
start_servers --internet "$resolver" "${world_names[@]}" ${more_names[@]+"${more_names[@]}"}
mkdir -p "$work/empty"
/usr/bin/python3 -B "$egress/watch.py" "$work/packets" "$work/empty" >"$work/watch" &
watcher=$!
server_pids+=("$watcher")
until grep -q READY "$work/watch"; do sleep 0.05; done
