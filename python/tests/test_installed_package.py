"""The package as installed: it starts on any machine, whatever accelerator runtime that has, or has broken."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mooncake
from fresh_python import run_python
from waiting import HANG_LIMIT_S

PACKAGE = Path(mooncake.__file__).parent
#: Accelerators' runtimes by the names of their libraries: CUDA, ROCm, Ascend, MUSA, MACA, Cambricon.
ACCELERATOR = re.compile(r"cuda|cudart|nvidia|nccl|amdhip|hsa|rocm|ascendcl|musart|maca|mcruntime|cnrt|cndrv")


def compiled_files() -> list[Path]:
    """All ELF files of the package."""
    return [path for path in PACKAGE.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def test_nothing_needs_a_library_of_an_accelerator():
    files = compiled_files()
    assert {"libmooncake.so", "engine.so", "store.so", "mooncake_master"} <= {path.name for path in files}
    for path in files:
        done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)
        assert "libc.so.6" in needed
        assert not [name for name in needed if ACCELERATOR.search(name)], path


def make_empty_library(path: Path) -> None:
    subprocess.run(["gcc", "-shared", "-xc", "/dev/null", "-o", path], check=True)


def make_corrupt_library(path: Path) -> None:
    path.write_bytes(b"\x7fELF" + bytes(range(256)) * 16)


@pytest.mark.parametrize(
    ("name", "make"), [("libcudart.so.13", make_empty_library), ("libcudart.so.12", make_corrupt_library)]
)
def test_a_useless_accelerator_runtime_does_no_harm(master, tmp_path, name, make):
    libraries, logs = tmp_path / "libraries", tmp_path / "logs"
    libraries.mkdir()
    make(libraries / name)
    run_python(
        f"""
import mooncake.engine
from mooncake.store import MooncakeDistributedStore
store = MooncakeDistributedStore()
assert store.setup("127.0.0.1", "P2PHANDSHAKE", 16 << 20, 4 << 20, "tcp", "", "{master.address}") == 0
assert store.put("key", b"value" * 1000) == 0
assert store.get("key") == b"value" * 1000
assert store.close() == 0
""",
        LD_LIBRARY_PATH=str(libraries),
        MC_FORCE_TCP="1",
        MC_LOG_DIR=str(logs),
    )
    (log,) = logs.iterdir()
    assert len(re.findall("no accelerator is used", log.read_text())) == 1


@pytest.mark.parametrize("variant", ["non-cuda", "cuda13", "npu", "efa", "efa-cuda13", "efa-non-cuda", "musa", "rocm"])
def test_the_import_beside_a_published_package_is_refused_in_words(variant, tmp_path):
    name = f"mooncake-transfer-engine-{variant}"
    info = tmp_path / f"{name.replace('-', '_')}-0.3.13.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3.13\n")
    ended = subprocess.run(
        [sys.executable, "-c", "import mooncake"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert ended.returncode != 0
    assert f"pip uninstall {name} mooncake-transfer-engine" in ended.stderr


def test_parts_that_others_install_are_found(tmp_path):
    part = tmp_path / "mooncake"
    part.mkdir()
    (part / "__init__.py").write_text("")
    (part / "part_of_others.py").write_text("answer = 42")
    code = f"import sys; sys.path.append({str(tmp_path)!r})\nimport mooncake.part_of_others as part; print(part.answer)"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=True,
    )
    assert ended.stdout == "42\n"
