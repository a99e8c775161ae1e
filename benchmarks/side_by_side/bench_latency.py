#!/usr/bin/env python3
"""Latencies, each beside the machine's limit of the same moment.

  bench_latency.py --venv A [--venv B ...] [--nixl N] [--rounds 3] [--chunks 9] [--json out.json]

An implementation is [label=]VENV[,ENV=VALUE...] as for bench_te.py. Virtual machines have two speeds in time: a ping-pong over loopback takes half as long
again for minutes, so a latency and a limit that were taken apart say nothing of each other. Here every round of an implementation is cut into chunks of some
milliseconds: the limits, then the calls, then the limits, and so on. A chunk's figure stands beside the mean of the limits before and after it.
Samples: "CASE p50 us" and "CASE p99 us", a round's medians over its chunks; "CASE of limit" and "CASE p99 of limit", medians of the chunks' ratios to the limit's p50.
The limits are under the same case, with the implementation's label: each has its own.
  engine   read 4 KiB, write 64 B, write 4 KiB: one call after the other
  store    objects of another process: one client puts, a second one gets them for the first time (one round trip) and again (under the lease); is_exist
           and batches of other keys. Limits: spinning sockets, as many round trips as the protocol needs, without the copy.
"""
import argparse, json, os, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchlib import *
import bench_store, bench_te

CALLS = 300          # of a limit, and of an engine's chunk
KEYS = 400           # of a store's chunk
WARM_SHARE = 8       # of a chunk's calls, the first eighth is not counted: caches are cold from the limits, and whoever answers was asleep
STORE_BLOCK = 4096
# what limits.c is asked, and how often that is needed for one call
PAGE, WORD, SHARED = (("cmapong", STORE_BLOCK, 0), 1), (("cmapong", 64, 1), 1), (("shmpong", 0, 0), 1)
PAGE_OUT = (("cmapong", STORE_BLOCK, 1), 1)
SOCKETS_READ, SOCKETS_WRITE = (("pingpongs", 24, 4096), 1), (("pingpongs", 4120, 8), 1)
TURN, TWO_TURNS = (("pingpongs", 64, 64), 1), (("pingpongs", 64, 64), 2)
ENGINE = {"lat read 4K": (False, 4096, PAGE, SOCKETS_READ), "lat write 64B": (True, 64, WORD, TURN), "lat write 4K": (True, 4096, PAGE_OUT, SOCKETS_WRITE)}
STORE = {"put 4K": TWO_TURNS, "get 4K, one round trip": TURN, "get 4K, under lease": SHARED, "is_exist": TURN, "batch_put_from 4K x128": TWO_TURNS,
         "batch_get_into 4K x128": TURN, "batch_is_exist x1024": TURN}


