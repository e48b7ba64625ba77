#!/usr/bin/env bash
# Installs the Debian packages that are missing, and nothing else.
# Usage: tools/install_packages.sh build|test|fuzz|lint ...   (each group adds to the others named)
# Where nothing is missing it takes a moment and asks for no rights.
set -euo pipefail

# docs/dependencies.md says what each is for. The release preset has the tests in it, so building
# needs their libraries too.
declare -A packages=(
  [build]="g++ cmake ninja-build ccache pkg-config git libspdlog-dev libfmt-dev libcli11-dev
    nlohmann-json3-dev libboost1.81-dev libssl-dev libpcre2-dev libhwloc-dev liburing-dev prometheus-cpp-dev
    libgtest-dev libgmock-dev libbenchmark-dev python3"
  [test]="curl python3-numpy python3-jinja2 python3-jsonschema openssl"
  [fuzz]="clang-14 libclang-rt-14-dev"
  [lint]="clang-format-14 clang-tidy-14"
)

fail() {
  printf '\ninstall_packages: %s\n' "$1" >&2
  exit 1
}

wanted=()
for group in "$@"; do
  [ -n "${packages[$group]:-}" ] || fail "no group called $group: build, test, fuzz, lint"
  read -r -d '' -a names <<<"${packages[$group]}" || true
  wanted+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "this system has no apt: strata's packages are named for Debian 12. Install the counterparts of
  ${wanted[*]}
and build by hand: cmake --preset release && cmake --build --preset release"
fi

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "packages are missing and this is neither root nor a user with sudo.
As root: apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The output goes to a log, so that a good run prints two lines and a bad one prints why.
apt_get() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -y -q \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$log" 2>&1
}

echo "==> packages: installing ${#missing[@]} that are missing: ${missing[*]}"
echo "    (apt-get update; this can take a minute)"
if ! apt_get update; then
  tail -n 15 "$log" >&2
  echo "    apt-get update failed; trying with the package lists that are here" >&2
fi
echo "    (apt-get install; this can take several minutes)"
if ! apt_get install --no-install-recommends "${missing[@]}"; then
  tail -n 25 "$log" >&2
  release=$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release 2>/dev/null || true)
  fail "apt-get could not install the packages; its last lines stand above.
strata is built on Debian 12 (this is: ${release:-unknown}). Common causes: no network, another apt at
work, or a release that names a package otherwise (Boost 1.81, clang 14)."
fi
for package in "${missing[@]}"; do
  is_installed "$package" || fail "apt-get reported success, but $package is not installed"
done
echo "==> packages: done"
