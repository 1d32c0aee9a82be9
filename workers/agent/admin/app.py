"""What is found at which path."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from skywalker.access.access import Access
from workers.access.refusals import Refusals
from workers.agent.admin import lists, ring
from workers.agent.admin.console import page
from workers.agent.admin.exposition import Exposition
from workers.agent.admin.gate import Gate
from workers.agent.admin.guard import Guard
from workers.agent.admin.questions import Questions
from workers.agent.admin.samples import Samples
from workers.agent.admin.state import State
from workers.agent.admin.view import View
from workers.stats.shared import SharedCounters

JSON = "application/json"
EVENTS = "text/event-stream"


def make(
    view: View,
    shared: SharedCounters,
    samples: Samples,
    questions: Questions,
    name: str | None,
    access: Access | None,
    refusals: Refusals,
) -> ASGIApp:
    """Return the app of a server that was told to listen on `name`; None is for one that may have any.

    With `access`, only those who may see it get to see it; those who may not are noted in `refusals`.
    """
    state = State(view, samples)
    refused = Counter[str]()
    exposition = Exposition(shared, view, samples, refused)
    console, policy = page()

    async def health(request: Request) -> Response:
        return _well(await view.is_well())

    async def ready(request: Request) -> Response:
        return _well(view.is_ready(shared.read().live()) and await view.is_well())

    async def scraped(request: Request) -> Response:
        body, content_type = exposition.body(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    async def topics(request: Request) -> Response:
        order, limit = _asked(request, lists.TOPICS)
        return Response(await lists.topics(questions, samples, order, limit), media_type=JSON)

    async def connections(request: Request) -> Response:
        order, limit = _asked(request, lists.CONNECTIONS)
        return Response(await lists.connections(questions, samples, order, limit), media_type=JSON)

    async def events(request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type=EVENTS)
        return StreamingResponse(state.events(), media_type=EVENTS)

    async def shown(request: Request) -> Response:
        return Response(console, media_type="text/html", headers={"content-security-policy": policy})

    def of(body: Callable[[], bytes]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return Response(body(), media_type=JSON)

        return answer

    routes = {
        "/": shown,
        "/health": health,
        "/ready": ready,
        "/metrics": scraped,
        "/api/state": of(state.body),
        "/api/topics": topics,
        "/api/connections": connections,
        "/api/ring": of(lambda: ring.body(view.snapshot, view.me.id)),
        "/api/history": of(samples.history),
        "/api/events": events,
    }
    app = Starlette(
        routes=[Route(path, answer) for path, answer in routes.items()],
        exception_handlers={404: _nothing_there, 405: _not_done, HTTPException: _refused, Exception: _mistake},
    )
    app.router.redirect_slashes = False
    return Guard(app if access is None else Gate(app, access, refusals, refused), name)


def _asked(request: Request, orders: Collection[str]) -> tuple[str, int]:
    """Return the parameters of a list. Raises HTTPException for bad ones."""
    given = dict(request.query_params)
    if len(given) < len(request.query_params.multi_items()):
        raise HTTPException(400, "a parameter is given twice")
    order = given.pop("order", next(iter(orders)))
    limit = given.pop("limit", str(lists.DEFAULT_LIMIT))
    if given:
        raise HTTPException(400, f"{next(iter(given))!r} is not a parameter here: use order or limit")
    if order not in orders:
        raise HTTPException(400, f"order={order!r} is not one of {', '.join(orders)}")
    if not (limit.isascii() and limit.isdecimal() and len(limit) <= 9 and 1 <= int(limit) <= lists.MAX_LIMIT):
        raise HTTPException(400, f"limit={limit!r} is not a number from 1 to {lists.MAX_LIMIT}")
    return order, int(limit)


def _well(well: bool) -> Response:
    return _json({"status": "OK" if well else "ERROR"}, 200 if well else 503)


def _json(content: Any, status: int) -> Response:
    return Response(json.dumps(content, separators=(",", ":")).encode(), status, media_type=JSON)


def _nothing_there(request: Request, error: Exception) -> Response:
    return _json({"error": f"there is nothing at {request.url.path}"}, 404)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is asked for no other"
    return _json({"error": error.detail}, error.status_code)


def _not_done(request: Request, error: Exception) -> Response:
    response = _json({"error": f"{request.method} is not done here, but GET and HEAD"}, 405)
    response.headers["allow"] = "GET, HEAD"
    return response


def _mistake(request: Request, error: Exception) -> Response:
    return _json({"error": "a mistake in the node, see its log"}, 500)
