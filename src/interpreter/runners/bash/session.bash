# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
# What the context's shell needs beside the cells. It is an interactive shell, because only such a
# one drops a command on SIGINT and lives on; the same way, `exit` and `set -e` end the cell alone.

set +o history +H +m -E
PS1='' PS2=''
export -n PS1 PS2
unset MAILCHECK
__alcove_front=/proc/$PPID/fd
declare -A __alcove_before=()
__alcove_status=0 __alcove_exit='' __alcove_err_trap=''

# Cells may define functions with the names of builtins: below, all are called by `builtin` or `command`.

# Drops everything up to the shell's top level.
__alcove_leave() {
  __alcove_exit=$1
  command kill -INT "$BASHPID"
}

exit() {
  command local status=$?
  if [[ $# -gt 1 || ! ${1-$status} =~ ^-?[0-9]{1,18}$ ]]; then
    command printf 'exit: %s: one number from 0 to 255 is expected\n' "$*" >&2
    command set -- 2
  fi
  if ((BASH_SUBSHELL)); then builtin exit "${1-$status}"; fi
  __alcove_leave $((${1-$status} & 255))
}

__alcove_failed() {
  # The cell's own trap sees the status of what failed.
  if [[ $__alcove_err_trap ]]; then __alcove_return "$1" || command eval "$__alcove_err_trap"; fi
  if [[ $- == *e* ]] && ((BASH_SUBSHELL == 0)); then __alcove_leave "$1"; fi
}
builtin trap '__alcove_failed "$?"' ERR

# A cell's trap on ERR runs before the one above instead of replacing it.
trap() {
  builtin trap "$@" || command return
  if ((BASH_SUBSHELL || $# < 2)) || [[ $1 == -[lp]* ]]; then command return 0; fi
  if [[ $1 == -- ]]; then command shift; fi
  case " ${*:2} " in
    *[[:space:]]ERR[[:space:]]*)
      __alcove_err_trap=$1
      if [[ $1 == - ]]; then __alcove_err_trap=''; fi
      builtin trap '__alcove_failed "$?"' ERR
      ;;
  esac
}
declare -ft trap

__alcove_return() {
  command return "$1"
}

# Variables of one run: names and values in turn.
__alcove_enter() {
  while (($#)); do
    # An assignment that makes the variable again, with its attributes; empty if there is none.
    command eval "__alcove_before[\$1]=\${$1[@]@A}"
    command declare -gx "$1=$2" || command true
    command shift 2
  done
}

__alcove_restore() {
  command local __alcove_name __alcove_words
  for __alcove_name in "${!__alcove_before[@]}"; do
    command unset -v "$__alcove_name" || command true
    __alcove_words=${__alcove_before[$__alcove_name]}
    if [[ $__alcove_words == declare\ * ]]; then
      # Attributes first: only `declare` itself may be followed by the elements of an array.
      __alcove_words=${__alcove_words#declare }
      command declare -g "${__alcove_words%% *}" "$__alcove_name" || command true
      __alcove_words=${__alcove_words#* }
    fi
    if [[ $__alcove_words == *=* ]]; then command eval "$__alcove_words" || command true; fi
  done
  __alcove_before=()
}

# Tells the runner that run $1 is over, with the status and whether commands are traced.
__alcove_done() {
  __alcove_status=${__alcove_exit:-$2}
  __alcove_exit=''
  command local traced=0
  if [[ $- == *x* ]]; then
    command set +x
    traced=1
  fi
  __alcove_restore
  command printf '%s %s %s\n' "$1" "$__alcove_status" "$traced" >"$__alcove_front/$3"
}
