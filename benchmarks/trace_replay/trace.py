"""Request traces: a line a request, whose prompt is a list of block ids."""

import gzip
import json
from pathlib import Path
from typing import NamedTuple


class Request(NamedTuple):
    """One request of a trace."""

    timestamp_ms: int
    blocks: list[int]  # Block ids of the prompt, in order: block i is useful only after all before it.


def load(path: Path, limit: int = 0) -> list[Request]:
    """Reads a trace (``.jsonl`` or ``.jsonl.gz``), at most ``limit`` requests if that is not 0.

    Raises:
        ValueError: a line is no request; the message names file and line.
        OSError: the file cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    requests = []
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if limit and len(requests) == limit:
                break
            try:
                record = json.loads(line)
                requests.append(Request(int(record["timestamp"]), [int(block) for block in record["hash_ids"]]))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}:{number}: not a request of a trace: {error!r}") from error
    return requests
