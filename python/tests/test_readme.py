"""The README's examples run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found, f"no example {name!r} in {README}"
    return found[1]


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_the_engine_example():
    run(example("engine"))


def test_the_store_example(master):
    code = example("store")
    assert "127.0.0.1:50051" in code
    run(code.replace("127.0.0.1:50051", master.address))


@pytest.mark.parametrize("name", ["engine", "store"])
def test_examples_are_short(name):
    assert len(example(name).strip().splitlines()) <= 12
