#!/usr/bin/env bash
# From a fresh checkout to a server that answers: installs what is missing, builds, serves a model.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
here=$PWD

usage() {
  cat <<'END'
Usage: ./start.sh [--build-only] [MODEL.gguf] [options of `strata serve`]

Installs the Debian packages that are missing (as root, or through sudo), builds the release preset in
build/release and runs `build/release/bin/strata serve`; without a model it serves the demo model,
models/strata-demo.gguf, on 127.0.0.1:8080. Once it is ready it says what to try. A second run only starts
the server.

  --build-only   install and build, do not serve
  --help         this text

All other arguments go to the server as they are; what it takes: build/release/bin/strata serve --help
Examples:
  ./start.sh
  ./start.sh --port 9000
  ./start.sh ~/models/my-model.gguf --max-context 32768
END
}

serve=yes
arguments=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) usage; exit 0 ;;
    --build-only) serve=no ;;
    *) arguments+=("$argument") ;;
  esac
done

cd "$root"
tools/install_packages.sh build
tools/build.sh release strata
binary=$root/build/release/bin/strata
if [ "$serve" = no ]; then
  echo "==> built: $binary"
  exit 0
fi

# Relative paths mean what was typed: the server starts in the folder start.sh was called from.
cd "$here"
exec "$binary" serve --examples ${arguments[@]+"${arguments[@]}"}
