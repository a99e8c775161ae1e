"""What environment and limits of a process do to an engine and to a store in it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mooncake
from waiting import HANG_LIMIT_S

ENGINE = """
from mooncake.engine import TransferEngine
engine = TransferEngine()
code = engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "")
text = engine.last_error()[1]
"""
STORE = """
from mooncake.store import MooncakeDistributedStore
store = MooncakeDistributedStore()
code = store.setup("127.0.0.1", "P2PHANDSHAKE", 16 << 20, 1 << 20, "tcp", "", "{master}")
text = store.last_error()[1]
"""
BENCH = [
    Path(mooncake.__file__).parent / "transfer_engine_bench",
    "--mode=target",
    "--metadata_server=P2PHANDSHAKE",
    "--local_server_name=127.0.0.1",
]


@pytest.fixture(params=[ENGINE, STORE], ids=["engine", "store"])
def user(request, master):
    """Code that starts an engine or a store, and leaves its ``code`` and ``text``."""
    return request.param.replace("{master}", master.address)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=True,
    )


def lines_of(text: str, level: str) -> list[str]:
    """The log lines of a level: ``I``, ``W`` or ``E``."""
    return re.findall(rf"^{level}\d{{4}} .*$", text, re.MULTILINE)


def test_the_log_level_is_the_environments(user):
    said = run(user).stderr
    assert lines_of(said, "I")
    assert lines_of(said, "W"), "a loopback name is worth a warning"
    said = run(user, MC_LOG_LEVEL="WARNING").stderr
    assert not lines_of(said, "I")
    assert lines_of(said, "W")
    assert run(user, MC_LOG_LEVEL="ERROR").stderr == ""


def test_the_log_goes_to_the_folder_of_the_environment(user, tmp_path):
    ended = run(user, MC_LOG_DIR=str(tmp_path / "new" / "logs"))
    (log,) = (tmp_path / "new" / "logs").iterdir()
    assert lines_of(log.read_text(), "I")
    assert not lines_of(ended.stderr, "I")


@pytest.mark.parametrize(("name", "value"), [("MC_LOG_LEVEL", "loud"), ("MC_LOG_DIR", "/dev/null/logs")])
def test_a_wrong_setting_of_the_log_fails_and_is_named(user, name, value):
    ended = run(f"{user}\nprint(code, text)", **{name: value})
    code, _, text = ended.stdout.partition(" ")
    assert int(code) < 0
    assert name in text
    assert value in text
    tool = subprocess.run(
        BENCH, env=os.environ | {name: value}, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
    )
    assert tool.returncode == 1
    assert name in tool.stderr


def test_a_store_set_up_again_goes_on_in_its_log(master, tmp_path):
    again = STORE.replace("{master}", master.address)
    run(f"{again}\nassert code == 0\n{again}\nassert code == 0", MC_LOG_DIR=str(tmp_path / "logs"))
    (log,) = (tmp_path / "logs").iterdir()
    assert len(re.findall("bytes move by", log.read_text())) == 2


def test_as_many_descriptors_may_be_open_as_the_hard_limit_says(user):
    run(f"""
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
{user}
assert code == 0, text
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
""")
