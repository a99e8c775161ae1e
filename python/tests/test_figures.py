"""The table of figures: its rows name cases that the programs print, and its verdicts follow the bounds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import goals, measure, noise, report, results
from benchmarks.figures.goals import ENGINE, NIXL, OURS, TCP, TOOL, WHEEL, Row, Source, at_least, at_most

ROOT = Path(__file__).resolve().parents[2]


def _write(folder: Path, program: str, samples: results.Samples, limits: results.Samples | None = None) -> None:
    document = {
        "host": {"cores": 2},
        "impl": {"samples": samples, "errors": {"write 4K x128 | published": ["3 errors", "3 errors"]}},
        "limits": {"samples": limits or {}},
    }
    (folder / f"{program}.json").write_text(json.dumps(document), encoding="utf-8")


def _row(*bounds: goals.Bound) -> Row:
    return Row(
        "Engine",
        "write",
        "GB/s",
        Source(ENGINE, "write 4K x128", OURS),
        bounds,
        {NIXL: Source(ENGINE, "write 4K x128", NIXL), WHEEL: Source(ENGINE, "write 4K x128", WHEEL)},
        Source(ENGINE, "4K x128", "cmawrite", is_limit=True),
        "process_vm_*",
    )


@pytest.fixture
def measured(tmp_path: Path) -> results.Results:
    _write(
        tmp_path,
        ENGINE,
        {
            "write 4K x128": {OURS: [15.0, None, 17.0, 16.0], NIXL: [10.0], WHEEL: [None]},
            noise.OTHERS: {OURS: [0.02, 0.11]},
        },
        {"4K x128": {"cmawrite": [18.0, 20.0, 22.0]}},
    )
    return results.load(tmp_path)


@pytest.mark.parametrize(
    ("bounds", "met"),
    [
        ((at_least(0.8, "limit"),), True),
        ((at_least(0.81, "limit"),), False),
        ((at_least(0.8, "limit"), at_least(1.7, NIXL)), False),
        ((at_most(16),), True),
        ((at_most(15.9),), False),
        ((at_least(1, WHEEL),), None),  # It failed in every round: nothing to be held against.
        ((at_least(100, WHEEL), at_least(10)), True),
        ((), None),
    ],
)
def test_a_median_is_held_against_each_bound_that_was_measured(measured, bounds, met):
    verdict = goals.judge(_row(*bounds), measured)
    assert verdict.ours == 16.0
    assert verdict.rivals == {NIXL: 10.0}
    assert verdict.limit == 20.0
    assert verdict.met is met


def test_what_nobody_measured_is_neither_met_nor_missed():
    verdict = goals.judge(_row(at_most(1)), results.Results())
    assert verdict.met is None
    assert report.summary([verdict]) == "0 of 0 goals that were measured are met."


def test_noise_is_the_spread_of_the_limits_and_what_others_took(measured):
    weighed = noise.weigh(measured, steal=0.01)
    assert weighed.others == 0.11
    assert weighed.worst_spread == pytest.approx(0.2)
    assert "by 20%" in weighed.text()
    assert "taken once" in noise.weigh(results.Results(), steal=0.0).text()


def test_steal_is_a_share_of_the_time_of_all_cores():
    before = noise.CpuTimes.parse("cpu  100 0 50 800 10 5 5 30 7 0\n")
    later = noise.CpuTimes.parse("cpu  150 0 60 810 10 5 5 60 7 0\n")
    assert before.steal_until(later) == pytest.approx(0.3)
    assert noise.CpuTimes.now().total > 0


def test_both_reports_hold_every_row_its_verdict_and_what_failed(measured):
    verdicts = [goals.judge(_row(at_most(15)), measured)]
    weighed = noise.weigh(measured, 0.0)
    page = report.markdown(verdicts, weighed, "host", measured.failures())
    assert "| write | GB/s | 16.0 | - | 10.0 | 20.0 (process_vm_*) | 80% | ≤ 15 | **no** |" in page
    assert "Missed: Engine, write." in page
    assert "* engine: write 4K x128 | published: 3 errors" in page
    html = report.html(verdicts, weighed, "host", measured.failures())
    assert html.count('<td class="no">no</td>') == 1
    assert "http" not in html, "the file needs nothing else"


def test_another_programs_json_is_refused_by_name(tmp_path):
    (tmp_path / "engine.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"engine\.json"):
        results.load(tmp_path)


@pytest.mark.parametrize("text", ["0", "0.0042", "1.30", "18.7", "128", "4 120 000", "-"])
def test_numbers_keep_three_digits(text):
    value = None if text == "-" else float(text.replace(" ", ""))
    assert report.number(value) == {"0.0042": "0.004"}.get(text, text)


def _printed_cases() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks/side_by_side").glob("bench_*.py"))


def test_rows_are_told_apart_and_name_cases_of_the_programs():
    rows = goals.rows()
    names = [(row.section, row.work) for row in rows]
    assert len(set(names)) == len(names)
    source = _printed_cases() + " ".join(measure.TRACES)
    for row in rows:
        assert row.ours.program in measure.PROGRAMS
        # Programs compose a case of literal words and sizes: each word stands in them.
        for word in re.findall(r"[a-z_]{3,}", row.ours.case):
            assert word in source, f"{row.ours.case!r}: no program says {word!r}"


def test_every_program_takes_its_command_line(tmp_path):
    plan = measure.Plan(Path("/o"), Path("/p"), Path("/n"), quick=True, out=tmp_path)
    for program in measure.PROGRAMS:
        command = measure.command(program, plan)
        assert command[0] == sys.executable
        told = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
        assert "--json" in told
        options = [argument for argument in command[2:] if argument.startswith("--")]
        assert [option for option in options if option not in told] == []


def test_a_short_run_fills_the_rows_that_it_measured(tmp_path):
    """The engine's program, really run over this installation."""
    plan = measure.Plan(Path(sys.prefix), None, None, quick=True, out=tmp_path)
    _, script, *_ = measure.command(ENGINE, plan)
    arguments = ["--venv", f"{OURS}={sys.prefix}", "--rounds", "1", "--secs", "0.1", "--retries", "0"]
    arguments += ["--only", "lat read 4K", "--no-limits", "--json", str(tmp_path / f"{ENGINE}.json")]
    subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True, timeout=300)
    verdicts = [goals.judge(row, results.load(tmp_path)) for row in goals.rows()]
    by_work = {verdict.row.work: verdict for verdict in verdicts if verdict.row.section == "Engine, same host"}
    assert by_work["read 4 KiB, p50"].ours is not None
    assert by_work["write 64 B, p50"].ours is None


def test_where_no_hosts_can_be_made_the_cable_is_left_out_and_said_so(tmp_path):
    plan = measure.Plan(Path(sys.prefix), None, None, quick=True, out=tmp_path)
    arguments = ["--retries", "0", "--only", "tool write 64K", "--no-limits"]
    done = subprocess.run(
        [*measure.command(TOOL, plan), *arguments],
        env={"PATH": str(tmp_path)},  # No tool to make hosts with.
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "no cable: needs unshare, nsenter, ip" in done.stdout
    measured = results.load(tmp_path)
    verdicts = {row.work: goals.judge(row, measured) for row in goals.rows()}
    assert verdicts["loopback, write 64 KiB × 32"].ours > 0
    assert verdicts["another address, write 64 KiB × 32"].ours is None
    assert f"{TOOL}: cable | {TCP}: left out: needs unshare, nsenter, ip" in measured.failures()
