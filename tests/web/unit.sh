#!/usr/bin/env bash
# The unit tests of web/. Status 77: what they need is not there.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../web"
if ! command -v node >/dev/null || [ ! -d node_modules/esbuild ]; then
  echo "SKIPPED: no Node.js, or no web/node_modules (tools/build_web.sh --packages)"
  exit 77
fi
exec node test/run.mjs
