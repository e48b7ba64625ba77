#!/usr/bin/env bash
# Configures (once) and builds a preset. Usage: tools/build.sh PRESET [TARGET ...]
# JOBS=N sets the number of compiler processes. Prints a progress line now and then, and the
# compiler's words where it fails.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
preset=$1
shift
folder=build/$preset

# A compiler process of this code takes up to about 1.5 GiB; a small machine gets fewer of them.
default_jobs() {
  local cores gib
  cores=$(nproc)
  gib=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo)
  local by_memory=$((gib * 2 / 3))
  [ "$by_memory" -ge 1 ] || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}
jobs=${JOBS:-$(default_jobs)}

log=$folder/configure.log
mkdir -p "$folder"
# A checkout that was copied or moved brings the build files of the old place, which build the old files.
if [ -f "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt"; then
  echo "==> $preset: this checkout has moved, configuring anew"
  rm -f "$folder/CMakeCache.txt" "$folder/build.ninja"
fi
if [ ! -f "$folder/build.ninja" ]; then
  echo "==> $preset: configuring"
  trap 'rm -f "$folder/CMakeCache.txt"; echo "build: interrupted" >&2; exit 130' INT
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    # A half-made cache would keep what went wrong, e.g. a compiler that has been installed since.
    rm -f "$folder/CMakeCache.txt"
    echo "build: configuring $preset failed" >&2
    exit 1
  fi
  trap - INT
fi

# The fuzz preset is for the fuzz targets: its other binaries would only repeat the dev preset's.
[ $# -gt 0 ] || [ "$preset" != fuzz ] || set -- fuzzers
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
first_time=""
[ -d "$folder/bin" ] || first_time=" (the first time takes minutes)"
echo "==> $preset: building with $jobs jobs$first_time"
started=$SECONDS
# ninja prints a line a file; one about every ten seconds is enough. All else (errors) passes through.
thin_out() {
  local last=$SECONDS line
  while IFS= read -r line; do
    case $line in
      \[[0-9]*/[0-9]*\]\ *)
        if [ $((SECONDS - last)) -ge 10 ]; then
          printf '    %s\n' "$line"
          last=$SECONDS
        fi
        ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
}
set +e
cmake --build --preset "$preset" -j "$jobs" ${targets[@]+"${targets[@]}"} 2>&1 | thin_out
status=${PIPESTATUS[0]}
set -e
if [ "$status" -ne 0 ]; then
  echo "build: $preset failed; its words stand above" >&2
  exit "$status"
fi
echo "==> $preset: built in $((SECONDS - started)) s"
