"""The table of figures: its rows name cases that the programs print, and its verdicts follow the bounds."""

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.figures import document, goals, measure, noise, reasons, report, results
from benchmarks.figures.goals import (
    ENGINE,
    IDLE,
    LATENCY,
    NIXL,
    OURS,
    TCP,
    TOOL,
    URING,
    WHEEL,
    Row,
    Source,
    at_least,
    at_most,
)

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
        options = [argument.split("=")[0] for argument in command[2:] if argument.startswith("--")]
        assert [option for option in options if option not in told] == []


def test_a_short_run_fills_the_rows_that_it_measured(tmp_path):
    """The latencies' program, really run over this installation."""
    plan = measure.Plan(Path(sys.prefix), None, None, quick=True, out=tmp_path)
    _, script, *_ = measure.command(LATENCY, plan)
    arguments = ["--venv", f"{OURS}={sys.prefix}", "--rounds", "1", "--chunks", "2", "--retries", "0"]
    arguments += ["--json", str(tmp_path / f"{LATENCY}.json")]
    subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True, timeout=300)
    measured = results.load(tmp_path)
    assert measured.failures() == []
    verdicts = {(row.section, row.work): goals.judge(row, measured) for row in goals.rows()}
    section = "Engine, same host, one call after the other"
    read = verdicts[section, "read 4 KiB, memory of the caller, p50"]
    assert read.ours > 0
    assert read.of_limit > 1  # The call of the kernel is a part of ours.
    assert read.met is not None
    assert verdicts[section, "read 4 KiB, memory of the engine, p50"].ours is None
    for work in ("put 4 KiB", "get 4 KiB, one round trip", "get 4 KiB, under lease", "is_exist (80 000/s are 12.5 µs)"):
        verdict = verdicts["Store, objects of another process", f"{work}, p50"]
        assert verdict.ours > 0
        assert verdict.limit > 0


def test_a_short_run_takes_throughput_beside_its_limit(tmp_path):
    plan = measure.Plan(Path(sys.prefix), None, None, quick=True, out=tmp_path)
    _, script, *_ = measure.command(ENGINE, plan)
    arguments = ["--venv", f"{TCP}={sys.prefix},MC_FORCE_TCP=1", "--beside", TCP, "--no-limits", "--retries", "0"]
    arguments += ["--only", "write 64K x128", "--rounds", "1", "--secs", "0.2"]
    arguments += ["--json", str(tmp_path / f"{ENGINE}.json")]
    subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True, timeout=300)
    measured = results.load(tmp_path)
    assert measured.failures() == []
    verdicts = {(row.section, row.work): goals.judge(row, measured) for row in goals.rows()}
    for work in ("write 64 KiB × 128", "CPU of both sides, write 64 KiB × 128"):
        verdict = verdicts["Engine, TCP only", work]
        assert verdict.ours > 0
        assert verdict.limit > 0
        assert verdict.of_limit > 0
        assert verdict.met is not None
    # Of several threads the limit is one of them.
    assert measured.values(Source(ENGINE, "write 64K x128 4thr", TCP, is_limit=True))[0] > 0


def test_a_short_run_tells_what_an_idle_process_costs(tmp_path):
    plan = measure.Plan(Path(sys.prefix), None, None, quick=True, out=tmp_path)
    subprocess.run(measure.command(IDLE, plan), check=True, capture_output=True, timeout=300)
    measured = results.load(tmp_path)
    assert measured.failures() == []
    verdicts = {row.work: goals.judge(row, measured) for row in goals.rows()}
    assert verdicts["threads of an idle engine"].ours >= 1
    assert verdicts["resident, with Python and 64 KiB registered"].ours > 1
    for work in ("CPU of an idle engine", "CPU of an idle store client", "CPU of an idle master", "start"):
        assert verdicts[work].ours is not None


class _TwoSpeeds:
    """Stands for limits.c on a machine that becomes half as fast in the middle."""

    def __init__(self) -> None:
        self.speed = 1.0

    def run(self, *_: object) -> dict[str, float]:
        return {"p50_us": 7.0 * self.speed}


