#!/usr/bin/env python3
"""What a process costs that does nothing.

  bench_idle.py --venv A [--venv B ...] [--nixl N] [--secs 3] [--json out.json]

An implementation is [label=]VENV[,ENV=VALUE...] as for bench_te.py. Two engines with 64 KiB of registered memory each read from each other once, then nobody asks for
anything: CPU of the target in per cent of one core, its resident memory with Python, its threads. The same of a store client that holds an object, and of its master.
Then start and first read again, --starts times in fresh processes, the implementations in turn.
"""
import argparse, json, os, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("BENCH_BUF", str(64 << 10))     # read by bench_te, here and in the workers
from benchlib import *
import bench_store, bench_te

SETTLE = 1.0    # s; what was begun by the last call has ended


def idle_percent(pids, secs):
    """of one core, for each process"""
    time.sleep(SETTLE)
    before, t = [thread_ns(p) for p in pids], time.monotonic()
    time.sleep(secs)
    el = time.monotonic() - t
    return [(thread_ns(p) - b) / 1e9 / el * 100 for p, b in zip(pids, before)]


def start_part(impl, a, S, tmp):
    L, script = impl["label"], os.path.abspath(__file__)
    tgt, ini = (Worker(impl, script, role, tmp, role) for role in ("target", "initiator"))
    try:
        h = tgt.call(cmd="init", kind=impl["kind"], protocol="tcp")
        g = ini.call(cmd="init", kind=impl["kind"], protocol="tcp")
        c = ini.call(cmd="connect", peer=h)
        S.add("start: init ms", L, g["init_ms"], note=f"first read rc={c['rc']}" if c["rc"] else None)
        S.add("start: first 4K read ms", L, c["first_ms"])
    finally:
        ini.stop()
        tgt.stop()


def engine_part(impl, a, S, tmp):
    L, script = impl["label"], os.path.abspath(__file__)
    tgt, ini = (Worker(impl, script, role, tmp, role) for role in ("target", "initiator"))
    try:
        h = tgt.call(cmd="init", kind=impl["kind"], protocol="tcp")
        ini.call(cmd="init", kind=impl["kind"], protocol="tcp")
        c = ini.call(cmd="connect", peer=h)
        if c["rc"]:
            raise RuntimeError(f"first read rc={c['rc']}")
        cpu, = idle_percent([tgt.p.pid], a.secs)
        q = tgt.call(cmd="cpu")
        S.add("idle engine: CPU %", L, cpu)
        S.add("idle engine: rss MiB with Python", L, q["rss"] / 1024)
        S.add("idle engine: threads", L, q["threads"])
    finally:
        ini.stop()
        tgt.stop()


def store_part(impl, a, S, tmp):
    L, script, w, master = impl["label"], os.path.abspath(__file__), None, None
    try:
        master = Master(impl, tmp)
        w = Worker(impl, script, "store", tmp, "store")
        w.call(cmd="setup", protocol="tcp", master=master.addr, host="127.0.0.1", seg=16 << 20, local=16 << 20, timeout=90)
        w.call(cmd="verify", bs=4096, seed=1)
        wait_idle([w.p.pid])    # a client touches the pages of its segment ahead of their use, and puts that off while others compute
        client, server = idle_percent([w.p.pid, master.pid], a.secs)
        S.add("idle store client: CPU %", L, client)
        S.add("idle master: CPU %", L, server)
        S.add("idle master: rss MiB", L, master.rss_kb() / 1024)
        S.add("idle master: threads", L, len(os.listdir(f"/proc/{master.pid}/task")))
    finally:
        if w:
            w.stop()
        if master:
            master.stop()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--venv", action="append", default=[])
    ap.add_argument("--nixl", action="append", default=[])
    ap.add_argument("--starts", type=int, default=7)
    ap.add_argument("--secs", type=float, default=3)
    ap.add_argument("--json")
    a = ap.parse_args()
    impls = [parse_impl(x, "mooncake") for x in a.venv] + [parse_impl(x, "nixl") for x in a.nixl]
    info = host_info()
    print(json.dumps(info), "argv:", " ".join(sys.argv[1:]), flush=True)
    S = Samples()
    with tempfile.TemporaryDirectory() as tmp:
        for part, times in ((engine_part, 1), (store_part, 1), (start_part, a.starts)):
            for _ in range(times):
                for i in impls:
                    if part is store_part and i["kind"] == "nixl":
                        continue
                    try:
                        part(i, a, S, tmp)
                    except (Dead, RuntimeError) as e:
                        S.add(f"RUN {part.__name__}", i["label"], None, note=str(e))
        logs = tails(tmp)
    S.show([c for c in S.d if c.startswith(("idle", "start"))], [i["label"] for i in impls])
    finish(a.json, info, S, None, [c for c in S.d if c.startswith("RUN")], logs)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--worker":
        worker_main(bench_store.Client() if sys.argv[2] == "store" else bench_te.Worker_(sys.argv[2]))
    else:
        main()
