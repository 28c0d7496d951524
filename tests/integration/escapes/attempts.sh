# Shared by the suites that make escape attempts; behind lib.sh. shellcheck shell=bash
# prepare_host puts things on the host that an attempt could reach and returns what to tell the probe in $facts; attempt_group judges.
probe=$build/tests/integration/escapes/escape-probe
marks=() # files of ours in the host's system folders

undo_host() {
  local m
  exec 7>&-
  [ -n "${canary:-}" ] && kill "$canary" 2>/dev/null
  for m in "${marks[@]}"; do rm -rf "$m"; done
  cleanup
}

mark() { marks+=("$1"); }

# prepare_host: as root. $copy is the working copy, $work/secret a file nobody shows to the box.
prepare_host() {
  local name=bulkhead-escape-$$ pipe
  [ -x "$probe" ] || { not_ok "the probe isn't built: $probe"; finish; }
  trap undo_host EXIT
  trap 'exit 143' TERM INT HUP # the marks below must not outlive a suite that is stopped
  chmod 755 "$work"
  copy=$work/copy; mkdir -p "$copy"
  echo "token-$name" >"$work/secret"
  echo content >"$copy/file"
  ln -s "$work" "$copy/to-outside"
  cp "$probe" "$copy/probe"
  cp "$probe" "$copy/probe-setuid"; chown 12345:12345 "$copy/probe-setuid"; chmod 6755 "$copy/probe-setuid" # root would be the box's own user, as the folder's owner
  cp "$probe" "$copy/probe-capable"
  # CAP_SETUID and CAP_SYS_ADMIN, permitted and effective, as setcap(8) writes them
  /usr/bin/python3 -c 'import os,struct,sys; os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 0x200080, 0, 0, 0))' "$copy/probe-capable"
  mark /usr/local/share/$name; mkdir -m 777 /usr/local/share/$name; chmod 777 /usr/local/share/$name
  mark /usr/local/share/$name-owned; echo owned >/usr/local/share/$name-owned; chown 1000:1000 /usr/local/share/$name-owned; chmod 600 /usr/local/share/$name-owned
  mark /etc/$name; echo etc >/etc/$name
  mark /dev/$name; mknod -m 666 /dev/$name c 1 3
  sleep 3600 & canary=$!
  pipe=$work/host-stdin; mkfifo "$pipe"
  /usr/bin/python3 "$here/escapes/host.py" "$work" "$copy" <"$pipe" >"$work/host" 2>"$work/host-errors" & server_pids+=($!)
  exec 7>"$pipe"
  local i; for i in $(seq 100); do grep -q READY "$work/host" && break; sleep 0.1; done
  grep -q READY "$work/host" || { cat "$work/host-errors"; not_ok "the host's listeners start"; finish; }
  local disk; disk=$(lsblk -dnpo NAME 2>/dev/null | head -1)
  facts="pid=$canary $(head -1 "$work/host") hostname=$(hostname) writable=/usr/local/share/$name/new secret=$work/secret etc=/etc/$name \
owned=/usr/local/share/$name-owned token=token-$name disk=${disk:-/dev/sda} device=/dev/$name"
  export BULKHEAD_TEST_TOKEN=token-$name SSH_AUTH_SOCK=$work/host.sock
  facts_run=$(tr ' ' '\n' <<<"$facts" | sed -n 's/^run=//p')
}

# What must be the same before and after. The clock is compared apart: it goes on.
host_state() {
  local f
  for f in kernel/core_pattern kernel/modprobe kernel/hostname kernel/domainname kernel/randomize_va_space fs/suid_dumpable vm/overcommit_memory \
    user/max_user_namespaces net/ipv4/ip_forward net/ipv4/ip_default_ttl kernel/ns_last_pid; do
    [ $f = kernel/ns_last_pid ] || echo "$f $(cat /proc/sys/$f 2>/dev/null)"
  done
  stat -c '%n %a %u %g %t %T' /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /usr/bin/env /etc/passwd /etc/shadow /usr /etc
  sha256sum /etc/passwd /etc/shadow /usr/bin/env "$work/secret"
  grep bulkhead-escape /proc/self/mountinfo
  cat /proc/swaps
  ls -A /usr/local/share/bulkhead-escape-$$
  (cd "$copy" && find . -printf '%p %m %U %G %s %l\n' | sort)
  [ -d /proc/"$canary" ] && echo "canary alive, nice $(ps -o ni= -p "$canary"), cpus $(taskset -pc "$canary" | sed 's/.*: //'), $(grep -i 'open files' /proc/"$canary"/limits)"
  cat "$work/contacts"
}
clock_offset() { local up; read -r up _ </proc/uptime; echo $(($(date +%s) - ${up%.*})); }

