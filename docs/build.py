"""Builds the documentation into build/docs; any warning is an error.

Run with the project's virtual environment: the references of variables and flags are what the installed package says of
itself, so they cannot differ from it.
"""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

from mooncake import engine, mooncake_config

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ROOT / "docs" / "_generated"
PACKAGE = Path(engine.__file__).parent  # Where all binaries lie; not all are console scripts.
PROGRAMS = ("mooncake_master", "mooncake_client", "transfer_engine_bench", "transfer_engine_validator")


def environment_page() -> str:
    """All environment variables: those that the compiled part reads, and those of the Python package."""
    rows = ["| Variable | Default | Meaning |", "|---|---|---|"]
    rows.append("| `MOONCAKE_CONFIG_PATH` | unset | a JSON file with the fields of `MooncakeConfig` |")
    rows.append("| `MOONCAKE_MASTER` | unset | the master's address; needed without a file |")
    for variable in mooncake_config.ENVIRONMENT:
        rows.append(f"| `{variable.name}` | {variable.default or 'empty'} | {variable.meaning} |")
    of_python = "## Read by `mooncake.mooncake_config`\n\n" + "\n".join(rows)
    return f"# Environment variables\n\n{engine.environment_reference()}\n\n{of_python}\n"


class Flag(NamedTuple):
    """A command-line flag as its program describes it; ``default`` as a user would write it, empty if there is none."""

    name: str
    default: str
    meaning: str


def read_flags(binary: Path) -> list[Flag]:
    """The flags of a binary by name, read from its own ``--helpxml``; those of the flag library itself are left out."""
    output = subprocess.run([binary, "--helpxml"], capture_output=True, text=True, check=False).stdout
    flags = []
    for element in ET.fromstring(output).iter("flag"):
        if "mooncake-" not in element.findtext("file", ""):
            continue
        name, default, meaning = (element.findtext(key, "") for key in ("name", "default", "meaning"))
        if element.findtext("type") == "double":
            default = f"{float(default):g}"
        flags.append(Flag(name, default, meaning))
    return sorted(flags)


def flags_page(title: str, binary: Path) -> str:
    """A table of the flags of a binary."""
    rows = []
    for flag in read_flags(binary):
        name, default, meaning = (cell.replace("|", "\\|").replace("\n", " ") for cell in flag)
        rows.append(f"| `--{name}` | {f'`{default}`' if default else 'empty'} | {meaning} |")
    return "\n".join([f"# {title}", "", "| Flag | Default | Meaning |", "|---|---|---|", *rows, ""])


def main() -> int:
    """Returns Sphinx's exit code."""
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "environment.md").write_text(environment_page())
    for program in PROGRAMS:
        page = GENERATED / f"{program.removeprefix('mooncake_')}_flags.md"
        page.write_text(flags_page(f"Flags of {program}", PACKAGE / program))
    command = ["-W", "--keep-going", "-q", "-b", "html", str(ROOT / "docs"), str(ROOT / "build" / "docs")]
    return subprocess.run([sys.executable, "-m", "sphinx", *command], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
