"""How far the figures of a run may be trusted: what else the machine did, and how much its limits differed by round."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.figures.results import Results

OTHERS = "others' share of the cores"


@dataclass(frozen=True)
class Noise:
    """Shares from 0 to 1; None where nothing was measured twice."""

    others: float | None  # The most that other processes took of the cores during a kept round.
    steal: float  # Of the cores' time while the run lasted, taken by the hypervisor.
    typical_spread: float | None  # Median over the limits of (largest - smallest) / median of their rounds.
    worst_spread: float | None

    def text(self) -> str:
        """One sentence."""
        others = "not measured" if self.others is None else f"at most {self.others:.0%} of the cores"
        if self.typical_spread is None or self.worst_spread is None:
            spread = "every limit was taken once, so differences of a third mean nothing"
        else:
            spread = (
                f"the same limit differed between rounds by {self.typical_spread:.0%} typically and "
                f"{self.worst_spread:.0%} at worst: smaller differences mean nothing"
            )
        return f"Other processes took {others}, the hypervisor {self.steal:.0%} of the time; {spread}."


@dataclass(frozen=True)
class CpuTimes:
    """Jiffies of all cores since boot."""

    total: int
    steal: int

    @staticmethod
    def now() -> "CpuTimes":
        """Reads /proc/stat."""
        return CpuTimes.parse(Path("/proc/stat").read_text(encoding="ascii").splitlines()[0])

    @staticmethod
    def parse(line: str) -> "CpuTimes":
        """Takes the first line of /proc/stat: "cpu user nice system idle iowait irq softirq steal ..."."""
        fields = [int(field) for field in line.split()[1:9]]
        return CpuTimes(total=sum(fields), steal=fields[7])

    def steal_until(self, later: "CpuTimes") -> float:
        """The share of steal between the two."""
        return (later.steal - self.steal) / max(1, later.total - self.total)


def weigh(results: Results, steal: float) -> Noise:
    """What the results say about the machine they were taken on."""
    others = [
        share
        for samples in results.implementations.values()
        for rounds in samples.get(OTHERS, {}).values()
        for share in rounds
        if share is not None
    ]
    spreads = []
    for samples in results.limits.values():
        for by_label in samples.values():
            for rounds in by_label.values():
                kept = [value for value in rounds if value is not None]
                if len(kept) > 1 and median(kept) > 0:
                    spreads.append((max(kept) - min(kept)) / median(kept))
    return Noise(
        max(others, default=None),
        steal,
        median(spreads) if spreads else None,
        max(spreads, default=None),
    )
