"""What the benchmark programs measured, read from the JSON that they write."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Source:
    """Where one figure stands: a program, its case, and who was measured (a limit has a name of its own)."""

    program: str
    case: str
    label: str
    is_limit: bool = False


Samples = dict[str, dict[str, list[float | None]]]


@dataclass
class Results:
    """The samples of all programs that ran: program -> case -> label -> one value a round (None = failed)."""

    implementations: dict[str, Samples] = field(default_factory=dict)
    limits: dict[str, Samples] = field(default_factory=dict)
    errors: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    hosts: list[dict[str, object]] = field(default_factory=list)
    objects: int = 1_000_000  # How many the master held when its memory was taken.
    steal: float = 0.0  # Of the cores' time while the programs ran, taken by the hypervisor.

    def values(self, source: Source) -> list[float]:
        """The rounds that succeeded, in the order they ran."""
        programs = self.limits if source.is_limit else self.implementations
        measured = programs.get(source.program, {}).get(source.case, {}).get(source.label, [])
        return [value for value in measured if value is not None]

    def median(self, source: Source | None) -> float | None:
        """The median over the rounds; None if nobody measured it."""
        values = self.values(source) if source else []
        return median(values) if values else None

    def failures(self) -> list[str]:
        """What went wrong, a line each: refused calls, wrong bytes, processes that died."""
        return sorted(
            f"{program}: {case}: {'; '.join(sorted({str(note) for note in notes}))}"
            for program, errors in self.errors.items()
            for case, notes in errors.items()
        )


#: What a run notes of itself; not the results of a program.
RUN = "run.json"


def note_run(folder: Path, steal: float, objects: int) -> None:
    """Keeps what no program knows: see ``Results.steal``, and how many objects the master held."""
    (folder / RUN).write_text(json.dumps({"steal": steal, "objects": objects}), encoding="utf-8")


def load(folder: Path) -> Results:
    """Reads every ``<program>.json`` of a folder.

    Raises OSError, or ValueError for a file that is not what a program writes.
    """
    results = Results()
    run = folder / RUN
    if run.exists():
        noted = json.loads(run.read_text(encoding="utf-8"))
        results.steal, results.objects = noted["steal"], noted["objects"]
    for path in sorted(folder.glob("*.json")):
        if path == run:
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        try:
            results.implementations[path.stem] = document["impl"]["samples"]
            results.errors[path.stem] = document["impl"]["errors"]
            results.limits[path.stem] = document.get("limits", {}).get("samples", {})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: not the JSON of a benchmark program ({error!r})") from error
        if "host" in document:
            results.hosts.append(document["host"])
    return results
