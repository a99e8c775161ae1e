import subprocess
import sys

import pytest

from mooncake import _launcher
from waiting import HANG_LIMIT_S


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The launcher as if it lay in an empty package folder."""
    monkeypatch.setattr(_launcher, "__file__", str(tmp_path / "_launcher.py"))
    return tmp_path


def run_launcher(package, name, *arguments):
    code = (
        "import sys; from mooncake import _launcher; "
        f"_launcher.__file__ = {str(package / '_launcher.py')!r}; sys.argv[1:] = {list(arguments)!r}; "
        f"_launcher.{name}()"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", ["mooncake_master", "mooncake_client", "transfer_engine_bench"])
def test_a_missing_binary_is_named_with_the_remedy(package, name):
    with pytest.raises(SystemExit, match=f"{name}: .*missing.*install it again"):
        getattr(_launcher, name)()


def test_the_process_becomes_the_binary_and_keeps_its_pid(package):
    binary = package / "mooncake_master"
    binary.write_text('#!/bin/sh\necho "$$ $@"\nexit 7\n')
    binary.chmod(0o644)  # The mode is put right as well.
    process = run_launcher(package, "mooncake_master", "--port=1", "a b")
    out, err = process.communicate(timeout=HANG_LIMIT_S)
    assert (process.returncode, err) == (7, "")
    assert out == f"{process.pid} --port=1 a b\n"


def test_a_file_that_cannot_be_run_is_named(package):
    binary = package / "mooncake_client"
    binary.write_bytes(b"\x7fELF not really")
    binary.chmod(0o755)
    process = run_launcher(package, "mooncake_client")
    _, err = process.communicate(timeout=HANG_LIMIT_S)
    assert process.returncode == 1
    assert f"cannot start {binary}" in err
