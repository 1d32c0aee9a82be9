"""skywalker for asyncio: what `import skywalker` offers, to be awaited.

async with await skywalker.aio.connect("host:3443") as junction:
    await junction.send("jobs", {"id": 1})
"""

from __future__ import annotations

from skywalker.clients.aio import Client, connect
from skywalker.clients.aio_interface import AsyncJunction as Junction
from skywalker.clients.aio_interface import Pending
from skywalker.clients.aio_local import LocalJunction

__all__ = ["Client", "Junction", "LocalJunction", "Pending", "connect"]
