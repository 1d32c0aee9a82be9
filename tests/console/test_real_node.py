"""The console of a real node: what it shows of known traffic, and what becomes of it when parts of the node end."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import skywalker
from bench.console_picture import console_url
from skywalker.embedding import Node
from skywalker.errors import SkywalkerError
from tests.console.browser import console
from tests.console.test_console import rows
from tests.helpers import eventually


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Node, str]]:
    """A node with a console, and the console's URL."""
    with skywalker.embedded(admin=True, admin_port=0, name="red", workers=2, watchdog_s=60) as node:
        url = console_url(node)

        def answers() -> bool:
            with suppress(OSError), urllib.request.urlopen(f"{url}ready", timeout=5) as answer:
                return bool(answer.status == 200)
            return False

        eventually(answers, within=15)
        yield node, url


def state(url: str) -> Any:
    with urllib.request.urlopen(f"{url}api/state", timeout=10) as answer:
        return json.load(answer)


@contextmanager
def background(*tasks: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run functions in threads until the block ends, which they are told by an event."""
    over = threading.Event()
    threads = [threading.Thread(target=task, args=(over,)) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def waits_on(node: Node, topic: str, name: str) -> Callable[[threading.Event], None]:
    """A client that waits on a topic until it is told that it is over."""

    def wait(over: threading.Event) -> None:
        with node.connect(name=name) as client:
            while not over.is_set():
                with suppress(SkywalkerError):
                    client.recv(topic, timeout=3)

    return wait


def test_traffic_that_is_known_is_shown_as_it_was(browser: Browser, served: tuple[Node, str]) -> None:
    """The first on this node, of which it knows nothing else."""
    node, url = served
    with node.connect() as sender, node.connect() as receiver:
        for number in range(20):
            taking = threading.Thread(target=receiver.recv, args=("done",), kwargs={"timeout": 10})
            taking.start()
            assert sender.send("done", number, timeout=10)
            taking.join()
        waiting = [waits_on(node, "orders", f"printer-{number}") for number in range(3)]
        with background(*waiting), console(browser, url) as shown:
            shown.sees("#waiting", "3")
            shown.sees("#connections", "5")
            shown.sees("#headline", "All well")
            eventually(lambda: [row[0] for row in rows(shown, "topics")] == ["orders"], within=10)
            topic = rows(shown, "topics")[0]
            assert topic[2:6] == ["0", "3", "0", "0"]
            assert re.fullmatch(r"[\d.]+ (s|ms|µs)", topic[1])
            names = {row[0].partition(" ")[0] for row in rows(shown, "clients")}
            assert {"printer-0", "printer-1", "printer-2"} <= names
            for method in ("send", "recv"):
                cells = next(row for row in rows(shown, "outcomes") if row[0] == method)
                assert int(cells[1]) + int(cells[2]) == 20, cells
            assert [row[0] for row in rows(shown, "workers")] == ["worker-0", "worker-1", "supervisor", "agent"]
            shown.sees("#members", re.compile("red"))


def test_it_comes_back_when_the_agent_was_killed(browser: Browser, served: tuple[Node, str]) -> None:
    """The last on this node, which tells of it for minutes."""
    _, url = served
    with console(browser, url) as shown:
        shown.excused = True
        shown.sees("#headline", "All well")
        agent = next(each["pid"] for each in state(url)["processes"] if each["name"] == "agent")
        os.kill(agent, signal.SIGKILL)
        shown.sees("#headline", "1 restart in the last 5 minutes")
        shown.sees("#troubles", re.compile("agent 1"))
        expect(shown.page.locator("#workers")).not_to_contain_text(str(agent))
