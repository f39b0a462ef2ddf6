"""The admin pages: HTTP on a port of their own.

    GET /healthz   200 while the broker serves, 503 while it stops
    GET /metrics   for Prometheus
    GET /status    JSON: neighbours, clients, tables, queues, rates, drops
    POST /leave    leave the overlay for good, and stop

`AdminAccess` decides about each request. A POST must also carry the header X-Mercast. A web page of another origin
cannot add it without a preflight request.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler

from broker.config.address import Address
from broker.runtime.admin_access import AdminAccess
from broker.runtime.status import Status, as_prometheus


class AdminPages:
    def __init__(
        self,
        broker: str,
        access: AdminAccess,
        status: Callable[[], Status],
        is_stopping: Callable[[], bool],
        request_leave: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._access = access
        self._read_status = status
        self._is_stopping = is_stopping
        self._request_leave = request_leave
        self._runner: web.AppRunner | None = None

    async def start(self, address: Address) -> Address:
        """Serves the pages. Returns their address, with the port that the system chose for port 0."""
        app = web.Application(middlewares=[self._check])
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/metrics", self._metrics),
                web.get("/status", self._status),
                web.post("/leave", self._leave),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, address.host, address.port)
        await site.start()
        port = self._runner.addresses[0][1]
        return Address(address.host, port)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self._access.refusal(request.path, request.headers)
        if refusal is None:
            return await handler(request)
        headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
        return web.Response(status=refusal.status, text=f"{refusal.text}\n", headers=headers)

    async def _healthz(self, _request: web.Request) -> web.Response:
        if self._is_stopping():
            return web.Response(status=503, text="stopping\n")
        return web.Response(text="ok\n")

    async def _metrics(self, _request: web.Request) -> web.Response:
        text = as_prometheus(self._read_status())
        return web.Response(body=text.encode(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _status(self, _request: web.Request) -> web.Response:
        return web.json_response(self._read_status().as_json())

    async def _leave(self, request: web.Request) -> web.Response:
        if "X-Mercast" not in request.headers:
            return web.Response(status=403, text="a POST must carry the header X-Mercast\n")
        self._request_leave()
        return web.Response(text=f"{self._broker} leaves the overlay\n")
