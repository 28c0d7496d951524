#!/bin/bash
# Runs in the guest. Every limit is hit, for each kind of user.
. /opt/tests/lib-guest.sh "$1"
top=/sys/fs/cgroup
base=$top
prefix="root: "
programs=$build
chmod 755 "$work"
echo "    guest: Linux $(uname -r), $(grep -c ^processor /proc/cpuinfo) processors, up $(cut -d' ' -f1 /proc/uptime) s"

# The names of the tests say for whom they are.
eval "plain_$(declare -f ok)"; eval "plain_$(declare -f not_ok)"
ok() { plain_ok "$prefix$*"; }
not_ok() { plain_not_ok "$prefix$*"; }

nothing_left() {
  equal "no cgroup is left" "" "$(find "$base/bulkhead" -mindepth 1 -maxdepth 1 -type d 2>/dev/null)"
  equal "no live entry is left" "" "$(ls "$BULKHEAD_STATE/live" 2>/dev/null)"
  equal "no mount is left" "$mounts" "$(wc -l </proc/self/mounts)"
}

supervisor_of() { pgrep -f "^$programs/bulkhead run.*$1" | head -1; }

limits() {
  hit "memory" limit_memory 137 --memory 48MiB -- dd if=/dev/zero of=/dev/null bs=120M count=1
  hit "memory of a child, the command goes on" limit_memory 5 --memory 48MiB -- sh -c 'dd if=/dev/zero of=/dev/null bs=120M count=1; exit 5'
  hit "memory through files" limit_memory any --memory 48MiB --disk 1GiB -- sh -c 'dd if=/dev/zero of=/tmp/x bs=1M count=120; sleep 1'
  box --memory 64MiB -- dd if=/dev/zero of=/dev/null bs=30M count=1; equal "memory below the limit is given" 0 "$status"
  used=$(field usage.memory_peak)
  if [ "${used:-0}" -gt 30000000 ] && [ "$used" -lt 67108865 ]; then ok "its peak is told: $((used >> 20)) MiB"; else not_ok "its peak is told as «$used» after 30 MiB"; fi
  hit "processes" limit_processes any --pids 12 -- bash -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 2 & done; wait'
  hit "fork bomb" limit_processes 124 --pids 30 --timeout 2s -- bash -c 'bomb() { bomb | bomb & }; bomb; sleep 30'
  box --cpus 0.25 --timeout 2s -- sh -c 'while :; do :; done'
  used=$(field usage.cpu_ns)
  if [ "$used" -gt 100000000 ] && [ "$used" -lt 1000000000 ]; then ok "cpus: a quarter of a processor for two seconds used $((used / 1000000)) ms"; else not_ok "cpus: a quarter for 2 s used $used ns"; fi
  hit "disk" limit_disk 1 --disk 8MiB -- sh -c "dd if=/dev/zero of=/workspace/big bs=1M count=20"
  hit "open files" limit_open_files any --open-files 32 -- bash -c 'for i in $(seq 3 40); do eval "exec $i</dev/null"; done; sleep 1'
  hit "idle time" limit_idle 124 --idle 700ms -- sleep 60
}

inside_a_box() {
  (cd "$work/empty" && exec "$bulkhead" run -q --memory 64MiB --pids 20 --cpus 0.5 -- sh -c 'cat /proc/self/cgroup >/workspace/own; ls /sys/fs/cgroup >/workspace/fs 2>&1; echo ready; sleep 4242; :') >"$work/out" 2>&1 &
  wait_for grep -q ready "$work/out" || { not_ok "a long box starts: $(cat "$work/out")"; return; }
  id=$(ls "$BULKHEAD_STATE/live" | head -1); id=${id%%.*}
  cg=$base/bulkhead/$id
  equal "the box's cgroup has the limits" "67108864 0 21 50000 100000" \
    "$(cat "$cg/memory.max" "$cg/memory.swap.max" "$cg/pids.max" "$cg/cpu.max" 2>&1 | tr '\n' ' ' | sed -E 's/^([0-9]+ )([0-9]+ )?([0-9]+) ([0-9]+ [0-9]+) $/\1\2\3 \4/')"
  equal "its processes are in it, from the first" "bulkhead-agent sh sleep" \
    "$(for p in $(cat "$cg/cgroup.procs"); do cat "/proc/$p/comm"; done | sort | tr '\n' ' ' | sed 's/ $//')"
  equal "the supervisor isn't" "" "$(grep -x "$(supervisor_of 4242)" "$cg/cgroup.procs")"
  ended=$("$bulkhead" kill "$id" 2>&1) && ok "kill ends it" || not_ok "kill ends it: $ended"
  wait 2>/dev/null
  [ ! -e "$cg" ] && ok "and its cgroup is gone" || not_ok "and its cgroup is gone"
  contains "inside, the own cgroup is the root" "+0::/" "$("$bulkhead" diff "$id")"
  lacks "inside, no cgroup file system" "cgroup.procs" "$("$bulkhead" diff "$id")"
}

