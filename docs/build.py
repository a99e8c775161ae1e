"""Builds the documentation into build/docs; any warning is an error. Run with the project's virtual environment."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ROOT / "build" / "docs-source"


def reference(binary: Path, argument: str) -> str:
    """What a binary says of itself; it is the only place where its flags and variables are listed."""
    return subprocess.run([binary, argument], check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Returns Sphinx's exit code."""
    command = ["-W", "--keep-going", "-q", "-b", "html", str(ROOT / "docs"), str(ROOT / "build" / "docs")]
    return subprocess.run([sys.executable, "-m", "sphinx", *command], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
