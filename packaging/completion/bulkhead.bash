# bash completion for bulkhead                             -*- shell-script -*-
_bulkhead_ids() { bulkhead ls --all --json 2>/dev/null | sed -nE 's/.*"id": *"([a-z0-9]+)".*/\1/p'; }

# Keys are sorted: a sandbox's phase comes after its id.
_bulkhead_running() {
  bulkhead ls --all --json 2>/dev/null | sed -nE 's/.*"(id|phase)": *"([a-z0-9]+)".*/\1 \2/p' |
    while read -r key value; do case $key:$value in id:*) id=$value ;; phase:ended) ;; *) echo "$id" ;; esac; done
}

_bulkhead_secrets() { bulkhead secret ls --json 2>/dev/null | sed -nE 's/.*"name": *"([A-Za-z0-9_.-]+)".*/\1/p'; }

_bulkhead() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --state) ((i++)) ;;
      -*) ;;
      *) cmd=${COMP_WORDS[i]}; break ;;
    esac
  done
  if [ "$prev" = --state ]; then
    COMPREPLY=($(compgen -d -- "$cur"))
    return
  fi
  if [ -z "$cmd" ]; then
    COMPREPLY=($(compgen -W "run diff apply discard ls log kill audit policy secret doctor gc version help --state --json --quiet --help --version" -- "$cur"))
    return
  fi
  case $prev in
    --sandbox) COMPREPLY=($(compgen -W "$(_bulkhead_running)" -- "$cur")); return ;;
    --policy|--dir|-p) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --isolation) COMPREPLY=($(compgen -W "auto container gvisor microvm" -- "$cur")); return ;;
    --dir-mode) COMPREPLY=($(compgen -W "copy ro rw none" -- "$cur")); return ;;
    --template) COMPREPLY=($(compgen -W "host" -- "$cur")); return ;;
    --kind) COMPREPLY=($(compgen -W "sandbox.start sandbox.ready exec.start exec.end output egress egress.end name denial limit signal files teardown sandbox.end
      audit.lost request request.end secret secret.use secret.found canary policy changes.applied" -- "$cur")); return ;;
    --output) [ "$cmd" = run ] && return ;;
    --older-than|--memory|--disk|--cpus|--pids|--open-files|--timeout|--idle|--allow|--env|--mount|--resolver|--secret) return ;;
  esac
  case $cmd in
    run)
      # After the options comes the command and its own arguments.
      for ((i++; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
          --) COMPREPLY=($(compgen -c -f -- "$cur")); return ;;
        esac
      done
      case $cur in
        -*) COMPREPLY=($(compgen -W "--policy --isolation --template --dir --dir-mode --mount --allow --secret --resolver --env --cpus --memory --pids --disk
              --open-files --output --timeout --idle --no-tty --json --quiet --state --help --" -- "$cur")) ;;
        *) COMPREPLY=($(compgen -c -- "$cur")) ;;
      esac ;;
    diff) COMPREPLY=($(compgen -W "$(_bulkhead_ids) --json --stat --name-only --help" -- "$cur")) ;;
    apply) COMPREPLY=($(compgen -W "$(_bulkhead_ids) --dry-run --json --help" -- "$cur")) ;;
    discard) COMPREPLY=($(compgen -W "$(_bulkhead_ids) --json --help" -- "$cur")) ;;
    ls) COMPREPLY=($(compgen -W "--all --json --help" -- "$cur")) ;;
    log) COMPREPLY=($(compgen -W "$(_bulkhead_ids) --json --output --kind --help" -- "$cur")) ;;
    kill) COMPREPLY=($(compgen -W "$(_bulkhead_running) --all --json --help" -- "$cur")) ;;
    audit)
      case " ${COMP_WORDS[*]:0:COMP_CWORD} " in
        *" verify "*) COMPREPLY=($(compgen -f -W "$(_bulkhead_ids) --json --help" -- "$cur")) ;;
        *) COMPREPLY=($(compgen -W "verify --json --help" -- "$cur")) ;;
      esac ;;
    policy)
      case " ${COMP_WORDS[*]:0:COMP_CWORD} " in
        *" check "*|*" explain "*) COMPREPLY=($(compgen -f -W "--policy --json --help" -- "$cur")) ;;
        *" set ") COMPREPLY=($(compgen -W "$(_bulkhead_running) --json --help" -- "$cur")) ;;
        *" set "*) COMPREPLY=($(compgen -f -W "--json --help" -- "$cur")) ;;
        *) COMPREPLY=($(compgen -W "check explain set" -- "$cur")) ;;
      esac ;;
    secret)
      case " ${COMP_WORDS[*]:0:COMP_CWORD} " in
        *" set "*|*" ls "*|*" rm "*|*" revoke "*) COMPREPLY=($(compgen -W "$(_bulkhead_secrets) --helper --sandbox --json --help" -- "$cur")) ;;
        *) COMPREPLY=($(compgen -W "set ls rm revoke --helper --sandbox --json --help" -- "$cur")) ;;
      esac ;;
    doctor|version) COMPREPLY=($(compgen -W "--json --help" -- "$cur")) ;;
    gc) COMPREPLY=($(compgen -W "--dry-run --older-than --json --help" -- "$cur")) ;;
    help) COMPREPLY=($(compgen -W "run diff apply discard ls log kill audit policy secret doctor gc version" -- "$cur")) ;;
  esac
}
complete -o filenames -F _bulkhead bulkhead
