#!/bin/bash
# launch-box.sh BUILD: the launcher's promises, each tried on a real box: view, ids, working copy, limits, refused calls, end. As root everything is
# tried twice, as root and as an ordinary user; else once. Prints TAP.
set -u
build=$(cd "${1:?usage: launch-box.sh BUILD}" && pwd)
work=$(mktemp -d /tmp/launch-box-XXXXXX) || exit 1
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/escape"
cp "$build/bulkhead-launch" "$build/src/isolate/launch-driver" "$work/bin/" || exit 1
cp "$build/src/isolate/launch-agent" "$work/bin/bulkhead-agent" || exit 1
cp "$build/src/isolate/launch-escape" "$work/escape/" || exit 1
export BULKHEAD_LIBEXEC=$work/bin
n=0 bad=0
as=() who=
box() { timeout 60 "${as[@]}" "$work/bin/launch-driver" --quiet "$@" 2>&1; }
ok() { # ok NAME: by the status of the command before
  local r=$?
  n=$((n + 1))
  if [ $r = 0 ]; then echo "ok $n - $who: $1"; else echo "not ok $n - $who: $1"; bad=$((bad + 1)); fi
}
is() { # is NAME GOT WANTED
  [ "$2" = "$3" ]; ok "$1"
  [ "$2" = "$3" ] || printf '# got:    %s\n# wanted: %s\n' "${2//$'\n'/$'\n'# }" "$3"
}
has() { # has NAME GOT PATTERN
  grep -qE -- "$3" <<<"$2"; ok "$1"
  grep -qE -- "$3" <<<"$2" || printf '# got: %s\n' "${2//$'\n'/$'\n'# }"
}

