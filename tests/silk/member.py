"""Nodes in a process of their own, to be killed and stopped: lines of JSON say what to do, and tell what happens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
from typing import Any

from skywalker import silk
from skywalker.errors import SkywalkerError


def tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


async def watch(node: silk.Node) -> None:
    async for event in node.events():
        tell({"event": type(event).__name__, "id": event.node.id})


async def do(nodes: list[silk.Node], order: dict[str, Any]) -> Any:
    """Do one thing; all but the members are those of the first node."""
    node = nodes[0]
    match order:
        case {"do": "join", "at": at, "within": within}:
            await asyncio.gather(*(each.join(at, within) for each in nodes))
        case {"do": "members"}:
            return {each.id: sorted(each.members) for each in nodes}
        case {"do": "request", "of": id, "data": data}:
            return await node.request(id, "echo", data)
        case {"do": "leave"}:
            await node.leave()
    return None


async def main(count: int, host: str, keepalive: float) -> None:
    """Have nodes that listen at a host, and obey."""
    # Each has a socket for each of the others.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    ran: dict[str, int] = {}

    def echo(data: Any) -> Any:
        ran[str(data)] = ran.get(str(data), 0) + 1
        return {"pid": os.getpid(), "data": data, "times": ran[str(data)]}

    async with contextlib.AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(silk.Node(f"tcp://{host}:0", f"tcp://{host}:0", keepalive=keepalive))
            for _ in range(count)
        ]
        for node in nodes:
            node.handle("echo", echo, attempts=3, period=2 * keepalive)
        watching = asyncio.create_task(watch(nodes[0]))
        tell({"id": nodes[0].id, "router": nodes[0].info.router})
        while line := await lines.readline():
            try:
                answer = {"answer": await do(nodes, json.loads(line))}
            except SkywalkerError as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            tell(answer)
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
