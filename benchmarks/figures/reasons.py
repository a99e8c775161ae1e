"""What bounds the figures that may miss their goals, as profiles have shown: a line of the document for each."""

import re

from benchmarks.figures.goals import Row

UNKNOWN = "Not explained yet."

#: (pattern of "section: work", reason); the first that matches counts.
REASONS: tuple[tuple[str, str], ...] = (
    (
        r"same host: (read|write) (64 KiB|1 MiB).*memory of the engine",
        "`perf record -e cpu-clock` of the loop with 64 KiB × 128: 93 % of the time is glibc's `memmove`, in one "
        "thread, without a switch; all else together (the interpreter's lists, slices, completion) is 7 %, 20 µs "
        "of a batch of 420. Taken for 0.3 s beside `memcpy` for 0.2 s the ratio was 79 to 107 %: 16 MiB lie in a "
        "cache that other guests of the host share, and it is warm for whoever ran last. Pages of 4 KiB are not "
        "the cause: `memcpy` between two memfds was as quick as between two anonymous mappings in one process "
        "(10.6 and 10.2 GB/s).",
    ),
    (
        r"one call after the other: .*memory of the caller",
        "The call of the kernel, which is the limit, and 2 to 3 µs besides: 1.4 to 2.3 are the call from Python "
        "and the bookkeeping of one transfer (the same loop over memory of the engine, which needs no kernel, "
        "shows it); and each read fetches the peer's nonce in the same system call, a page more, so that another "
        "process with its number is never believed.",
    ),
    (
        r"one call after the other: .*memory of the engine",
        "No system call is made: what is left is the call from Python with its argument checks, and the batch, "
        "slice and completion of one transfer. 0.7 µs were measured where the machine was at its faster speed, "
        "1.4 to 2.4 µs at its slower one.",
    ),
    (
        r"TCP only: read 4 KiB × 128",
        "`perf record` of both processes: the copies of the kernel lead (18 %), then the spinning of the side "
        "that waits. A batch of 512 KiB takes 104 to 134 µs where the raw connection takes 93 to 109; the raw one "
        "sends its next request at once, ours after the interpreter has made the next three lists, and 5 % go "
        "into making the list for each `readv` anew.",
    ),
    (
        r"TCP only: CPU of both sides",
        "Both sides spin while the other copies, so CPU follows the slower of the two: at the machine's slower "
        "speed they wait longer. The copies themselves are the same.",
    ),
    (
        r"TCP only: read 4 KiB, p50",
        "Two turns of spinning threads around the same `recv` and `send` that the limit consists of; besides 4 to "
        "6 µs for the call from Python (1.5 to 2.3 as in memory of the engine), the frame and its check. The "
        "design's 10 µs were measured where two spinning sockets take 6.8; here the ratio is 1.5 at the machine's "
        "faster speed and up to 1.7 at its slower one.",
    ),
    (
        r"TCP only: (ask|send)",
        "Plain calls are what is used: over loopback both sides' work is done inside `send`, so a ring has "
        "nothing to overlap (docs/design/lanes.md). Where the two differ by less than a tenth, it is noise.",
    ),
    (
        r"start and rest: (start|first read)",
        "Within the noise: 0.45 to 0.6 ms on a quiet machine, of which making the thread, the sockets and the page "
        "that peers share are the most; `strace` showed the list of interfaces (0.07 to 0.18 ms), which is no longer "
        "asked for where a host is named. The starts of ours and the published package are taken in turn.",
    ),
    (
        r"Store, .*: (put 4 KiB|get 4 KiB, one round trip|is_exist)",
        "`perf record` of the caller of puts: 68 % of the time is the kernel (above all `recv`, `send` and what "
        "is under them, of the two that spin), 20 % our code, most of it spinning, 5 % Python and the module. "
        "While the machine is at its faster speed a put takes 35 µs, a get 21 and an is_exist 14; at its slower "
        "one 80 to 100, 45 to 75 and 20 to 35. It changes between the two within seconds, so even chunks of "
        "milliseconds beside their limits scatter. One round trip for a small put was weighed: "
        "docs/design/small_puts.md.",
    ),
    (
        r"Store, .*: get 4 KiB, under lease",
        "No round trip: the descriptor comes from the cache and the copy from the owner's memory. 4.4 µs at the "
        "machine's faster speed, 6 to 7 at its slower one, of which the interpreter's call and the new `bytes` "
        "object are about half.",
    ),
    (
        r"Store, .*: batch_(put_from|get_into) 4 KiB",
        "`perf record` of the puts: kernel 37 % (sockets, and the faults of pages that are touched for the first "
        "time), `memmove` 17 %, our code 28 %, allocations 8 %, Python 5 %. Of the gets: our code 39 % (of it 17 "
        "the descriptor cache), `memmove` 15 %, kernel 22 %. At the machine's faster speed a put takes 430 µs and "
        "a get 270.",
    ),
    (
        r"Store, .*: batch_(put_from|get_into) 1 MiB",
        "Every put goes to memory that has not been written before: bound by the faults of new pages and by "
        "memory itself.",
    ),
    (
        r"Store, .*: batch_is_exist",
        "`perf record` of the caller: kernel 32 % (60 KB through a socket), our code 26 % (encoding, and spinning "
        "for the answer), Python 24 % (1 024 strings in, 1 024 numbers out).",
    ),
    (
        r"Master: puts by",
        "More spinning threads than processors. Since kernel 6.6 a `sched_yield` beside a thread that computes "
        "lasts a whole slice; whoever spins gives up after such a yield ([lanes](design/lanes.md)).",
    ),
    (
        r"Master: longest",
        "A slice of the scheduler or more that another process had, on two processors.",
    ),
    (
        r"Prefix hit ratio",
        "The policy draws lots. Replays of the synthetic trace with 3 000 blocks gave .189 to .202 (goal .198), with "
        "1 000 blocks .088 to .095 (goal .092); of the conversation with 3 000 blocks .134 to .137 (goal .137), with "
        "10 000 blocks .240 to .243 (goal .243). Leases of 5, 100 and 400 ms made no difference beyond that.",
    ),
)


def of(row: Row) -> str:
    """Why this row may be missed; ``UNKNOWN`` if no profile has told."""
    name = f"{row.section}: {row.work}"
    return next((reason for pattern, reason in REASONS if re.search(pattern, name)), UNKNOWN)
