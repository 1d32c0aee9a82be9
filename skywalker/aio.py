"""skywalker for asyncio: what `import skywalker` offers, to be awaited.

async with await skywalker.aio.connect("host:3443") as junction:
    await junction.send("jobs", {"id": 1})
"""

from __future__ import annotations

from skywalker.clients.aio.client import Client, connect
from skywalker.clients.aio.driver import Pending
from skywalker.clients.aio.junction import Junction, LocalJunction
from skywalker.clients.aio.sharded import Sharded

__all__ = ["Client", "Junction", "LocalJunction", "Pending", "Sharded", "connect"]
