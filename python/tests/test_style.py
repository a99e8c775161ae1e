"""Rules of CONTRIBUTING.md that a machine can check by reading the sources."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: What each module may include, besides itself. Arrows point down only.
MAY_USE = {
    "mooncake-common": set(),
    "mooncake-transfer-engine": {"mooncake-common"},
    "mooncake-store": {"mooncake-transfer-engine", "mooncake-common"},
    "mooncake-integration": {"mooncake-store", "mooncake-transfer-engine", "mooncake-common"},
}

#: Files that may do what others may not, each with its reason.
THREADS = {
    "mooncake-common/src/concurrency/",  # Thread: the only place that creates threads.
}
CLOCKS = {"mooncake-common/src/base/clock.cc", "mooncake-common/src/base/wall_clock.cc"}


def tracked(*suffixes: str) -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    if not any(names):  # Not a checkout: an archive.
        names = [str(path.relative_to(ROOT)) for module in MAY_USE for path in (ROOT / module).rglob("*")]
    return [Path(name) for name in names if name.endswith(suffixes) and (ROOT / name).is_file()]


SOURCES = tracked(".h", ".cc")
TESTS = [path for path in SOURCES if path.stem.endswith("_test")]
PYTHON_TESTS = [path for path in tracked(".py") if "tests" in path.parts]
BENCHMARKS = [path for path in SOURCES if path.stem.endswith("_bench")]


def lines_with(pattern: str, paths: list[Path], allowed: set[str] = frozenset()) -> list[str]:
    found = []
    for path in paths:
        if any(str(path).startswith(prefix) for prefix in allowed):
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            if re.search(pattern, line.split("//")[0]):
                found.append(f"{path}:{number}: {line.strip()}")
    return found


def test_there_are_sources_to_look_at():
    assert len(SOURCES) > 10


@pytest.mark.parametrize("module", MAY_USE)
def test_includes_point_down(module):
    wrong = []
    for path in SOURCES:
        if path.parts[0] != module:
            continue
        for include in re.findall(r'#include "(mooncake-[a-z0-9-]+)/', (ROOT / path).read_text()):
            if include != module and include not in MAY_USE[module]:
                wrong.append(f"{path} includes {include}")
    assert not wrong


def test_only_thread_creates_threads():
    product = [path for path in SOURCES if path not in TESTS and path not in BENCHMARKS]
    assert not lines_with(r"std::j?thread\b(?!::)|pthread_create", product, THREADS)


def test_only_the_clock_reads_clocks():
    product = [path for path in SOURCES if path not in TESTS and path not in BENCHMARKS]
    # What a thread has used of a processor is no time of day or of waiting.
    clocks = r"(steady|system|high_resolution)_clock::now|clock_gettime\((?!CLOCK_THREAD_CPUTIME_ID)|gettimeofday"
    assert not lines_with(clocks, product, CLOCKS)


def test_tests_never_sleep_to_wait():
    assert not lines_with(r"sleep_for|sleep_until|\busleep\(|\bsleep\(", TESTS)
    assert not lines_with(r"time\.sleep|import sleep", PYTHON_TESTS, {"python/tests/test_style"})


def test_tests_have_one_limit_for_a_hang():
    assert not lines_with(r"steady_clock::now", TESTS)  # HangDeadline() and WaitUntil() instead.


def test_every_documented_environment_variable_is_read():
    table = ROOT / "mooncake-common/src/base/env_table.h"
    names = re.findall(r'\.name = "(\w+)"', table.read_text())
    product = [ROOT / path for path in SOURCES if path.suffix == ".cc" and path not in TESTS]
    read = set(re.findall(r'Env[A-Z]\w+\("(\w+)"', "\n".join(path.read_text() for path in product)))
    assert len(names) > 10
    assert sorted(set(names) - read) == []


def test_headers_say_pragma_once_and_files_stay_readable():
    headers = [path for path in SOURCES if path.suffix == ".h"]
    # A header for C has the guards that every C compiler knows.
    unguarded = [
        path for path in headers if not re.search(r"#pragma once|#ifndef \w+_H_?\n", (ROOT / path).read_text())
    ]
    assert not [str(path) for path in unguarded]
    assert not [str(path) for path in SOURCES if len((ROOT / path).read_text().splitlines()) > 600]


def test_every_folder_with_sources_says_what_it_is():
    def described(folder: Path) -> Path:
        # Folders below an include/ only carry the names of the include path.
        parts = folder.parts
        return Path(*parts[: parts.index("include") + 1]) if "include" in parts else folder

    sources = tracked(".h", ".cc", ".c", ".fbs", ".py", ".sh", ".cmake")
    folders = {described(path.parent) for path in sources}
    assert len(folders) > 10
    assert not sorted(str(folder) for folder in folders if not (ROOT / folder / "README.md").is_file())


def test_nothing_is_left_to_do():
    everything = tracked(".h", ".cc", ".py", ".sh", ".md", ".cmake", ".txt")
    word = "TO" + "DO"
    assert not [str(path) for path in everything if word in (ROOT / path).read_text()]
