#!/usr/bin/env bash
# clang_tidy.sh FILE...: what .clang-tidy asks of these sources, by the commands of the release build, which has to be there
# (generated headers). Silent when there is nothing to say.
set -euo pipefail
cd "$(dirname "$0")/.."
# Flags that only gcc knows are no findings, nor is how many warnings other people's headers would have got.
.venv/bin/clang-tidy -p build/release --quiet --extra-arg=-Wno-unknown-warning-option "$@" \
  2> >(grep -vE '^[0-9]+ warnings? generated\.$' >&2)