killed_supervisor() {
  (cd "$work/empty" && exec "$bulkhead" run -q -- sh -c 'echo ready; sleep 4343') >"$work/out" 2>&1 &
  wait_for grep -q ready "$work/out" || { not_ok "a box to be orphaned starts: $(cat "$work/out")"; return; }
  kill -KILL "$(supervisor_of 4343)"
  wait 2>/dev/null
  wait_for eval '! pgrep -f "sleep 4343" >/dev/null' && ok "the supervisor killed: the box ends" || not_ok "the supervisor killed: the box ends"
  contains "gc says what was left" "its supervisor was killed" "$("$bulkhead" gc 2>&1)"
  nothing_left
}

working_copy() { # FOLDER NAME
  local copy=$1 before
  rm -rf "$copy"; mkdir -p "$copy/sub/deep" "$copy/gone" "$copy/renamed"
  echo one >"$copy/a"; echo two >"$copy/sub/b"; echo three >"$copy/sub/deep/c"; echo x >"$copy/gone/x"; echo y >"$copy/renamed/y"
  printf '#!/bin/sh\n' >"$copy/exe"; chmod 755 "$copy/exe"; ln -s a "$copy/link"; chmod 600 "$copy/sub/b"; mkfifo "$copy/old-pipe"
  ${owner:+chown -R "$owner" "$copy"}
  before=$(cd "$copy" && find . -exec stat -c '%n %a %u %Y' {} + | sort; cat "$copy/a")
  box_dir=$copy box --dir-mode copy -- sh -e -c 'test "$(cat a sub/b sub/deep/c | tr "\n" " ")" = "one two three "; ./exe; test -O a; test "$(stat -c %a sub/b)" = 600
    echo changed >a; rm -r sub; mkdir sub; echo new >sub/n; rm gone/x; rmdir gone; mv renamed moved; chmod 700 exe; ln -s moved/y link2; mkfifo pipe; touch sub/n'
  equal "$2: the job runs" "0" "$status"
  [ "$status" = 0 ] || { echo "    $err"; return; }
  equal "$2: the original is untouched" "$before" "$(cd "$copy" && find . -exec stat -c '%n %a %u %Y' {} + | sort; cat "$copy/a")"
  equal "$2: what changed is told" "a exe gone gone/x link2 moved moved/y pipe renamed sub/b sub/deep sub/deep/c sub/n" "$("$bulkhead" diff "$id" --name-only | sed 's/.* => //; s,/$,,' | sort | tr '\n' ' ' | sed 's/ $//')"
  check "$2: it is applied" "$bulkhead" apply "$id"
  equal "$2: as it was in the box" "changed new y 700 moved/y" "$(cd "$copy" && echo $(cat a sub/n moved/y) $(stat -c %a exe) $(readlink link2))"
  equal "$2: what was deleted is gone" "" "$(cd "$copy" && ls -d sub/b sub/deep gone renamed 2>/dev/null)"
  equal "$2: files belong to the folder's owner" "" "$(find "$copy" ! -user "$(stat -c %u "$copy")")"
}

