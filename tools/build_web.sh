#!/usr/bin/env bash
# Makes the page anew: web/ becomes the three files of strata/server/page/, which the build has in the
# program. Only who changes web/ needs it, and Node.js (18 or later) with npm for it.
# Usage: tools/build_web.sh [--check | --packages]
#   --check      change nothing; fail where strata/server/page/ is not what web/ makes
#   --packages   only install what web/package-lock.json names into web/node_modules
# Exit status 77: Node.js or npm is missing, or the packages cannot be had.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root/web"

skip() {
  echo "build_web: $1" >&2
  exit 77
}

command -v node >/dev/null && command -v npm >/dev/null ||
  skip "Node.js and npm are needed (Debian: nodejs npm)"

# npm ci takes a while and starts from nothing, so only when the list has changed.
stamp=node_modules/.installed-lock.json
if ! cmp -s package-lock.json "$stamp"; then
  echo "==> web: installing packages (npm ci)"
  npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=60000 || skip "npm ci failed: no registry within reach?"
  cp package-lock.json "$stamp"
fi

page=$root/strata/server/page
case "${1:-}" in
  --packages) exit 0 ;;
  --check)
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
    ;;
  "") out=$page ;;
  *)
    echo "build_web: what is $1?" >&2
    exit 64
    ;;
esac
npm run --silent check
STRATA_PAGE_OUT=$out npx --no-install vite build --logLevel warn
if [ "$out" != "$page" ]; then
  for file in index.html app.js style.css; do
    if ! cmp -s "$out/$file" "$page/$file"; then
      echo "build_web: strata/server/page/$file is not what web/ makes: run tools/build_web.sh" >&2
      exit 1
    fi
  done
fi
bytes=$(cat "$out"/index.html "$out"/app.js "$out"/style.css | wc -c)
echo "==> web: index.html, app.js and style.css, $bytes bytes in all"
if [ "$bytes" -gt 131072 ]; then
  echo "build_web: that is more than 128 KiB" >&2
  exit 1
fi
