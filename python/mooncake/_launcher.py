"""Console scripts that become one of the package's binaries.

The process is replaced (``exec``), so the PID that a supervisor knows is the binary's own and signals reach it.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn


def _become(name: str) -> NoReturn:
    binary = Path(__file__).with_name(name)
    if not binary.is_file():
        sys.exit(
            f"{name}: {binary} is missing; this installation of mooncake-transfer-engine is incomplete, "
            "install it again (pip install --force-reinstall mooncake-transfer-engine)"
        )
    if not os.access(binary, os.X_OK):
        # Some unpackers drop the mode; the owner may put it back.
        try:
            binary.chmod(binary.stat().st_mode | 0o111)
        except OSError as error:
            sys.exit(f"{name}: {binary} is not executable and cannot be made so: {error}; run chmod +x on it")
    try:
        os.execv(binary, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: cannot start {binary}: {error}")


def mooncake_master() -> NoReturn:
    """Runs the master."""
    _become("mooncake_master")


def mooncake_client() -> NoReturn:
    """Runs a client process that lends memory and serves other processes of its host."""
    _become("mooncake_client")


def transfer_engine_bench() -> NoReturn:
    """Runs the engine's benchmark."""
    _become("transfer_engine_bench")