tree() { # a fresh folder of the user under test
  rm -rf "$work/tree"; mkdir -p "$work/tree/sub"
  echo one >"$work/tree/a"; echo two >"$work/tree/sub/b"; echo '#!/bin/sh' >"$work/tree/exe"; chmod 755 "$work/tree/exe"; chmod 751 "$work/tree"
  [ ${#as[@]} = 0 ] || chown -R 65534:65534 "$work/tree"
}

view() {
  is "ids" "$(box 'echo $(id -u) $(id -g) $(id -Gn)')" "1000 1000 agent"
  is "privileges" "$(box 'grep -E "^(Cap|NoNew|Seccomp:)" /proc/self/status | tr -d "\t" | tr "\n" " "')" \
    "CapInh:0000000000000000 CapPrm:0000000000000000 CapEff:0000000000000000 CapBnd:0000000000000000 CapAmb:0000000000000000 NoNewPrivs:1 Seccomp:2 "
  is "the agent is pid 1, nothing else runs" "$(box 'set -- /proc/[0-9]*; echo $# $(cat /proc/1/comm)')" "2 bulkhead-agent"
  is "root folder" "$(box 'ls / | tr "\n" " "' | sed -E 's/lib(32|64|x32) //g')" "bin dev etc home lib mnt opt proc run sbin srv sys tmp usr var "
  is "devices" "$(box 'ls /dev | tr "\n" " "')" "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "
  is "no set-id, no device on any mount" "$(box 'grep -v " /dev/[a-z]* \| /proc/[a-z]* " /proc/self/mounts | grep -vE "nosuid.*(nodev|devpts)|devpts"')" ""
  is "writable places" "$(box 'find / -xdev -type d -writable 2>/dev/null; for d in /tmp /var/tmp /run /home/agent /dev/shm; do test -w $d && echo $d; done' | sort -u | tr '\n' ' ')" \
    "/dev/shm /home/agent /run /tmp /var/tmp "
  is "no descriptor but the pipe" "$(box 'ls /proc/self/fd | tr "\n" " "')" "0 1 2 3 "
  is "host name" "$(box 'hostname; cat /etc/hostname' | tr '\n' ' ')" "box box "
  is "network" "$(box 'ls /proc/sys/net/ipv4/conf; cat /proc/sys/net/ipv4/ip_unprivileged_port_start' | tr '\n' ' ')" "all default lo 0 "
  is "no core handler can be started" "$(box 'ulimit -c 0; ulimit -c 5; grep core /proc/self/limits | tr -s " "')" "Max core file size 1 1 bytes "
  has "egress: synthetic addresses are local" "$(box --egress 'grep -c 198.18 /proc/net/fib_trie; grep -ci fd00b0114ead /proc/net/ipv6_route')" '^[1-9]'
  has "no egress: they are not" "$(box 'grep -c 198.18 /proc/net/fib_trie')" '^0$'
  is "time zone, names, certificates" "$(box 'test -s /etc/passwd && test -e /etc/ssl/certs && getent passwd agent && getent hosts localhost >/dev/null && echo yes' | tail -1)" "yes"
  is "credential files stay outside" "$(box 'ls -d /etc/shadow /etc/npmrc /etc/pip.conf /etc/gitconfig /etc/ssh /etc/ssl/private /root /var/run/docker.sock 2>/dev/null')" ""
}

copies() {
  tree
  before=$(cd "$work/tree" && find . -printf '%p %m %u %T@\n' | sort; cat "$work/tree/a")
  is "a copy: seen as the user's own" "$(box --mount "$work/tree:/workspace:copy" 'cd /workspace && stat -c "%n %U %a" . a exe sub | tr "\n" " "')" \
    ". agent 751 a agent 644 exe agent 755 sub agent 755 "
  out=$(box --upper --mount "$work/tree:/workspace:copy" 'cd /workspace && echo more >>a && rm exe && rm -r sub && mkdir sub && echo n >sub/n && ln -s a l && cat a sub/n && mv sub sub2 && ls')
  is "a copy: changed inside" "$(grep -v '^[a-z] [0-9]' <<<"$out" | tr '\n' ' ')" "one more n a l sub2 "
  if grep -q ' whole \./0$' <<<"$out"; then # an ordinary user before Linux 6.6
    is "a copy: whole" "$(grep -E ' whole ./0/(exe|sub.*|a|l)$' <<<"$out" | cut -d' ' -f1,4-)" "$(printf '%s\n' 'f whole ./0/a' 'l whole ./0/l' 'd whole ./0/sub2' 'f whole ./0/sub2/n')"
  else
    has "a copy: changes in the upper folder" "$out" '^c 0 .* \./0/exe$'
  fi
  is "a copy: the original is untouched" "$(cd "$work/tree" && find . -printf '%p %m %u %T@\n' | sort; cat "$work/tree/a")" "$before"
  is "read-only" "$(box --mount "$work/tree:/workspace:ro" 'cd /workspace && cat a && { touch a || echo no; } 2>/dev/null' | tr '\n' ' ')" "one no "
  is "read-write: by the original's owner" "$(box --mount "$work/tree:/workspace:rw" 'cd /workspace && echo new >made && stat -c %U made'; stat -c '%u' "$work/tree/made" "$work/tree" | uniq | wc -l)" \
    "$(printf 'agent\n1')"
  is "a single file" "$(box --mount "$work/tree/a:/home/agent/x/file:ro" 'cat /home/agent/x/file')" "one"
  is "mounts inside mounts" "$(box --mount "$work/tree:/workspace:copy" --mount "$work/tree/sub:/workspace/deep/er:ro" 'cat /workspace/deep/er/b')" "two"
  has "no place is made in a folder of the host" "$(box --mount "$work/tree:/w:rw" --mount "$work/tree/sub:/w/none:ro" true)" 'nothing is created'
  [ ! -e "$work/tree/none" ]; ok "indeed not"
  has "nor below /usr" "$(box --mount "$work/tree:/usr/local/none:ro" true)" 'belongs to the box'
  ln -s "$work" "$work/tree/out"
  has "a link in the target's way is refused" "$(box --mount "$work/tree:/w:rw" --mount "$work/tree/sub:/w/out:ro" true)" "can't reach the place|can't mount"
  rm "$work/tree/out"
  is "twenty mounts" "$(box $(for i in $(seq 20); do echo "--mount $work/tree:/m/$i:copy"; done) 'ls /m | wc -l; cat /m/20/a' | tr '\n' ' ')" "20 one "
}

# What the supervisor lays over the host's certificates, and puts into the home.
files() {
  echo ours >"$work/ours"; chmod 644 "$work/ours"
  local certs=etc/ssl/certs host link
  host=$(find /etc/ssl/certs/ -mindepth 1 ! -name ca-certificates.crt -printf '%P %l\n' | sort | md5sum)
  link=$(find /etc/ssl/certs/ -type l -printf '%P\n' | sort | head -1)
  is "a file over the host's" "$(box --file "$work/ours:$certs/ca-certificates.crt" 'cat /etc/ssl/certs/ca-certificates.crt')" "ours"
  is "the rest of the folder is the host's" "$(box --file "$work/ours:$certs/ca-certificates.crt" 'find /etc/ssl/certs/ -mindepth 1 ! -name ca-certificates.crt -printf "%P %l\n" | sort | md5sum')" "$host"
  [ -z "$link" ] || is "a file in the place of a link" "$(box --file "$work/ours:$certs/$link" "cat '/etc/ssl/certs/$link'")" "ours"
  is "files in a folder inside, which the host may lack" "$(box --file "$work/ours:$certs/new/a" --file "$work/ours:etc/pki/tls/certs/b" 'cat /etc/ssl/certs/new/a /etc/pki/tls/certs/b' | tr '\n' ' ')" "ours ours "
  has "read-only" "$(box --file "$work/ours:$certs/new" 'for f in new ca-certificates.crt fresh; do echo x >/etc/ssl/certs/$f; rm -f /etc/ssl/certs/$f; mv /etc/ssl/certs /etc/ssl/other; done; cat /etc/ssl/certs/new' | tr '\n' ' ')" \
    '(Read-only file system|Device or resource busy).* ours $'
  is "in the home: the workload's own" "$(box --file "$work/ours:home/.a/b/c" 'cd && stat -c "%n %U %G %a" .a .a/b .a/b/c && echo more >>.a/b/c && cat .a/b/c' | tr '\n' ' ')" ".a agent agent 700 .a/b agent agent 700 .a/b/c agent agent 600 ours more "
  is "nothing is left on the host" "$(ls /etc/ssl/certs/new /etc/ssl/certs/fresh /tmp/layer 2>/dev/null)" ""
  has "no other place" "$(box --file "$work/ours:etc/passwd" true)" 'no file of ours belongs'
  has "they take nothing of what the box may write" "$(head -c 3M /dev/zero >"$work/big"; chmod 644 "$work/big"; box --disk 1MiB --file "$work/big:$certs/big" 'stat -c %s /etc/ssl/certs/big')" '^3145728$'
  has "what isn't a memory file of ours is refused" "$(box --file /dev/zero:$certs/x true)" "can't write"
}

# As root, on a file system that can't be id-mapped (overlay, as in most containers): a plain copy stands in, within the disk limit.
plain_copies() {
  [ "$(id -u)" = 0 ] && [ ${#as[@]} = 0 ] || return 0
  tree; mkdir -p "$work/ov/up" "$work/ov/work" "$work/ov/at"
  ln -s ../gone "$work/tree/link"; mkfifo "$work/tree/pipe"
  on_overlay() {
    unshare -m sh -c 'mount -t tmpfs x "$0/ov" && mkdir "$0/ov/up" "$0/ov/work" "$0/ov/at" &&
      mount -t overlay -o "lowerdir=$0/tree,upperdir=$0/ov/up,workdir=$0/ov/work" x "$0/ov/at" && chmod 751 "$0/ov/at" && shift && exec "$@"' "$work" - \
      timeout 60 "$work/bin/launch-driver" --quiet "$@" 2>&1
  }
  is "plain copy: seen as the user's own" "$(on_overlay --mount "$work/ov/at:/workspace:copy" 'cd /workspace && stat -c "%n %U %a" . a exe sub link | tr "\n" " "; cat sub/b; ls -d pipe 2>/dev/null')" \
    ". agent 751 a agent 644 exe agent 755 sub agent 755 link agent 777 two"
  has "plain copy: changes in the upper folder" "$(on_overlay --upper --mount "$work/ov/at:/workspace:copy" 'rm /workspace/exe')" '^c 0 .* \./0/exe$'
  head -c 4M /dev/zero >"$work/tree/big"
  has "plain copy: within the disk limit" "$(on_overlay --disk 2MiB --mount "$work/ov/at:/workspace:copy" true)" "doesn't fit into the sandbox's disk limit"
  has "read-only is refused there, with the fix" "$(on_overlay --mount "$work/ov/at:/workspace:ro" true)" "can't be id-mapped.*use mode copy"
}

limits() {
  is "disk, over all writable places" "$(box --disk 8MiB --mount "$work/tree:/workspace:copy" 'for d in /tmp /var/tmp /run /home/agent /dev/shm /workspace; do
    head -c 9M /dev/zero >$d/x 2>/dev/null && echo "$d took it"; rm -f $d/x; done')" ""
  is "disk, by many files" "$(box --disk 1MiB 'i=0; while :; do i=$((i+1)); true >/tmp/$i || break; [ $i -lt 100000 ] || break; done 2>/dev/null; [ $i -lt 70000 ] && echo bounded')" "bounded"
  has "processes" "$(box --pids 20 'for i in $(seq 60); do sleep 2 & done; wait')" 'fork'
  is "processes, counted for this box alone" "$(box --pids 60 'for i in $(seq 50); do sleep 0.2 & done; wait; echo fine')" "fine"
  [ "$(id -u)" = 0 ] && [ ${#as[@]} = 0 ] || return 0
  has "memory" "$(box --usage --memory 64MiB 'head -c 300M /dev/zero | tail -n 1 >/dev/null')" 'oom_kills=[1-9]'
  has "memory of files counts too" "$(box --usage --memory 32MiB --disk 1GiB 'head -c 200M /dev/zero >/tmp/x; echo survived')" 'oom_kills=[1-9]'
  has "processor time" "$(box --usage --cpus 200 'timeout 2 sh -c "while :; do :; done"')" 'cpu_ms=(3|4|5)..'
  has "refused forks are counted" "$(box --usage --pids 10 'for i in $(seq 30); do (sleep 1 &) ; done; sleep 1')" 'pids_denied=[1-9]'
}

escapes() {
  out=$(box --mount "$work/escape:/escape:ro" /escape/launch-escape)
  has "attempts to get out" "$out" '^total 1[5-9][0-9] escaped 0$'
  grep ESCAPED <<<"$out"
  for call in unshare clone setns mount umount2 pivot_root chroot open_tree fsopen mount_setattr ptrace process_vm_readv pidfd_getfd mknodat socket socketpair \
    bpf perf_event_open userfaultfd io_uring_setup keyctl add_key init_module kexec_load reboot swapon acct clock_settime sethostname syslog \
    fanotify_init open_by_handle_at ioctl chmod fchmod openat seccomp; do
    grep -q "^DENIED $call by launch-escape" <<<"$out"; ok "recorded: $call"
  done
  # The attempts are real: outside, an ordinary user gets many of them through.
  outside=$(timeout 60 "${as[@]}" setpriv --reuid 65534 --regid 65534 --clear-groups "$work/escape/launch-escape" 2>/dev/null | grep -c '^ESCAPED')
  [ "$(id -u)" != 0 ] || [ ${#as[@]} != 0 ] || { [ "$outside" -ge 40 ]; ok "outside at least 40 of them get through ($outside)"; }
}

the_end() {
  is "status" "$(box 'exit 7'; echo $?)" "7"
  is "a killed command" "$(box 'kill -9 $$'; echo $?)" "137"
  box --hold 'setsid sleep 1000 & setsid sh -c "trap : TERM INT HUP; sleep 1000" & echo up; sleep 1000' >"$work/held" &
  for _ in $(seq 100); do grep -q up "$work/held" && break; sleep 0.05; done
  pid=$(sed -n 's/^PID //p' "$work/held")
  kids=$(pgrep -c -P "$pid")
  kill -KILL "$(awk '{print $4}' "/proc/$pid/stat")"
  wait
  for _ in $(seq 50); do [ -e "/proc/$pid" ] || break; sleep 0.05; done
  [ "$kids" -ge 1 ] && [ ! -e "/proc/$pid" ]; ok "the supervisor is killed: the box is gone"
  wanted="reaped 1 then 0"
  [ "$(id -u)" = 0 ] && [ ${#as[@]} = 0 ] || wanted="reaped 0 then 0"
  is "what it left is removed" "$(box --reap "$(sed -n 's/^ID //p' "$work/held")")" "$wanted"
  for i in $(seq 30); do box --hold true; done >"$work/ids"
  sed -n 's/^ID //p' "$work/ids" | while read -r id; do ls -d /sys/fs/cgroup/*/bulkhead/"$id" /sys/fs/cgroup/bulkhead/"$id" 2>/dev/null; done >"$work/left"
  is "thirty boxes leave no cgroup" "$(grep -c '^ID' "$work/ids") $(cat "$work/left")" "30 "
  has "a limit that can't be kept is refused" "$([ ${#as[@]} != 0 ] && box --memory 1GiB true || echo "can't be enforced")" "can't be enforced"
}

all() { view; files; copies; plain_copies; limits; escapes; the_end; }
if [ "$(id -u)" = 0 ]; then
  who=root; all
  as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
who="ordinary user"; all
echo "1..$n"
[ $bad = 0 ] || echo "# $bad failed"
exit $((bad > 0))
