# fish completion for bulkhead
set -l commands run diff apply discard ls log kill audit policy doctor gc version help

function __bulkhead_ids
    bulkhead ls --all --json 2>/dev/null | string replace -rf '.*"id": *"([a-z0-9]+)".*' '$1'
end

complete -c bulkhead -f
complete -c bulkhead -l state -r -F -d 'where records and changes are kept'
complete -c bulkhead -l json -d 'one JSON document'
complete -c bulkhead -s q -l quiet -d 'leave out what is only for information'
complete -c bulkhead -s h -l help -d 'print the help text'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -l version -d 'print the version'

complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a run -d 'run one command in a fresh sandbox'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a diff -d 'show what a run changed in its working copy'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a apply -d 'keep what a run changed'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a discard -d 'drop what a run changed'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a ls -d 'list sandboxes'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a log -d 'show what happened in a sandbox'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a kill -d 'end sandboxes now'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a audit -d 'check a record'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a policy -d 'check a policy file, explain it, change that of a running sandbox'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'what works on this host'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a gc -d 'clean up'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a version -d 'print the version'
complete -c bulkhead -n "not __fish_seen_subcommand_from $commands" -a help -d 'print the help of a command'

complete -c bulkhead -n '__fish_seen_subcommand_from diff apply discard log kill' -a '(__bulkhead_ids)'
complete -c bulkhead -n '__fish_seen_subcommand_from audit' -a 'verify (__bulkhead_ids)'
complete -c bulkhead -n '__fish_seen_subcommand_from policy' -a 'check explain set (__bulkhead_ids)' -F

complete -c bulkhead -n '__fish_seen_subcommand_from run' -l policy -r -F -d 'policy to run under'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l isolation -x -a 'auto container gvisor microvm' -d 'isolation level'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l template -x -a host -d 'what the box sees as its system'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l dir -x -a '(__fish_complete_directories)' -d 'folder shown at /workspace'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l dir-mode -x -a 'copy ro rw none' -d 'how the folder is shown'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l mount -r -F -d 'one more folder or file'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l allow -x -d 'let it reach a host'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l secret -x -d 'let requests to a host carry a stored secret'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l resolver -x -d 'ask this DNS server'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l env -x -a '(set -nx)' -d 'set or pass on a variable'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l cpus -x -d 'processor time'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l memory -x -d memory
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l pids -x -d 'processes at once'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l disk -x -d 'all files it can write'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l open-files -x -d 'open files of one process'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l output -x -d 'bytes it may print'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l timeout -x -d 'wall time'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l idle -x -d 'end when idle so long'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -l no-tty -d 'pipes even when on a terminal'
complete -c bulkhead -n '__fish_seen_subcommand_from run' -a '(__fish_complete_command)'
complete -c bulkhead -n '__fish_seen_subcommand_from diff' -l stat -d 'lines added and deleted'
complete -c bulkhead -n '__fish_seen_subcommand_from diff' -l name-only -d 'the changed paths'
complete -c bulkhead -n '__fish_seen_subcommand_from apply' -s n -l dry-run -d 'only say what would be done'
complete -c bulkhead -n '__fish_seen_subcommand_from ls' -s a -l all -d 'not only the newest 20'
complete -c bulkhead -n '__fish_seen_subcommand_from log' -l output -d 'the recorded output bytes'
complete -c bulkhead -n '__fish_seen_subcommand_from log' -l kind -x -a 'sandbox.start sandbox.ready exec.start exec.end output egress egress.end name denial limit signal files teardown sandbox.end audit.lost request request.end secret secret.use secret.found canary policy changes.applied' -d 'only records of this type'
complete -c bulkhead -n '__fish_seen_subcommand_from kill' -s a -l all -d 'all that run'
complete -c bulkhead -n '__fish_seen_subcommand_from policy' -s p -l policy -r -F -d 'the policy to explain'
complete -c bulkhead -n '__fish_seen_subcommand_from gc' -s n -l dry-run -d 'only say what would be done'
complete -c bulkhead -n '__fish_seen_subcommand_from gc' -l older-than -x -d 'also remove sandboxes that ended so long ago'