declare -A want_denied want_errors
load_table() {
  local group name denied errors
  while read -r group name denied errors; do
    want_denied[$name]=$denied; want_errors[$name]=$errors
  done < <("$probe" list)
}

# Before Linux 6.10, kernels with "bpf" among their security modules (Debian 12's) let anybody label own files: then that is no escape.
anybody_may_label() {
  : >"$work/label" && chown 65534:65534 "$work/label"
  setpriv --reuid 65534 --regid 65534 --clear-groups -- /usr/bin/python3 -c 'import os,sys; os.setxattr(sys.argv[1], "security.escape", b"x")' "$work/label" 2>/dev/null
}

# judge NAME VERDICT DETAIL DENIALS: refused as the table says, and on the record where the table says so
judge() {
  local name=$1 verdict=$2 detail=$3 denials=$4 errors=${want_errors[$1]:-}
  if [ -z "$errors" ]; then not_ok "$prefix$name: not in the table"; return; fi
  if [ "$name $verdict" = "security-label SUCCEEDED" ] && anybody_may_label; then skip "$prefix$name: this kernel lets everybody do that"; return; fi
  if [ "$verdict" != refused ]; then not_ok "$prefix$name: $verdict $detail"; return; fi
  if [[ "|$errors|" != *"|${detail%% *}|"* ]]; then not_ok "$prefix$name: refused with $detail, expected $errors"; return; fi
  if [ "${want_denied[$name]}" != - ] && ! grep -qF "${want_denied[$name]} by $name " <<<"$denials"; then
    not_ok "$prefix$name: the denial of ${want_denied[$name]} isn't on the record"; return
  fi
  ok "$prefix$name"
}

# attempt_group GROUP [OPTIONS…]: one box; every attempt of the group must report, and the record must hold command, output and denials
attempt_group() {
  local group=$1 name verdict detail denials got=0 want before after offset log; shift
  before=$(host_state); offset=$(clock_offset)
  # shellcheck disable=SC2086
  box_dir=$copy box --timeout 60s "$@" -- ./probe "$group" $facts
  after=$(host_state)
  want=$("$probe" list | grep -c "^$group ")
  denials=$("$bulkhead" log "$id" --kind denial)
  while read -r name verdict detail; do
    [ -n "$name" ] || continue
    got=$((got + 1)); judge "$name" "$verdict" "$detail" "$denials"
  done <<<"$out"
  equal "$prefix$group: every attempt has reported" "$want 0" "$got $status"
  equal "$prefix$group: the host is as it was" "$before" "$after"
  offset=$((offset - $(clock_offset))); [ ${offset#-} -le 1 ] && ok "$prefix$group: the clock is as it was" || not_ok "$prefix$group: the clock jumped by $offset s"
  equal "$prefix$group: the output is on the record" "$out" "$("$bulkhead" log "$id" --output 2>/dev/null)"
  log=$("$bulkhead" log "$id" --kind exec.start); contains "$prefix$group: the command is on the record" "./probe $group" "$log"
  equal "$prefix$group: the box ended clean" true "$(field clean)"
}

# How many inotify instances this user may still make: now, and while a box holds all that it can get.
inotify_left() { /usr/bin/python3 -c 'import ctypes; c = ctypes.CDLL(None); print(sum(c.inotify_init1(0) >= 0 for _ in range(2000)))'; }
inotify_left_beside_bomb() {
  local holder i
  rm -f "$work/hold"; mkfifo "$work/hold"; : >"$work/watches"
  (cd "$copy" && exec "$bulkhead" run -q -- sh -c './probe bomb watches 5000 & read -r line' <"$work/hold" >"$work/watches" 2>&1) & holder=$!
  exec 6>"$work/hold"
  for i in $(seq 100); do grep -q '^watches [1-9]' "$work/watches" && break; sleep 0.05; done
  if grep -q '^watches [1-9]' "$work/watches"; then inotify_left; else cat "$work/watches"; fi
  exec 6>&-; wait $holder
}
