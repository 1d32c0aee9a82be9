"""Whether somebody may see what the admin server shows, where access is limited: only principals with `admin` may.

Who they are a token says, else a client's certificate, else the network that they come from.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from skywalker.access.access import Access
from skywalker.access.principal import Principal
from skywalker.errors import Forbidden, RequestError, Unauthorized
from workers.access.refusals import Refusals
from workers.agent.admin.transport import NAMES

OPEN: Final = frozenset(("/health", "/ready"))
"""Paths that everybody may ask for: they say OK or ERROR, and nothing of the node."""

MISSING: Final = "admin"
"""What a principal has to be allowed."""

CHALLENGE: Final = 'Basic realm="skywalker: any user name, a token as the password", charset="UTF-8"'
"""Has a browser ask for a token."""


class Gate:
    """Stands in front of the app."""

    def __init__(self, app: ASGIApp, access: Access, refusals: Refusals, refused: Counter[str]) -> None:
        """`refused` counts those that are, by the code of the error."""
        self._app = app
        self._access = access
        self._refusals = refusals
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            if scope["path"] not in OPEN:
                self._check(scope)
        except (Unauthorized, Forbidden) as error:
            self._refused[error.code] += 1
            self._refusals.note("{}:{}".format(*scope["client"] or ("?", 0)), error)
            await _refusal(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raise Unauthorized or Forbidden for somebody who may not see this."""
        given = Headers(scope=scope).getlist("authorization")
        principal, shown = (self._by_token(given), True) if given else self._by_connection(scope)
        if principal is not None and principal.admin:
            return
        if given and principal is None:
            raise Unauthorized("this node does not know that token", {"missing": MISSING})
        if principal is not None and shown:
            raise Forbidden(f"{principal.name} may not see this: it lacks {MISSING}", {"missing": MISSING})
        # Whoever is known only by the way they came may still be asked for a token.
        raise Unauthorized(
            "this node wants to know who asks: give a token, as Authorization: Bearer TOKEN or the password of Basic, "
            "or a client's certificate",
            {"missing": MISSING},
        )

    def _by_token(self, given: list[str]) -> Principal | None:
        token = _token(given[0]) if len(given) == 1 else None
        return None if token is None else self._access.by_token(token)

    def _by_connection(self, scope: Scope) -> tuple[Principal | None, bool]:
        """Return who comes over the connection, and whether they have shown anything to be known by."""
        state: dict[str, Any] = scope.get("state", {})
        client = scope["client"]
        return self._access.of(state.get(NAMES, ()), None, client[0] if client else "")


def _token(header: str) -> str | None:
    """Return the token in an Authorization header, None if there is none in it."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return None
    try:
        _user, colon, password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return password if colon else None


def _refusal(error: RequestError) -> JSONResponse:
    is_unknown = isinstance(error, Unauthorized)
    return JSONResponse(
        {"error": str(error), "code": error.code, **error.details},
        401 if is_unknown else 403,
        headers={"www-authenticate": CHALLENGE} if is_unknown else None,
    )
