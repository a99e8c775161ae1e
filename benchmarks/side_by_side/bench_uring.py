#!/usr/bin/env python3
"""io_uring beside plain calls: what the tcp transport does to a socket, done in both ways.

  bench_uring.py --binary build/release/mooncake-common/src/net/io_uring_bench [--rounds 3] [--json out.json]

The binary is the micro-benchmark of the source tree (ninja io_uring_bench). Samples: "ask 8 bytes us" and "send GB/s" of "calls", and as limits those of "io_uring".
"""
import argparse, json, os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchlib import *

CASES = (("BM_AskByCalls", "ask 8 bytes us", "calls"), ("BM_AskByRing/kernel_thread:0", "ask 8 bytes us", "io_uring"),
         ("BM_SendByCalls", "send GB/s", "calls"), ("BM_SendByRing/kernel_thread:0", "send GB/s", "io_uring"))
UNIT = {"ns": 1e-3, "us": 1.0, "ms": 1e3}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--binary", required=True)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--json")
    a = ap.parse_args()
    S, LIM = Samples(), Samples()
    if not os.path.exists(a.binary):
        S.add("RUN", "calls", None, note=f"left out: there is no {a.binary}; ninja -C build/release io_uring_bench makes it")
    for _ in range(a.rounds if not S.d else 0):
        command = [a.binary, "--benchmark_format=json", "--benchmark_min_time=0.3", "--benchmark_filter=Calls|kernel_thread:0"]
        runs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["benchmarks"]
        for name, case, who in CASES:
            r = next(r for r in runs if r["name"].startswith(name))
            note = r.get("error_message")
            value = None if note else r["bytes_per_second"] / 1e9 if "GB" in case else r["real_time"] * UNIT[r["time_unit"]]
            (LIM if who == "io_uring" else S).add(case, who, value, note=note)
    S.show(list(S.d), ["calls"])
    LIM.show(list(LIM.d), ["io_uring"])
    finish(a.json, host_info(), S, LIM)


if __name__ == "__main__":
    main()
