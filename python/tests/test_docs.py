"""What the pages say of flags and environment variables is what the programs say of themselves."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from docs.build import PACKAGE, PROGRAMS, read_flags
from mooncake import engine, mooncake_config, store

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *(path for path in DOCS.rglob("*.md") if "_generated" not in path.parts)]


def test_the_flag_tables_hold_the_defaults_of_the_master(scripts):
    flags = {flag.name: flag.default for flag in read_flags(scripts / "mooncake_master")}
    rows = re.findall(r"^\| `--(\w+)` \| (?:`([^`]*)` )?\|", (DOCS / "operations.md").read_text(), re.MULTILINE)
    assert len(rows) >= 20
    assert dict(rows) == {name: flags.get(name) for name, _ in rows}


@pytest.mark.parametrize("page", ["operations", "store", "engine", "getting_started", "architecture"])
def test_every_flag_that_a_page_names_exists(page):
    flags = {flag.name for program in PROGRAMS for flag in read_flags(PACKAGE / program)}
    named = set(re.findall(r"`--(\w+)", (DOCS / f"{page}.md").read_text()))
    assert page != "operations" or len(named) >= 25
    assert named <= flags


#: Read by the simulator's tests and by CMake, not by the product.
OF_DEVELOPERS = {"MC_SIM_FIRST", "MC_SIM_SEEDS", "MC_BUILD_FUZZERS"}


def test_every_variable_that_a_page_names_is_read():
    reference = engine.environment_reference()
    of_python = {variable.name for variable in mooncake_config.ENVIRONMENT}
    named = {name for page in PAGES for name in re.findall(r"\b(?:MC|MOONCAKE)_[A-Z0-9_]+", page.read_text())}
    assert len(named) >= 7
    read = of_python | OF_DEVELOPERS
    assert not [name for name in named if f"`{name}`" not in reference and name not in read]


def test_every_file_that_a_page_names_exists():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("not a git checkout: what is tracked is not known")
    pages = [path for path in listed if path.endswith(".md")]
    lost = []
    for page in pages:
        prose = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
        for name in re.findall(r"`([\w./-]+\.(?:h|cc|pyi?|sh|md|fbs|cmake|txt))`", prose):
            # `_fuzz.cc` stands for all such files; `mooncake/` is the installed package, where headers lie elsewhere.
            end = name if name.startswith("_") else "/" + re.sub(r"^(\.\.?/|mooncake/)", "", name)
            if not any(f"/{path}".endswith(end) for path in listed):
                lost.append(f"{page}: {name}")
    assert len(pages) > 40
    assert not lost


@pytest.mark.parametrize(
    ("page", "module", "owner", "least"),
    [("store", store, store.MooncakeDistributedStore, 30), ("engine", engine, engine.TransferEngine, 4)],
)
def test_what_is_said_to_be_absent_is(page, module, owner, least):
    text = (DOCS / f"{page}.md").read_text()
    absent = text.partition("## Not here yet\n")[2].partition("\n## ")[0].partition("\nOf what is here")[0]
    named = set(re.findall(r"`(\w{5,})`", absent)) - {"local", "protocol", "AttributeError", "ImportError"}
    forms = {f"batch_{name}" for name in named} | {f"{name}{end}" for name in named for end in ("_from", "_into")}
    assert len(named) >= least
    assert [name for name in named | forms if hasattr(module, name) or hasattr(owner, name)] == []
    modules = re.findall(r"`(mooncake\.\w+)`", text.partition("that are not here: ")[2].partition("\n\n")[0])
    assert [name for name in modules if importlib.util.find_spec(name)] == []
