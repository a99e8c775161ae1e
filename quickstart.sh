#!/usr/bin/env bash
# Installs what is missing, builds, and runs the main job on real input: two nodes share KV-cache blocks through a master
# while a production trace is replayed. Says at the end where the report is. A second run only does what has changed.
#
#   ./quickstart.sh [options of benchmarks/trace_replay, see ./quickstart.sh --help]
set -euo pipefail
cd "$(dirname "$0")"
. ./cmake/environment.sh

step() { printf '\n== %s (%s)\n' "$1" "$(date +%H:%M:%S)"; }

step "dependencies"
./dependencies.sh
step "build (release; about ten minutes on two cores the first time)"
mooncake_configure release
cmake --build --preset release --target mooncake_package
step "Python package"
mooncake_install
step "replay of the conversation trace: one master, two nodes"
.venv/bin/python -m benchmarks.trace_replay "$@"