everything() {
  mounts=$(wc -l </proc/self/mounts)
  doctor=$("$bulkhead" doctor 2>&1)
  for row in "ready *container" "enforced *cpus *by cgroup v2" "enforced *memory *by cgroup v2 memory.max, swap 0" "enforced *processes *by cgroup v2" "enforced *disk" "present *cgroup *version 2"; do
    if grep -qE "^ *$row" <<<"$doctor"; then ok "doctor: $row"; else not_ok "doctor: $row: $(grep -E "${row##*\*}" <<<"$doctor" | head -3)"; fi
  done
  box -- echo fine; equal "the default limits: the box runs" "0 fine" "$status $out"
  [ "$status" = 0 ] || { echo "    $err"; return; }
  equal "and is gone" true "$(field clean)"
  limits
  inside_a_box
  killed_supervisor
  working_copy "$home/project" "a copy of a folder on ext4"
  working_copy "/run/$USER-project" "a copy of a folder on tmpfs"
  box --allow allowed.example -- sh -c 'wget -q -O- http://denied.example/; wget -q -O- http://10.1.2.3/; exit 7'
  equal "the gate works: status" 7 "$status"
  contains "and denies" '"denied":' "$json"; lacks "and counts" '"denied":0' "$json"
  if [[ $doctor == *"are copied whole"* ]]; then
    dd if=/dev/zero of="$home/project/big" bs=1M count=6 2>/dev/null; chown "$owner" "$home/project/big"
    box_dir=$home/project box --disk 4MiB -- true
    equal "a folder that has to be copied whole and doesn't fit is refused" 125 "$status"
    contains "with the fix" "raise the limit with --disk" "$err"
    chmod 0 "$home/project/big"; chown 0:0 "$home/project/big"
    box_dir=$home/project box -- true
    equal "and one that can't be read whole" 125 "$status"
    contains "by its name" '"big"' "$err"
  fi
  for i in 1 2 3 4 5 6; do (cd "$work/empty" && "$bulkhead" run -q -- sh -c 'dd if=/dev/zero of=/tmp/x bs=1M count=4 2>/dev/null; wc -c </tmp/x') & done >"$work/six" 2>&1; wait
  equal "six at once" "4194304 4194304 4194304 4194304 4194304 4194304" "$(tr '\n' ' ' <"$work/six" | sed 's/ $//')"
  nothing_left
}

as_root() {
  export USER=root; home=/root owner=
  "$build/test-isolate-cgroup" >"$work/unit" 2>&1 && ok "the cgroup's unit tests" || { not_ok "the cgroup's unit tests"; cat "$work/unit"; }
  mkdir -p "$work/empty"
  everything
}

# A cgroup namespace with processes in its root, as containers have: these have to be moved out of the way.
as_root_in_a_container() {
  prefix="root in a container: "
  mkdir -p "$top/container"
  export -f in_container
  (echo "$BASHPID" >"$top/container/cgroup.procs"; exec unshare -C -m bash -c 'in_container "$@"' - "$work" "$bulkhead") >"$work/out" 2>&1
  equal "the box runs where a cgroup is the root" "before: in the root
inside: 0::/
67108864
after: in /bulkhead-main
left: " "$(cat "$work/out")"
}
in_container() {
  umount -l /sys/fs/cgroup; mount -t cgroup2 cgroup /sys/fs/cgroup
  cd "$1/empty" || exit
  grep -qx "$$" /sys/fs/cgroup/cgroup.procs && echo "before: in the root"
  "$2" run -q --memory 64MiB -- sh -c 'echo "inside: $(cat /proc/self/cgroup)"; sleep 1' & sleep 0.9
  cat /sys/fs/cgroup/bulkhead/*/memory.max; wait
  echo "after: in $(cut -d: -f3 /proc/self/cgroup)"
  echo "left: $(find /sys/fs/cgroup/bulkhead -mindepth 1 -maxdepth 1 -type d)"
}

# A command for $bulkhead that runs it as the user in that cgroup, or where its processes were moved to, as a descendant of these would be.
as_user_in() { # CGROUP
  cat >"$work/as-user" <<END
#!/bin/bash
exec 3>&2 2>/dev/null
echo \$\$ >$1/cgroup.procs || echo \$\$ >$1/bulkhead-main/cgroup.procs || exit 99
exec 2>&3 3>&-
export HOME=/home/person USER=person LOGNAME=person
exec setpriv --reuid 1001 --regid 1001 --clear-groups -- $programs/bulkhead "\$@"
END
  chmod 755 "$work/as-user"
  bulkhead=$work/as-user
}

as_user() {
  mkdir -p /home/person "$work/user"; chown 1001:1001 /home/person "$work/user" "$work/empty"
  export BULKHEAD_STATE=$work/user/state USER=person; home=/home/person owner=1001:1001
  # A shell's cgroup, as a login gives it: root's.
  prefix="user without delegation: "
  mkdir -p "$top/session"; echo "+cpu +memory +pids" >"$top/cgroup.subtree_control"
  as_user_in "$top/session"
  box -- true
  equal "the default limits are refused" 125 "$status"
  contains "with the fix" "systemd-run --user --scope -p Delegate=yes" "$err"
  contains "by the limits' names" "cpus and memory" "$err"
  doctor=$("$bulkhead" doctor 2>&1)
  contains "doctor says it too" "Delegate=yes" "$(grep -E ' memory ' <<<"$doctor")"
  box --memory unlimited --cpus unlimited --pids 12 -- bash -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 1 & done; wait; :'
  contains "processes are limited all the same" "fork: " "$err"
  equal "nothing was made" "" "$(find "$top/session" "$top/bulkhead" -mindepth 1 -type d 2>/dev/null)"

  # What systemd-run --user --scope -p Delegate=yes gives: the folder and its files for moving processes and handing down controllers.
  prefix="user with a delegated cgroup: "
  base=$top/user/run.scope
  mkdir -p "$base"; echo "+cpu +memory +pids" >"$top/user/cgroup.subtree_control"
  chown 1001:1001 "$base" "$base"/cgroup.{procs,threads,subtree_control}
  as_user_in "$base"
  everything
  equal "its own processes were moved aside" "" "$(cat "$base/cgroup.procs")"

  prefix="user whose cgroup lacks a controller: "
  mkdir -p "$top/part/run.scope"; echo "+memory +pids" >"$top/part/cgroup.subtree_control"
  chown 1001:1001 "$top/part/run.scope" "$top/part/run.scope"/cgroup.{procs,threads,subtree_control}
  as_user_in "$top/part/run.scope"
  box -- true
  equal "the limit on cpus is refused" 125 "$status"
  contains "with the fix" "Delegate=cpu memory pids" "$err"
  box --cpus unlimited --memory 48MiB -- dd if=/dev/zero of=/dev/null bs=120M count=1; equal "without it the others are enforced" 137 "$status"
}

as_root
as_root_in_a_container
as_user
echo "    guest: up $(cut -d' ' -f1 /proc/uptime) s"
finish