def _side_by_side(name: str) -> ModuleType:
    path = ROOT / "benchmarks/side_by_side" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_latency_is_held_against_the_limit_of_its_own_moment(tmp_path):
    module, machine = _side_by_side("bench_latency"), _TwoSpeeds()
    chunks = module.Chunks(machine)
    for machine.speed in (1.0, 1.0, 1.0, 2.0, 2.0):
        chunks.take("call", (("pingpongs", 64, 64), 2), lambda: {"lat": [28.0 * machine.speed] * 5, "bad": 0})
    samples, limits = module.Samples(), module.Samples()
    chunks.report(samples, limits, OURS)
    assert limits.d["call us"][OURS] == [14.0]
    # A limit of another moment says that the call is too slow; the one beside it does not.
    _write(tmp_path, LATENCY, samples.d, {"call us": {OURS: [10.0]}})
    limit, ratio = Source(LATENCY, "call us", OURS, is_limit=True), Source(LATENCY, "call of limit", OURS)
    apart = Row("s", "w", "µs", Source(LATENCY, "call p50 us", OURS), (goals.by_ratio(14, 7),), limit=limit)
    measured = results.load(tmp_path)
    assert goals.judge(apart, measured).met is False
    verdict = goals.judge(dataclasses.replace(apart, ratio=ratio), measured)
    assert verdict.ours == 28.0
    assert verdict.of_limit == 2.0
    assert verdict.met is True


def test_a_goal_by_ratio_says_where_it_comes_from():
    assert goals.by_ratio(10, 6.8).text() == "≤ 1.47 × the limit (10 µs where the limit is 6.8)"


def test_a_program_that_needs_a_missing_binary_says_what_makes_it(tmp_path):
    script = ROOT / "benchmarks/side_by_side/bench_uring.py"
    out = tmp_path / f"{URING}.json"
    command = [sys.executable, str(script), "--binary", str(tmp_path / "none"), "--json", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (failure,) = results.load(tmp_path).failures()
    assert "ninja -C build/release io_uring_bench" in failure


def test_the_document_takes_the_figures_of_a_folder_between_its_markers(tmp_path):
    host = {"date": "2001-01-01", "cores": 2, "cpu": "Abacus", "kernel": "6"}
    samples = {"idle engine: threads": {OURS: [5.0]}, "idle engine: CPU %": {OURS: [0.0]}}
    folder = tmp_path / "figures"
    folder.mkdir()
    results.note_run(folder, steal=0.25, objects=1000)
    content = {"host": host, "impl": {"samples": samples, "errors": {"a | b": ["refused"]}}}
    (folder / f"{IDLE}.json").write_text(json.dumps(content), encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{document.BEGIN}\nold\n{document.END}\nafter\n", encoding="utf-8")
    for _ in range(2):  # What it wrote it can replace.
        assert document.main([str(folder), "--page", str(page)]) == 0
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"before\n{document.BEGIN}")
        assert text.endswith(f"{document.END}\nafter\n")
        assert "old" not in text
        assert "Taken on 2001-01-01: 2 cores of an Abacus" in text
        assert "hypervisor 25% of the time" in text
        assert "**1 of 2 goals are met.**" in text
        assert "| threads of an idle engine |  | 5.00 | - | - |  |  | ≤ 4 | **no** |" in text
        assert "- **Engine, start and rest: threads of an idle engine.** " in text
        assert "memory of 1000 objects" in text
        assert "idle: a | b: refused" in text


@pytest.mark.parametrize("page", ["", "{begin}", "{end} {begin}", "{begin} {end} {end}"])
def test_a_page_without_its_markers_is_refused_and_left(tmp_path, capsys, page):
    path = tmp_path / "page.md"
    text = page.format(begin=document.BEGIN, end=document.END)
    path.write_text(text, encoding="utf-8")
    _write(tmp_path, ENGINE, {})
    (tmp_path / f"{ENGINE}.json").write_text(
        json.dumps({"host": {"date": "", "cores": 1, "cpu": "", "kernel": ""}, "impl": {"samples": {}, "errors": {}}})
    )
    assert document.main([str(tmp_path), "--page", str(path)]) == 1
    assert "figures: begin" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == text


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert document.main([str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_the_published_page_holds_the_rows_and_goals_that_the_program_makes():
    page = document.PAGE.read_text(encoding="utf-8")
    figures = page.split(document.BEGIN)[1].split(document.END)[0]
    written = []
    for section in figures.split("\n## ")[1:]:
        name, *lines = section.splitlines()
        cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][1:]
        written += [(name, *[cell.strip() for cell in row]) for row in cells]
    wanted = [(row.section, row.work, " and ".join(bound.text() for bound in row.bounds)) for row in goals.rows()]
    assert [(row[0], row[1]) for row in written] == [(section, work) for section, work, _ in wanted]
    assert [goal for row, (*_, goal) in zip(written, wanted, strict=True) if goal and goal not in row] == []
    assert f"{sum('**no**' not in row and 'yes' in row for row in written)} of " in figures


def test_every_reason_belongs_to_a_row_with_a_goal():
    rows = [row for row in goals.rows() if row.bounds]
    for pattern, reason in reasons.REASONS:
        assert any(reasons.of(row) == reason for row in rows), pattern
    assert reasons.of(_row(at_most(1))) == reasons.UNKNOWN


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
