#!/bin/sh
# Sets the clone up, then becomes the command: sh scripts/run.sh up|agentenv|compare|test|bench|check|build|docs|format [ARGUMENT...]
# Every npm script is one of these. At the end the shell is replaced, so a signal to npm reaches the command itself.
set -eu

# Where the person stood; npm has moved to the package's folder.
INIT_CWD=${INIT_CWD:-$PWD}
export INIT_CWD
cd "$(dirname "$0")/.."

node=.agentenv/bin/node
main=dist/src/cli/main.js

# Runs a program to its end; a signal meanwhile is passed on to it, and ends the shell when it has ended.
run() {
  child=
  trap 'stop INT 130' INT
  trap 'stop TERM 143' TERM
  trap 'stop HUP 129' HUP
  "$@" &
  child=$!
  status=0
  wait "$child" || status=$?
  trap - INT TERM HUP
  [ "$status" -eq 0 ] || exit "$status"
}

stop() {
  trap '' INT TERM HUP
  child=${child:-${!-}}
  [ -n "$child" ] || exit "$2"
  kill "-$1" "$child" 2>/dev/null || :
  wait "$child" || :
  exit "$2"
}

bootstrap() {
  run node scripts/bootstrap.mjs "$@"
}

# Colours are for terminals: what is read from a file or a pipe has none, unless it was asked for.
[ -t 1 ] || [ -n "${FORCE_COLOR-}" ] || export NO_COLOR=1

[ $# -gt 0 ] || set -- help
command=$1
shift

case $command in
up)
  bootstrap run -- "$@"
  exec "$node" "$main" up "$@"
  ;;
agentenv)
  case ${1-} in
  up | put)
    command=$1
    shift
    bootstrap run -- "$@"
    set -- "$command" "$@"
    ;;
  run)
    shift
    bootstrap record -- "$@"
    set -- run "$@"
    ;;
  driver) bootstrap install ;;
  *) bootstrap cli ;;
  esac
  exec "$node" "$main" "$@"
  ;;
compare)
  bootstrap cli
  exec "$node" "$main" compare "$@"
  ;;
test)
  bootstrap test
  exec "$node" node_modules/vitest/vitest.mjs run "$@"
  ;;
bench)
  bootstrap test
  [ -f tst/bench/main.ts ] || { echo "There is no benchmark yet: tst/bench/main.ts is missing." >&2; exit 1; }
  run "$node" node_modules/typescript/bin/tsc -p tsconfig.bench.json
  exec "$node" .agentenv/bench/tst/bench/main.js "$@"
  ;;
check)
  bootstrap tools
  colours=off
  [ ! -t 1 ] || [ -n "${NO_COLOR:-}" ] || colours=force
  run "$node" node_modules/@biomejs/biome/bin/biome ci --colors=$colours
  run "$node" node_modules/typescript/bin/tsc -p tsconfig.test.json
  exec "$node" node_modules/vitest/vitest.mjs run --project unit "$@"
  ;;
build)
  bootstrap cli
  ;;
docs)
  bootstrap cli
  exec "$node" scripts/docs/docs.mjs
  ;;
format)
  bootstrap tools
  exec "$node" node_modules/@biomejs/biome/bin/biome check --write "$@"
  ;;
*)
  echo "run.sh knows up, agentenv, compare, test, bench, check, build, docs and format, not $command." >&2
  exit 2
  ;;
esac
