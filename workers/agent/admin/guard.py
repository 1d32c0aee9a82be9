"""Stands in front of the app: who asks by a name that is not this server's gets nothing.

A page from elsewhere whose name is made to lead here would be read by any script in it. With TLS it would not: there
a browser first sees whether the name that it asks by is in the certificate.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOST: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::[0-9]{1,5})?", re.ASCII)

HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Of every response."""

POLICY: Final = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
"""Of every response that has none of its own."""


class Guard:
    """`name` is the one that the server was told to listen on; any numeric address, and localhost, are good too.

    None is for a server with TLS.
    """

    def __init__(self, app: ASGIApp, name: str | None) -> None:
        self._app = app
        self._name = None if name is None else name.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = message["headers"]
                headers = [*given, *HEADERS]
                if not any(name == POLICY[0] for name, _ in given):
                    headers.append(POLICY)
                message = {**message, "headers": headers}
            await send(message)

        host = Headers(scope=scope).get("host", "localhost")  # HTTP/1.0 has none, and no browser speaks it
        if self._is_ours(host):
            await self._app(scope, receive, send_on)
        else:
            problem = f"this is not {host[:255]}: ask by a numeric address, or as localhost"
            body = json.dumps({"error": problem}).encode()
            await Response(body, 421, media_type="application/json")(scope, receive, send_on)

    def _is_ours(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        if self._name is None:
            return True
        name = match[1].strip("[]").lower()
        if name in ("localhost", self._name):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
