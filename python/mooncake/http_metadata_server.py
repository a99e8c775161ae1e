"""The metadata server: a small key-value store over HTTP where engines publish how to reach them.

Interface: ``GET|PUT|DELETE /metadata?key=...``. Values are kept in memory. A key that contains ``rpc_meta`` can be
put only once until it is deleted, so that two processes cannot share a name.
"""

import argparse
import asyncio
import enum
import logging
import signal
import threading
from collections.abc import Awaitable, Callable

from aiohttp import web

logger = logging.getLogger(__name__)

#: Largest value accepted, in bytes: a descriptor of some ten thousand buffers.
MAX_VALUE_BYTES = 16 << 20


class KVPoll(enum.IntEnum):
    """State of a server, as ``poll()`` tells it."""

    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


class KVBootstrapServer:
    """A metadata server on ``host:port``, run by a thread of its own between ``run()`` and ``close()``.

    Args:
        port: TCP port; 0 takes a free one, which ``port`` names after ``run()``.
        host: Address to listen on.
    """

    def __init__(self, port: int, host: str = "0.0.0.0"):
        self.port = port
        self.host = host
        self.store: dict[str, bytes] = {}
        self._state = KVPoll.Bootstrapping
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._stopping: asyncio.Event | None = None

    def make_app(self) -> web.Application:
        """The aiohttp application that serves this store."""
        app = web.Application(client_max_size=MAX_VALUE_BYTES)
        app.router.add_route("*", "/metadata", self._handle_metadata)
        return app

    async def _handle_metadata(self, request: web.Request) -> web.Response:
        key = request.query.get("key", "").strip()
        if not key:
            return _text(400, "metadata key is required")
        handlers: dict[str, Callable[[str, web.Request], Awaitable[web.Response]]] = {
            "GET": self._get,
            "PUT": self._put,
            "DELETE": self._delete,
        }
        handler = handlers.get(request.method)
        if handler is None:
            return _text(405, "Method not allowed")
        return await handler(key, request)

    async def _get(self, key: str, _: web.Request) -> web.Response:
        value = self.store.get(key)
        if value is None:
            return _text(404, "metadata not found")
        return web.Response(status=200, body=value, content_type="application/json")

    async def _put(self, key: str, request: web.Request) -> web.Response:
        value = await request.read()
        if "rpc_meta" in key and key in self.store:
            return _text(400, "Duplicate rpc_meta key not allowed")
        self.store[key] = value
        return _text(200, "metadata updated")

    async def _delete(self, key: str, _: web.Request) -> web.Response:
        if self.store.pop(key, None) is None:
            return _text(404, "metadata not found")
        return _text(200, "metadata deleted")

    async def serve(self) -> None:
        """Serves until ``close()`` is called or the task is cancelled. Raises OSError if the port is taken."""
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        runner = web.AppRunner(self.make_app(), access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self.host, self.port)
            await site.start()
            self.port = runner.addresses[0][1]
            self._state = KVPoll.Success
            logger.info("metadata server listens on %s:%d", self.host, self.port)
            self._ready.set()
            await self._stopping.wait()
        finally:
            await runner.cleanup()
            self._state = KVPoll.Failed

    def run(self) -> None:
        """Starts the server's thread and returns once it listens. Raises OSError if the port is taken."""
        if self._thread is not None:
            raise RuntimeError("this server runs already; close() it first")
        self._thread = threading.Thread(target=self._run_thread, name="metadata-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            self._thread.join()
            self._thread = None
            raise self._error

    def _run_thread(self) -> None:
        try:
            asyncio.run(self.serve())
        except BaseException as error:  # Handed to run(), which raises it in the caller's thread.
            self._error = error
            self._state = KVPoll.Failed
            self._ready.set()

    def close(self) -> None:
        """Stops the server and frees the port. May be called twice."""
        if self._loop is not None and self._stopping is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def poll(self) -> KVPoll:
        """``Success`` while it serves, ``Bootstrapping`` before, ``Failed`` after."""
        return self._state


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="application/json")


async def _serve_until_signal(server: KVBootstrapServer) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(server.serve())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        logger.info("metadata server stopped")


def main(argv: list[str] | None = None) -> int:
    """Console script ``mooncake_http_metadata_server``; returns the exit code."""
    parser = argparse.ArgumentParser(prog="mooncake_http_metadata_server", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="TCP port (default 8080)")
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on (default 0.0.0.0)")
    parser.add_argument("--log-level", default="INFO", help="DEBUG, INFO, WARNING or ERROR (default INFO)")
    args = parser.parse_args(argv)
    level = logging.getLevelName(args.log_level.upper())
    if not isinstance(level, int):
        parser.error(f"--log-level: unknown level {args.log_level!r}; use DEBUG, INFO, WARNING or ERROR")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s")
    try:
        asyncio.run(_serve_until_signal(KVBootstrapServer(args.port, args.host)))
    except OSError as error:
        logger.error(
            "cannot listen on %s:%d: %s; choose another --port or stop who holds it",
            args.host,
            args.port,
            error,
        )
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