def timed(call, arguments):
    """us of each call, and how many were refused"""
    lat, bad = [], 0
    for x in arguments:
        a = time.perf_counter()
        ok = call(x)
        b = time.perf_counter()
        lat.append((b - a) * 1e6)
        bad += not ok
    return {"lat": lat[len(lat) // WARM_SHARE:], "bad": bad}


class StoreClient(bench_store.Client):
    def __call__(self, m):
        s, c = getattr(self, "s", None), m["cmd"]
        if c == "puts":
            value = bytes(STORE_BLOCK)
            return timed(lambda k: s.put(k, value) == 0, m["keys"])
        if c == "gets":
            return timed(lambda k: len(s.get(k)) == STORE_BLOCK, m["keys"])
        if c == "exists":
            return timed(lambda k: s.is_exist(k) == 1, m["keys"])
        if c in ("batch_puts", "batch_gets"):
            n = len(m["groups"][0])
            at, sizes = [self.b.addr + i * STORE_BLOCK for i in range(n)], [STORE_BLOCK] * n
            if c == "batch_puts":
                return timed(lambda g: not any(s.batch_put_from(g, at, sizes)), m["groups"])
            return timed(lambda g: s.batch_get_into(g, at, sizes) == sizes, m["groups"])
        if c == "batch_exists":
            return timed(lambda g: sum(s.batch_is_exist(g)) == len(g), m["groups"])
        return super().__call__(m)


class EngineSide(bench_te.Worker_):
    def __call__(self, m):
        if m["cmd"] != "calls":
            return super().__call__(m)
        f = self.a.single(m["write"], m["bs"])
        return timed(lambda _: (f() or 0) >= 0, range(m["n"]))


class Chunks:
    """the figures of one implementation in one round, and the limits around them"""

    def __init__(self, lim):
        self.lim, self.cases, self.bad = lim, {}, {}

    def limit(self, wanted):
        (what, a, b), times = wanted
        p = self.lim.run(what, a, b, CALLS).get("p50_us")
        return None if p is None else p * times

    def take(self, case, wanted, measure):
        before = self.limit(wanted)
        r = measure()
        after = self.limit(wanted)
        self.bad[case] = self.bad.get(case, 0) + r["bad"]
        sides = [x for x in (before, after) if x]
        self.cases.setdefault(case, []).append((pct(r["lat"], .5), pct(r["lat"], .99), sum(sides) / len(sides) if sides else None))

    def report(self, S, LIM, L):
        for case, chunks in self.cases.items():
            S.add(case + " p50 us", L, median([c[0] for c in chunks]), note=f"{self.bad[case]} calls refused" if self.bad[case] else None)
            S.add(case + " p99 us", L, median([c[1] for c in chunks]))
            both = [c for c in chunks if c[2]]
            if both:
                S.add(case + " of limit", L, median([c[0] / c[2] for c in both]))
                S.add(case + " p99 of limit", L, median([c[1] / c[2] for c in both]))
                LIM.add(case + " us", L, median([c[2] for c in both]))


def engine_round(impl, a, lim, S, LIM, tmp):
    C, script = Chunks(lim), os.path.abspath(__file__)
    ws = [Worker(impl, script, role, tmp, role) for role in ("target", "initiator")]
    try:
        tgt, ini = ws
        h = tgt.call(cmd="init", kind=impl["kind"], protocol="tcp")
        ini.call(cmd="init", kind=impl["kind"], protocol="tcp")
        if ini.call(cmd="connect", peer=h)["rc"]:
            raise RuntimeError("the first read failed")
        for _ in range(a.chunks):
            for case, (write, bs, own, tcp) in ENGINE.items():
                wanted = tcp if impl["env"].get("MC_FORCE_TCP") else SHARED if impl["env"].get("BENCH_MANAGED") else own
                C.take(case, wanted, lambda: ini.call(cmd="calls", write=write, bs=bs, n=CALLS))
        C.report(S, LIM, impl["label"])
    except (Dead, RuntimeError) as e:
        S.add("RUN engine", impl["label"], None, note=str(e))
    finally:
        [w.stop() for w in reversed(ws)]


def store_round(impl, a, lim, S, LIM, tmp):
    C, script, ws, master = Chunks(lim), os.path.abspath(__file__), [], None
    try:
        master = Master(impl, tmp, ["--default_kv_lease_ttl=30000"])
        for name, seg in (("server", 256 << 20), ("writer", 0), ("reader", 0)):
            w = Worker(impl, script, "store", tmp, name)
            ws.append(w)
            w.call(cmd="setup", protocol="tcp", master=master.addr, host="127.0.0.1", seg=seg, local=0 if seg else 64 << 20, timeout=90)
        _, writer, reader = ws
        wait_idle([master.pid, *(w.p.pid for w in ws)])
        for chunk in range(-1, a.chunks):          # the first one warms connections and is not counted
            D = C if chunk >= 0 else Chunks(lim)
            keys = [f"latency/{chunk}/{i}" for i in range(KEYS)]
            groups = [[f"latency/{chunk}/{g}/{i}" for i in range(128)] for g in range(12)]
            flat = [k for g in groups for k in g]
            D.take("put 4K", STORE["put 4K"], lambda: writer.call(cmd="puts", keys=keys))
            D.take("is_exist", STORE["is_exist"], lambda: writer.call(cmd="exists", keys=keys))
            D.take("get 4K, one round trip", STORE["get 4K, one round trip"], lambda: reader.call(cmd="gets", keys=keys))
            D.take("get 4K, under lease", STORE["get 4K, under lease"], lambda: reader.call(cmd="gets", keys=keys))
            D.take("batch_put_from 4K x128", STORE["batch_put_from 4K x128"], lambda: writer.call(cmd="batch_puts", groups=groups))
            D.take("batch_get_into 4K x128", STORE["batch_get_into 4K x128"], lambda: reader.call(cmd="batch_gets", groups=groups))
            D.take("batch_is_exist x1024", STORE["batch_is_exist x1024"], lambda: writer.call(cmd="batch_exists", groups=[flat[:1024]] * 8))
        C.report(S, LIM, impl["label"])
    except (Dead, RuntimeError) as e:
        S.add("RUN store", impl["label"], None, note=str(e))
    finally:
        [w.stop() for w in reversed(ws)]
        if master:
            master.stop()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--venv", action="append", default=[])
    ap.add_argument("--nixl", action="append", default=[])
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--chunks", type=int, default=9)
    ap.add_argument("--retries", type=int, default=1, help="repeat a round when other processes took more than 15%% of the cores")
    ap.add_argument("--only", default="", help="engine or store")
    ap.add_argument("--json")
    a = ap.parse_args()
    impls = [parse_impl(x, "mooncake") for x in a.venv] + [parse_impl(x, "nixl") for x in a.nixl]
    info = host_info()
    print(json.dumps(info), "argv:", " ".join(sys.argv[1:]), flush=True)
    S, LIM = Samples(), Samples()
    with tempfile.TemporaryDirectory() as tmp:
        lim = Limits(tmp)
        for rnd in range(a.rounds):
            for i in impls:
                for part in (engine_round, store_round):
                    name = part.__name__.split("_")[0]
                    if a.only not in name or part is store_round and (i["kind"] == "nixl" or i["env"].get("BENCH_MANAGED")):
                        continue
                    quiet_round(S, lambda T: part(i, a, lim, T, LIM, tmp), f"round {rnd + 1} {name} {i['label']}", i["label"], retries=a.retries)
        logs = tails(tmp)
    names = [i["label"] for i in impls]
    cases = [*ENGINE, *STORE]
    for title, end in (("p50, us", " p50 us"), ("p99, us", " p99 us"), ("p50, times the limit's beside it", " of limit"), ("p99, times the limit's p50 beside it", " p99 of limit")):
        print(f"### {title}")
        S.show([c + end for c in cases if c + end in S.d], names)
    print("### Limits beside each, us")
    LIM.show([c + " us" for c in cases if c + " us" in LIM.d], names)
    finish(a.json, info, S, LIM, [c for c in S.d if c.startswith("RUN")], logs)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--worker":
        worker_main(StoreClient() if sys.argv[2] == "store" else EngineSide(sys.argv[2]))
    else:
        main()
