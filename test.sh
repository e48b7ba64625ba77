#!/usr/bin/env bash
# From a fresh checkout to a verdict: installs what is missing, builds, runs the tests.
set -euo pipefail

usage() {
  cat <<'END'
Usage: ./test.sh [--quick | --slow]

Installs the Debian packages that are missing (as root, or through sudo), builds and runs the tests:
  release   the release preset: unit, parity, golden and e2e tests
  dev       the unit tests again, with the address and undefined-behaviour sanitizers

  --quick   the unit tests of the release preset only
  --slow    all of it, and the tests labelled slow: each fuzz target for 60 seconds (clang 14)
  --help    this text

JOBS=N sets the number of processes. The last line is the verdict over all parts, in ctest's words.
END
}

mode=default
for argument in "$@"; do
  case "$argument" in
    -h | --help) usage; exit 0 ;;
    --quick) mode=quick ;;
    --slow) mode=slow ;;
    *) echo "test.sh: what is $argument? See ./test.sh --help" >&2; exit 64 ;;
  esac
done

cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
groups=(build test)
[ "$mode" != slow ] || groups+=(fuzz)
tools/install_packages.sh "${groups[@]}"

# The clients of other people come from npm; without Node.js their tests are skipped and say so.
if [ "$mode" != quick ]; then
  if command -v npm >/dev/null; then
    (cd tests/clients && npm ci --no-audit --no-fund --loglevel=error >/dev/null) ||
      echo "test.sh: the packages of tests/clients could not be installed; their tests are skipped"
  else
    echo "test.sh: no Node.js here: the tests of tests/clients are skipped"
  fi
fi

n_tests=0
n_failed=0
broken=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The sanitizers of these compilers place their shadow memory where a kernel with much address
# randomisation may already have put something; without it they always start.
without_randomisation=()
if setarch "$(uname -m)" -R true 2>/dev/null; then
  without_randomisation=(setarch "$(uname -m)" -R)
fi

# part PRESET LABELS... : builds a preset, runs the tests that the ctest arguments choose.
part() {
  local preset=$1 counts
  shift
  if ! tools/build.sh "$preset"; then
    broken+=("$preset does not build")
    return
  fi
  echo "==> $preset: testing"
  local runner=()
  [ "$preset" = release ] || runner=(${without_randomisation[@]+"${without_randomisation[@]}"})
  ${runner[@]+"${runner[@]}"} ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
    -j "${JOBS:-$(nproc)}" "$@" 2>&1 | tee "$log" || true
  counts=$(sed -n 's/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\).*/\1 \2/p' "$log" | tail -n 1)
  if [ -z "$counts" ]; then
    broken+=("$preset ran no tests")
    return
  fi
  n_failed=$((n_failed + ${counts% *}))
  n_tests=$((n_tests + ${counts#* }))
}

case "$mode" in
  quick) part release -L unit ;;
  default | slow)
    part release -LE slow
    part dev -L unit -LE 'slow|tools'  # the checks of the tree are the same in every preset
    ;;
esac
if [ "$mode" = slow ]; then
  if ctest --test-dir build/release -N -L slow 2>/dev/null | grep -q 'Total Tests: [1-9]'; then
    part release -L slow
  fi
  part fuzz -L fuzz
fi

echo
for what in ${broken[@]+"${broken[@]}"}; do
  echo "test.sh: $what"
done
if [ "$n_tests" -eq 0 ]; then
  echo "No tests were found!!!"
  exit 1
fi
echo "$(((n_tests - n_failed) * 100 / n_tests))% tests passed, $n_failed tests failed out of $n_tests"
[ "$n_failed" -eq 0 ] && [ ${#broken[@]} -eq 0 ]
