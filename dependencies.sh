#!/usr/bin/env bash
# Installs what Mooncake is built from: the distribution's packages only (Debian 12; the names of Ubuntu 24.04 stand beside
# them, untested). Python packages come later, from PyPI, into the project's own virtual environment.
#
#   ./dependencies.sh [--check] [--lint]
#
# --check  only says what is missing (exit 1 if anything is).
# --lint   also what CI needs: clang 19 for the sanitizers, the fuzzers and clang-format.
# Without root it works as long as nothing is missing.
set -euo pipefail

# One line a package: Debian 12 name, then Ubuntu 24.04's where it differs.
packages=(
  g++ cmake ninja-build pkg-config ccache mold git
  python3-dev python3-venv
  libboost1.81-dev:libboost1.83-dev
  flatbuffers-compiler libflatbuffers-dev
  nlohmann-json3-dev libspdlog-dev libfmt-dev libgflags-dev libyaml-cpp-dev
  libisal-dev libxxhash-dev libssl-dev ca-certificates
  libgtest-dev libgmock-dev libbenchmark-dev
  iproute2  # Tests make hosts out of network namespaces.
  libibverbs1 libnuma1 libcurl4:libcurl4t64  # The published package, which the interoperability test talks to, wants these.
)
lint_packages=(clang-19 clang-format-19 libclang-rt-19-dev)

check_only=false
for argument in "$@"; do
  case $argument in
    --check) check_only=true ;;
    --lint) packages+=("${lint_packages[@]}") ;;
    *) echo "dependencies.sh: unknown argument '$argument'; see the head of this file" >&2; exit 2 ;;
  esac
done

. /etc/os-release
case ${ID:-}:${VERSION_ID:-} in
  debian:12) column=1 ;;
  ubuntu:24.04) column=2 ;;
  *) echo "dependencies.sh: ${PRETTY_NAME:-this system} is not one we know; going by Debian 12's names" >&2; column=1 ;;
esac

missing=()
for entry in "${packages[@]}"; do
  name=${entry%%:*}
  [ "$column" = 2 ] && name=${entry##*:}
  dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "dependencies: all ${#packages[@]} packages are there"
  exit 0
fi
echo "dependencies: missing: ${missing[*]}"
$check_only && exit 1
if [ "$(id -u)" -ne 0 ]; then
  echo "dependencies.sh: installing needs root; ask an administrator for: apt-get install ${missing[*]}" >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Installing must not take anything away from the machine (libboost1.81-dev conflicts with another version's headers).
removed=$(apt-get install -s --no-install-recommends "${missing[@]}" | sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' ')
if [ -n "$removed" ]; then
  echo "dependencies.sh: this would remove: $removed" >&2
  echo "Remove them yourself if you agree (apt-get remove $removed), then run this again." >&2
  exit 1
fi
echo "dependencies: installing ${#missing[@]} packages (a minute or two)"
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "dependencies: done"
