"""The main job in small: the trace replay with a master and two nodes, every read verified."""

import re
import subprocess
import sys
from pathlib import Path

from waiting import HANG_LIMIT_S

ROOT = Path(__file__).resolve().parents[2]


def test_a_trace_is_replayed_on_two_nodes_and_reported(tmp_path):
    command = [sys.executable, "-m", "benchmarks.trace_replay", "--limit=300", "--blocks=2000", "--value=8kb"]
    done = subprocess.run(
        [*command, f"--out={tmp_path}"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "100%" in done.stderr
    summary = (tmp_path / "summary.txt").read_text()
    assert "0 values were wrong" in summary
    assert "failures by code: none" in summary  # Nothing is refused while something can be evicted.
    store = float(re.search(r"^prefix hit ratio +([\d.]+)", summary, re.MULTILINE)[1])
    best = float(re.search(r"offline optimum +prefix ([\d.]+)", summary)[1])
    assert 0 < store <= best
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 4
    assert not re.search(r"(src|href)=", page)  # Self-contained.


def test_a_missing_trace_is_named(tmp_path):
    command = [sys.executable, "-m", "benchmarks.trace_replay", "--trace=/no/such/trace", f"--out={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False)
    assert done.returncode == 1
    assert "/no/such/trace" in done.stderr
