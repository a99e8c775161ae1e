# Sourced by test.sh, quickstart.sh and .ci/run: which tools build here, and how.

# The distribution's own cmake and python, whatever else the machine carries (a pip-installed cmake finds other libraries).
export PATH=/usr/bin:$PATH
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

# mooncake_configure PRESET: configures build/PRESET; quick when it is there already. The Python modules are built for the
# interpreter of .venv.
mooncake_configure() {
  mooncake_venv .venv python/requirements-dev.txt
  cmake --preset "$1" -DPython_EXECUTABLE="$PWD/.venv/bin/python" --log-level=WARNING >/dev/null
}

# mooncake_venv FOLDER REQUIREMENTS [OPTION OF PIP]...: a virtual environment with what the file lists; made again only when the
# list has changed.
mooncake_venv() {
  local folder=$1 requirements=$2
  if ! cmp -s "$requirements" "$folder/requirements.stamp"; then
    /usr/bin/python3 -m venv "$folder"
    "$folder/bin/python" -m pip install -q --disable-pip-version-check "${@:3}" -r "$requirements"
    cp "$requirements" "$folder/requirements.stamp"
  fi
}

# mooncake_install: the Python package, made of the release tree, into .venv. The compiled parts are those that build/release holds.
mooncake_install() {
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
    --config-settings=build-dir=build/release --config-settings=cmake.define.MC_BUILD_TESTS=ON \
    --config-settings=cmake.define.CMAKE_EXPORT_COMPILE_COMMANDS=ON .
}
