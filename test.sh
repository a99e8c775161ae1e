#!/usr/bin/env bash
# Installs what is missing, builds, and runs every C++ and Python test. Ends with the runners' own closing lines.
# A second run only does what has changed.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s (%s)\n' "$1" "$(date +%H:%M:%S)"; }

step "dependencies"
./dependencies.sh

step "build (release)"
. ./cmake/environment.sh
mooncake_configure release
cmake --build --preset release

step "Python package and environments"
mooncake_install
mooncake_venv build/published python/tests/interop/requirements.txt
mooncake_venv build/neighbours python/tests/neighbours.txt --no-deps

step "C++ tests"
ctest --preset release

step "Python tests"
.venv/bin/python -m pytest -q -n 2 python/tests benchmarks
