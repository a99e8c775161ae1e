#!/usr/bin/env python3
"""The package's own benchmark, transfer_engine_bench, beside a plain socket; over loopback and over a cable.

  bench_tool.py --venv A [--venv B ...] [--rounds 3] [--secs 1] [--json out.json]

An implementation is [label=]VENV[,ENV=VALUE...] with the console script transfer_engine_bench. Every round starts a target of each implementation
in turn, and for every shape and both operations first moves the same shape over one raw TCP connection (the limit), then runs an initiator with two
threads. "tool" cases have both processes on 127.0.0.1; "cable" cases have them in two network namespaces with a veth pair between them, and so has
the limit: where the machine makes no namespaces those are left out, and listed among the errors. GB = 1e9 bytes.
"""
import argparse, contextlib, json, os, re, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from benchlib import *
from benchmarks.lab.hosts import Cable, Host, NoHostsError

SHAPES = [("4K x128", 4096, 128), ("64K x32", 65536, 32), ("1M x32", 1 << 20, 32)]
CASES = [f"{op} {name}" for name, _, _ in SHAPES for op in ("write", "read")]
THREADS = 2
FLAGS = ["--metadata_server=P2PHANDSHAKE", "--protocol=tcp", f"--threads={THREADS}", f"--buffer_size={THREADS * (32 << 20)}"]
PATIENCE = 30  # s


class Place:
    """Where target and initiator run: the addresses of both, and what the commands there begin with."""

    def __init__(self, name, target="127.0.0.1", initiator="127.0.0.1", target_host=None, initiator_host=None):
        self.name, self.target, self.initiator = name, target, initiator
        self.enter_target = target_host.enter if target_host else []
        self.enter_initiator = initiator_host.enter if initiator_host else []
        self.limit_env = {"PEER_NET": f"/proc/{target_host.pid}/ns/net", "OWN_ADDRESS": initiator} if target_host else {}


def cable_place(stack):
    """Two hosts with a cable, which live as long as the stack."""
    a = stack.enter_context(Host())
    b = stack.enter_context(Host(a))
    Cable("data", {"10.9.1.1": a, "10.9.1.2": b})
    return Place("cable", "10.9.1.1", "10.9.1.2", a, b)


def tool(impl, enter, *flags, **kw):
    env = dict(os.environ, PATH=os.path.join(impl["venv"], "bin") + ":" + os.environ["PATH"], **impl["env"])
    env.pop("PYTHONPATH", None)
    return subprocess.Popen([*enter, os.path.join(impl["venv"], "bin", "transfer_engine_bench"), *FLAGS, *flags], stdin=subprocess.DEVNULL, env=env, start_new_session=True, **kw)


def end(process):
    """Kills it and whatever it has started: a console script may be a wrapper around the real binary."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def target_name(log, process):
    """host:port, once the target has said it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        m = re.search(r"listening on (\S+:\d+)", open(log, errors="replace").read())
        if m:
            return m[1]
        if process.poll() is not None:
            raise Dead(f"target ended rc={process.returncode}")
        time.sleep(0.02)
    raise Dead(f"target does not say where it listens in {PATIENCE} s")


def throughput(impl, place, name, op, bs, cnt, secs):
    """GB/s of one initiator, and how it failed or None"""
    p = tool(impl, place.enter_initiator, "--mode=initiator", f"--local_server_name={place.initiator}", f"--segment_id={name}", f"--operation={op}", f"--block_size={bs}",
             f"--batch_size={cnt}", f"--duration={secs}", "--report_unit=GB", "--report_precision=3", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        out = p.communicate(timeout=secs + PATIENCE)[0]
    except subprocess.TimeoutExpired:
        end(p)
        return None, f"no end in {secs + PATIENCE} s"
    m = re.search(r"throughput (\S+) GB/s", out)
    return (float(m[1]), None) if m and p.returncode == 0 else (None, f"rc={p.returncode}: {out[-200:].strip()}")


def round_of(impl, a, S, LIM, lim, places, tmp):
    L = impl["label"]
    for place in places:
        log = os.path.join(tmp, f"{L}-{place.name}-target.log")
        with open(log, "wb") as errors:
            t = tool(impl, place.enter_target, "--mode=target", f"--local_server_name={place.target}", stdout=errors, stderr=errors)
        try:
            name = target_name(log, t)
            for shape, bs, cnt in SHAPES:
                for op in ("write", "read"):
                    case = f"{place.name} {op} {shape}"
                    if a.only not in case:
                        continue
                    if lim:
                        r = lim.run("tcp" + op, bs, cnt, 0.25, enter=place.enter_initiator, env=place.limit_env)
                        LIM.add(case, "tcp", r.get("gbps"), note=r.get("error"))
                    gbps, why = throughput(impl, place, name, op, bs, cnt, a.secs)
                    S.add(case, L, gbps, note=why)
        except Dead as e:
            S.add(f"RUN {place.name}", L, None, note=str(e))
            print(f"  {L} {place.name}: {e}", flush=True)
        finally:
            end(t)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--venv", action="append", default=[], required=True)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--secs", type=int, default=1, help="whole seconds a case: the tool takes no less")
    ap.add_argument("--retries", type=int, default=1, help="repeat a round when other processes took more than 15%% of the cores")
    ap.add_argument("--only", default="", help="run only the cases whose name contains this text")
    ap.add_argument("--no-limits", action="store_true")
    ap.add_argument("--json")
    a = ap.parse_args()
    impls = [parse_impl(x, "mooncake") for x in a.venv]
    names = [i["label"] for i in impls]
    info = host_info()
    print(json.dumps(info), "argv:", " ".join(sys.argv[1:]), flush=True)
    S, LIM = Samples(), Samples()
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as hosts:
        places = [Place("tool")]
        try:
            places.append(cable_place(hosts))
        except (NoHostsError, subprocess.CalledProcessError) as e:
            print(f"no cable: {e}", flush=True)
            for n in names:
                S.add("cable", n, None, note=f"left out: {e}")
        lim = None if a.no_limits else Limits(tmp)
        for rnd in range(a.rounds):
            for i in impls:
                quiet_round(S, lambda T: round_of(i, a, T, LIM, lim, places, tmp), f"round {rnd + 1} {i['label']}", i["label"], retries=a.retries)
        logs = tails(tmp)
    for place in places:
        cases = [f"{place.name} {c}" for c in CASES]
        print(f"### {place.name}: GB/s; limit = one raw TCP connection, same shape, median of those taken beside")
        S.show(cases, names, limits={c: LIM.med(c, "tcp") for c in cases} if lim else None)
    finish(a.json, info, S, LIM, [c for c in S.d if c.startswith("RUN")], logs)


if __name__ == "__main__":
    main()
