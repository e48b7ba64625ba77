#!/usr/bin/env bash
# The tests of the page, in Debian's Chromium. Status 77, and why: they cannot run here.
# Usage: tests/web/run.sh [FILE_test.mjs ...]
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
if ! command -v node >/dev/null; then
  echo "SKIPPED: no Node.js (Debian: nodejs)"
  exit 77
fi
why=$(node -e 'import("./support.mjs").then(({ obstacle }) => console.log(obstacle()))')
if [ -n "$why" ]; then
  echo "SKIPPED: $why"
  exit 77
fi
[ $# -gt 0 ] || set -- *_test.mjs
exec node --test "$@"
