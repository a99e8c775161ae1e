"""Starts a master and the nodes of a replay as processes of this machine, and stops them whatever happens."""

import json
import queue
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.trace_replay.node import Settings

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
#: Of a host of our own; the kernel gives none of these away.
RPC_PORT, METRICS_PORT, METADATA_PORT = 20051, 20052, 20053


class ClusterError(RuntimeError):
    """A process of the cluster did not start or died; the message ends with its last lines."""


def resident_bytes(pid: int) -> int:
    """Resident memory of a process now, 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def own_loopback_host() -> str:
    """One of the sixteen million addresses of the loopback network, so that its ports are ours alone.

    A port that is found free on an address which others use may be theirs a moment later: the kernel gives it to the
    next socket that asks for any.
    """
    draw = random.SystemRandom()
    return f"127.{draw.randint(1, 254)}.{draw.randint(0, 255)}.{draw.randint(1, 254)}"


class Process:
    """A child process; what it writes to its error stream is kept in ``log``."""

    def __init__(self, name: str, command: list[str], log: Path):
        self.name = name
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def output(self) -> Any:
        """Lines of its standard output."""
        return self._process.stdout

    def say(self, line: str) -> None:
        """Writes a line to its standard input."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self.death() from None

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def death(self) -> ClusterError:
        """The error to raise when it has died."""
        code = self._process.wait(STOP_TIMEOUT_S)
        tail = self._log.read_text(errors="replace")[-2000:]
        return ClusterError(f"{self.name} ended with {code}; the end of {self._log}:\n{tail}")

    def stop(self) -> None:
        """Asks it to end, and makes it end."""
        if self.alive():
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def resident_bytes(self) -> int:
        """Resident memory now, 0 if it is gone."""
        return resident_bytes(self.pid)


class Cluster:
    """One master and some nodes.

    Args:
        binaries: Folder of ``mooncake_master``.
        logs: Folder for the processes' logs.
        lease_ms: Read lease of the master, in milliseconds.
        eviction_policy: The master's: ``hdi`` or ``lru``.
    """

    def __init__(self, binaries: Path, logs: Path, lease_ms: int, eviction_policy: str):
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        host = own_loopback_host()
        self.master_address = f"{host}:{RPC_PORT}"
        self._metrics_url = f"http://{host}:{METRICS_PORT}/metrics"
        flags = [
            f"--rpc_address={host}",
            f"--rpc_port={RPC_PORT}",
            f"--metrics_host={host}",
            f"--metrics_port={METRICS_PORT}",
            f"--default_kv_lease_ttl={lease_ms}",
            f"--eviction_policy={eviction_policy}",
        ]
        self._binary = binaries / "mooncake_master"
        self.master = Process("mooncake_master", [str(self._binary), *flags], logs / "master.log")
        self.nodes: list[Process] = []
        self.messages: queue.Queue[tuple[int, dict[str, Any]]] = queue.Queue()
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.nodes, self.master]:
            process.stop()
        for reader in self._readers:
            reader.join()

    def wait_for_master(self) -> None:
        """Returns once the master answers; raises ClusterError if it does not."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.metrics() is None:
            if not self.master.alive():
                raise self.master.death()
            if time.monotonic() > deadline:
                raise ClusterError(f"mooncake_master does not answer at {self._metrics_url}")
            time.sleep(0.02)

    def add_node(self, settings: Settings) -> None:
        """Starts a node; its messages come through ``messages`` as (node number, message)."""
        number = len(self.nodes)
        command = [sys.executable, "-m", "benchmarks.trace_replay.node"]
        node = Process(f"node {number}", command, self._logs / f"node{number}.log")
        self.nodes.append(node)
        reader = threading.Thread(target=self._read, args=(number, node), name=f"node-{number}-reader")
        reader.start()
        self._readers.append(reader)
        node.say(json.dumps(asdict(settings)))

    def _read(self, number: int, node: Process) -> None:
        for line in node.output:
            self.messages.put((number, json.loads(line)))
        self.messages.put((number, {"kind": "ended"}))

    def metrics(self) -> dict[str, float] | None:
        """The master's metrics without labels, by name; None if it does not answer."""
        try:
            with urllib.request.urlopen(self._metrics_url, timeout=5) as reply:
                text = reply.read().decode()
        except OSError:
            return None
        values = {}
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name and not line.startswith("#") and "{" not in name:
                values[name] = float(value)
        return values
