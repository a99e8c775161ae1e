"""What bounds the figures that may miss their goals, as profiles have shown: a line of the document for each."""

import re

from benchmarks.figures.goals import Row

UNKNOWN = "Not explained yet."

#: (pattern of "section: work", reason); the first that matches counts.
REASONS: tuple[tuple[str, str], ...] = ()


def of(row: Row) -> str:
    """Why this row may be missed; ``UNKNOWN`` if no profile has told."""
    name = f"{row.section}: {row.work}"
    return next((reason for pattern, reason in REASONS if re.search(pattern, name)), UNKNOWN)
