"""What tests of the Python package share."""

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def scripts() -> Path:
    """The folder of the console scripts of the environment under test."""
    return Path(sys.executable).parent
