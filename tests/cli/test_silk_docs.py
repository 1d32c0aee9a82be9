"""What docs/silk.md shows is so: its programs run, its messages are read, its numbers are those of the code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.limits import DEFAULT_SILK_PORT, MIB
from skywalker.silk import answers, blocking, claims, info, pace, service, sockets, stream
from skywalker.wire import silk as wire
from tests.cli.running import environment
from tests.helpers import time_factor

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "silk.md").read_text()
PROSE = " ".join(PAGE.split())


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


PYTHON = blocks("python")
JSON = [json.loads(block) for block in blocks("json")]


def python_block(beginning: str) -> str:
    (block,) = [block for block in PYTHON if block.startswith(beginning)]
    return block


def run(program: str) -> str:
    """Run a program to its end; return what it prints."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment(),
        stdout=subprocess.PIPE,
        timeout=30 * time_factor(),
        check=True,
    )
    return ran.stdout.decode()


def test_the_first_two_programs_meet() -> None:
    (port,) = free_ports(1)
    resizer, asker = (
        python_block(f"# {name}.py").replace(str(DEFAULT_SILK_PORT), str(port)) for name in ("resizer", "asker")
    )
    process = subprocess.Popen([sys.executable, "-c", resizer], env=environment())
    try:
        assert run(asker) == "{'done': 'a.png'}\n"
    finally:
        process.kill()
        process.wait()


def test_the_program_without_asyncio_runs() -> None:
    first, second = run(python_block("from skywalker import silk\n\nwith silk.blocking")).splitlines()
    assert first == "6"
    assert second.endswith(" 9 None")


@pytest.mark.parametrize("told", JSON, ids=lambda told: told.get("type", "node"))
def test_what_is_shown_of_the_wire_is_read_and_written_so(told: dict[str, Any]) -> None:
    if "type" not in told:
        node = info.NodeInfo.parse(told)
        assert node is not None
        assert node.as_map() == told
        return
    message = wire.Message.decode(json.dumps(told).encode())
    assert json.loads(message.encode()) == told
    match message.data:
        case {"cluster": dict(cluster), "me": me}:
            assert all(info.NodeInfo.parse(each) for each in [me, *cluster.values()])
        case {"endpoints": _}:
            assert info.NodeInfo.parse(message.data)


def test_every_type_of_message_is_shown() -> None:
    shown = {told["type"] for told in JSON if "type" in told}
    assert shown >= {wire.JOIN, wire.CONNECT, wire.LEAVE, wire.KEEPALIVE, wire.FAIL, wire.REPLY}


def test_the_numbers_are_those_of_the_code() -> None:
    limits = dict(re.findall(r"^\| ([a-z, ]+?) \| ([^|]+?) \|$", PAGE.partition("## Limits")[2], re.MULTILINE))
    assert limits["members of a cluster"] == f"{claims.MAX_MEMBERS:,}"
    assert limits["types of one node"] == f"{info.MAX_TYPES:,}"
    assert limits["id, name, type"] == f"{wire.MAX_NAME} characters"
    assert limits["attempts"] == f"1 to {info.MAX_ATTEMPTS}"
    assert limits["period, keepalive"] == f"{info.MIN_PERIOD_S} to {info.MAX_PERIOD_S:,.0f} seconds"
    assert limits["handlers at a time"] == f"{service.MAX_RUNNING:,}, of the blocking node {blocking.THREADS}"
    assert limits["events unread"] == f"{stream.MAX_UNREAD:,}"
    assert (wire.MAX_MESSAGE, sockets.MAX_FRAME) == (MIB, 4 * MIB)
    assert (answers.KEEP_S, answers.MAX_BYTES) == (300, 64 * MIB)
    assert "kept for 5 minutes, and up to 64 MiB in all" in PROSE
    assert (pace.SILENT, pace.PROBES, pace.FORGET_S, pace.VISIT_CAP_S) == (3, 4, 24 * 3600, 30)
    assert "silent for **three** of its own periods" in PROSE
    assert "asked directly, four times within **one** more period" in PROSE
