"""Hosts for a test or a measurement: network namespaces with cables between them, which need no privileges.

What runs there shares files and processes with its maker, but no address: not even 127.0.0.1.
"""

import json
import shutil
import subprocess
import sys
from types import TracebackType

TOOLS = ("unshare", "nsenter", "ip")

GET = """
import json, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as reply:
    print(json.dumps([reply.status, reply.read().decode(), reply.headers.get("Content-Type", "")]))
"""


class NoHostsError(Exception):
    """This machine forbids them, or lacks a tool; the text says which."""


class Host:
    """A network namespace with a loopback interface; those made with the same ``first`` can be linked.

    Attributes:
        enter: What a command begins with to run there.
        pid: Of a process there.
    """

    def __init__(self, first: "Host | None" = None):
        """Raises NoHostsError where namespaces cannot be made."""
        if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
            raise NoHostsError(f"needs {', '.join(missing)}")
        new = [*first.enter, "unshare", "--net"] if first else ["unshare", "--user", "--map-root-user", "--net"]
        # Lives as long as its input: no longer than this process.
        self._keeper = subprocess.Popen(
            [*new, "sh", "-c", "echo made; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if not self._keeper.stdout.readline():
            raise NoHostsError(f"no network namespaces here: {self._keeper.communicate()[1].strip()}")
        self.pid = self._keeper.pid
        self.enter = ["nsenter", f"--target={self.pid}", "--user", "--net", "--preserve-credentials"]
        self.ip("link", "set", "lo", "up")

    def __enter__(self) -> "Host":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeper.communicate("")

    def ip(self, *arguments: str) -> None:
        """ip(8) there."""
        subprocess.run([*self.enter, "ip", *arguments], check=True)

    def get(self, url: str) -> tuple[int, str, str]:
        """(status, body, content type) of a GET from there; OSError if nobody answers."""
        done = subprocess.run(
            [*self.enter, sys.executable, "-c", GET, url], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(done.stderr)
        return tuple(json.loads(done.stdout))


class Cable:
    """Connects two hosts, each of which has one address on it."""

    def __init__(self, name: str, ends: dict[str, Host], prefix_length: int = 24):
        """``ends``: the hosts by address. Their interfaces are both called ``name``."""
        self._name, self._ends = name, ends
        one, other = ends.values()
        one.ip("link", "add", name, "type", "veth", "peer", "name", name, "netns", str(other.pid))
        for address, host in ends.items():
            # "nodad": usable at once, as nobody else can have it.
            host.ip("address", "add", f"{address}/{prefix_length}", "dev", name, *(["nodad"] if ":" in address else []))
            host.ip("link", "set", name, "up")

    def lose_packets(self) -> None:
        """From now on nothing that is sent arrives, and nobody is told."""
        # Each end has a wrong idea of the other's hardware: frames arrive, but are not for who gets them.
        self._neighbours("replace", "lladdr", "02:00:00:00:00:01", "nud", "permanent")

    def mend(self) -> None:
        """Ends lose_packets()."""
        self._neighbours("delete")

    def _neighbours(self, change: str, *more: str) -> None:
        one, other = self._ends
        for address, host in ((one, self._ends[other]), (other, self._ends[one])):
            host.ip("neighbour", change, address, "dev", self._name, *more)
