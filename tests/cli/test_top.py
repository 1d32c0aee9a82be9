"""`skywalker top`: its screens under Textual's pilot, against admin servers that say what they are told to."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from skywalker.address import Address
from skywalker.cli.admin_api import AdminAddress, AdminApi
from skywalker.cli.top.console import NodeScreen, NodesScreen, Top
from skywalker.embedding import embedded
from tests.cli.running import run
from tests.cli.terminal import on_terminal
from tests.cli.told_admin import ToldAdmin, connection, documents, told_admin, topic
from tests.helpers import time_factor

EVERY_S = 0.2


class Seen:
    """The application as a person sees it."""

    def __init__(self, app: Top, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        await self._pilot.press(*keys)

    @property
    def titles(self) -> list[str]:
        """The heads of the columns."""
        return [str(column.label) for column in self.app.screen.query_one(DataTable).columns.values()]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table."""
        grid = self.app.screen.query_one(DataTable)
        return [[str(cell) for cell in grid.get_row_at(at)] for at in range(grid.row_count)]

    @property
    def picture(self) -> str:
        """All that is on the screen."""
        return re.sub("<[^>]+>", "", self.app.export_screenshot()).replace("&#160;", " ")

    def column(self, title: str) -> list[str]:
        """The cells of one column."""
        at = next(at for at, each in enumerate(self.titles) if each.rstrip(" ▲▼") == title)
        return [row[at] for row in self.rows]

    def line(self, name: str) -> str:
        """One of the lines around the table; empty if it is not shown."""
        widget = self.app.screen.query_one(f"#{name}", Static)
        return str(widget.render()) if widget.display else ""

    async def until(self, check: Callable[[], object], within: float = 10.0) -> None:
        """Return once something is so."""
        deadline = asyncio.get_running_loop().time() + within * time_factor()
        while True:
            try:
                if check():
                    return
                problem = ""
            except (LookupError, StopIteration, AttributeError) as error:
                problem = repr(error)
            assert asyncio.get_running_loop().time() < deadline, (self.titles, self.rows, self.line("problem"), problem)
            await self._pilot.pause(0.02)


def watched(
    test: Callable[[Seen], Awaitable[None]],
    *admins: ToldAdmin | Address,
    many: bool = False,
    size: tuple[int, int] = (120, 30),
) -> None:
    """Run the application until a test is over."""

    async def run_it() -> None:
        addresses = [each if isinstance(each, Address) else Address(each.host, each.port) for each in admins]
        app = Top([AdminApi(AdminAddress(each)) for each in addresses], many=many, every=EVERY_S)
        async with app.run_test(size=size) as pilot:
            await test(Seen(app, pilot))

    asyncio.run(run_it())


def test_the_head_says_who_the_node_is_and_how_it_does() -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: seen.rows)
        head = seen.line("head")
        for part in ("red", "127.0.0.1:", "0.1.0", "up 3h 12m", "● serving", "2 of 2 workers", "calls/s", "▇", "µs"):
            assert part in head
        assert "waiting 3 send, 120 recv, 40 take, 8 subscription" in head
        assert "hand-off p50 12 µs" in head

    with told_admin() as admin:
        watched(test, admin)


def test_keys_choose_the_table() -> None:
    async def test(seen: Seen) -> None:
        for key, title, first in (
            ("2", "topic", "orders.2"),
            ("3", "peer", "10.0.0.7:41002"),
            ("4", "in words", "the rest of a frame did not come within 10 s"),
            ("5", "what", "send met"),
            ("6", "process", "agent"),
            ("1", "worker", "0"),
        ):
            await seen.press(key)
            await seen.until(lambda title=title, first=first: seen.column(title)[0] == first)
        for title in ("topic", "peer"):
            await seen.press("tab")
            await seen.until(lambda title=title: seen.column(title))
        await seen.press("shift+tab")
        await seen.until(lambda: seen.column("topic"))

    with told_admin() as admin:
        watched(test, admin)


def test_the_table_is_sorted_by_any_column_in_both_directions() -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: seen.column("worker") == ["0", "1", "2"])
        await seen.press("s", "s")
        assert seen.titles[2] == "cpu ▼"
        assert seen.column("worker") == ["0", "1", "2"], "the busiest first"
        await seen.press("r")
        assert seen.titles[2] == "cpu ▲"
        assert seen.column("worker") == ["2", "1", "0"]
        await seen.press("S", "S", "S")
        assert seen.titles[-1] == "unsent ▼"

    with told_admin() as admin:
        admin.says |= documents(admin.address, workers=3)
        watched(test, admin)


def test_a_filter_leaves_rows_with_a_text_and_looks_among_more_of_them() -> None:
    async def test(seen: Seen) -> None:
        await seen.press("2")
        await seen.until(lambda: len(seen.rows) == 30)
        await seen.press("/", "S", ".", "2")
        await seen.until(lambda: len(seen.rows) == 11)
        assert seen.line("note") == "with 'S.2'; 30"
        await seen.press("enter")
        assert not seen.app.screen.query_one(Input).display
        await seen.press("r")  # a key again, no letter
        assert seen.column("topic")[0] == "orders.2"
        await seen.until(lambda: ("/api/topics", {"order": "waiting", "limit": "1000"}) in admin.asked)
        await seen.press("escape")
        await seen.until(lambda: len(seen.rows) == 30)
        assert seen.line("note") == "30"
        await seen.press("/", "x", "y", "q")
        await seen.until(lambda: not seen.rows)
        await seen.press("escape")  # while it is typed
        await seen.until(lambda: len(seen.rows) == 30)

    with told_admin() as admin:
        admin.says |= documents(admin.address, topics=30)
        watched(test, admin)


def test_the_cursor_stays_with_its_row_and_at_the_top_whichever_row_that_is() -> None:
    async def test(seen: Seen) -> None:
        await seen.press("2")
        await seen.until(lambda: len(seen.rows) == 10)
        grid = seen.app.screen.query_one(DataTable)
        await seen.press("down", "down", "down")
        assert seen.rows[grid.cursor_row][0] == "orders.6"
        topics: dict[str, Any] = documents(admin.address, topics=10)["/api/topics"]
        topics["topics"] = [topic(number) | {"since": 100.0 - number} for number in range(10)]
        admin.says["/api/topics"] = topics
        await seen.until(lambda: seen.rows[0][0] == "orders.0")
        assert seen.rows[grid.cursor_row][0] == "orders.6"
        topics["topics"] = topics["topics"][:2]
        await seen.until(lambda: len(seen.rows) == 2)
        assert grid.cursor_row == 1
        await seen.press("up", "s")
        assert grid.cursor_row == 0
        await seen.press("r")
        assert grid.cursor_row == 0

    with told_admin() as admin:
        admin.says |= documents(admin.address, topics=10)
        watched(test, admin)


def test_paused_it_asks_nothing_until_it_goes_on() -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: seen.rows)
        await seen.press("p")
        assert "paused" in seen.line("note")
        await asyncio.sleep(3 * EVERY_S)
        admin.asked.clear()
        await asyncio.sleep(5 * EVERY_S)
        assert not admin.asked
        await seen.press("s")
        assert "▲" in seen.titles[1], "what is there can still be sorted"
        await seen.press("p")
        await seen.until(lambda: admin.asked)
        assert seen.line("note") == ""

    with told_admin() as admin:
        watched(test, admin)


def test_a_node_that_goes_away_is_told_and_one_that_comes_back_is_shown_again() -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: "nothing answers at" in seen.line("problem"))
        with told_admin(port=address.port) as admin:
            await seen.until(lambda: seen.rows and not seen.line("problem"))
            admin.says["/api/state"] = b"half a docu"
            await seen.until(lambda: "is not the admin server" in seen.line("problem"))
            del admin.says["/api/history"]
        await seen.until(lambda: "connection refused" in seen.line("problem"))
        assert "below is what it said then" in seen.line("problem")
        assert len(seen.rows) == 2, "what it said last stays"
        assert "red" in seen.line("head")
        with told_admin(port=address.port) as admin:
            admin.says |= documents(admin.address, "blue", workers=3)
            await seen.until(lambda: len(seen.rows) == 3)
            assert not seen.line("problem")
            assert "blue" in seen.line("head")

    with told_admin() as admin:
        address = Address(admin.host, admin.port)
    watched(test, address)


def test_a_document_of_another_shape_is_told_and_ends_nothing() -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: seen.rows)
        shapes: tuple[object, ...] = (None, [], {}, "text", 7, {"a": [1]})
        for key, value in zip(("node", "workers", "latency") * 2, shapes, strict=True):
            path = "/api/state"
            whole = documents(admin.address)[path]
            admin.says[path] = whole | {key: value}
            await seen.until(lambda: "another version" in seen.line("problem") or not seen.rows)
            admin.says[path] = whole
            await seen.until(lambda: not seen.line("problem") and seen.rows)
        admin.says["/api/history"] = {}
        await seen.until(lambda: "another version" in seen.line("problem"))

    with told_admin() as admin:
        watched(test, admin)


def test_what_clients_are_called_is_shown_as_it_is_and_without_escapes() -> None:
    async def test(seen: Seen) -> None:
        await seen.press("3")
        await seen.until(lambda: seen.column("name") == ["[bold]x[/]?[31m"])

    with told_admin() as admin:
        connections: dict[str, Any] = admin.says["/api/connections"]  # type: ignore[assignment]
        connections["connections"] = [connection(1, name="[bold]x[/]\x1b[31m")]
        watched(test, admin)


@pytest.mark.parametrize("size", [(80, 24), (140, 45), (20, 5), (1, 1)])
def test_it_has_room_on_any_terminal(size: tuple[int, int]) -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: seen.rows)
        if size[0] >= 80:
            texts = ("serving", "calls/s", "out 3.72 MiB/s", "6 processes", "topics", "Filter", "Pause", "Quit")
            await seen.until(lambda: all(text in seen.picture for text in texts))

    with told_admin() as admin:
        watched(test, admin, size=size)


def test_several_nodes_have_a_line_each_and_one_can_be_opened_and_left() -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: "serving" in seen.column("state") and len(seen.rows) == 3)
        states = dict(zip(seen.column("node"), seen.column("state"), strict=True))
        assert states == {"red": "serving", "blue": "draining", "-": "no answer"}
        assert "2 of 3 nodes answer" in seen.line("head")
        assert "calls/s 102,480" in seen.line("head")
        assert "nothing answers at 127.0.0.1:1" in seen.line("problem")
        assert "2 different rings" in seen.line("note")
        assert isinstance(seen.app.screen, NodesScreen)
        await seen.press("s")
        await seen.until(lambda: seen.column("node") == ["blue", "red", "-"])
        await seen.press("enter")
        await seen.until(lambda: "● draining" in seen.line("head"))
        assert isinstance(seen.app.screen, NodeScreen)
        red.asked.clear()
        await seen.until(lambda: blue.asked.count(("/api/history", {})) > 3)
        assert len(red.asked) <= 2, "only what is seen is asked for, but for what was on its way"
        await seen.press("escape")
        await seen.until(lambda: isinstance(seen.app.screen, NodesScreen))
        await seen.until(lambda: red.asked)
        await seen.press("down", "enter")
        await seen.until(lambda: "red" in seen.line("head"))

    with told_admin() as red, told_admin() as blue:
        state: dict[str, Any] = documents(blue.address, "blue")["/api/state"]
        state["node"]["draining"] = True
        state["ring"]["version"] = "another"
        blue.says["/api/state"] = state
        watched(test, red, blue, Address("127.0.0.1", 1), many=True)


# The command.


def test_without_a_terminal_it_points_to_report() -> None:
    ran = run("top")
    assert ran.returncode == 2
    assert "skywalker report" in ran.stderr.decode()


def test_on_a_real_terminal_it_draws_and_q_leaves_it_as_it_was() -> None:
    with told_admin() as admin, on_terminal("top", admin.address, columns=100) as (screen, process):
        screen.shows(b"83.9", within=20.0)
        screen.press(b"2")
        screen.shows(b"orders.2")
        screen.press(b"q")
        shown = screen.read_to_the_end()
        assert process.wait(20 * time_factor()) == 0
        assert b"\x1b[?1049h" in shown, "it uses the other screen of the terminal"
        assert b"\x1b[?1049l" in shown
        assert b"Traceback" not in shown


def test_a_cluster_of_which_nobody_answers_is_status_4() -> None:
    with on_terminal("top", "--cluster", "127.0.0.1:1", columns=200) as (screen, process):
        assert b"nothing answers at 127.0.0.1:1" in screen.read_to_the_end()
        assert process.wait(20 * time_factor()) == 4


def test_a_real_node_is_shown_with_all_its_tables_and_found_again_after_a_restart() -> None:
    async def test(seen: Seen) -> None:
        await seen.until(lambda: seen.column("worker") == ["0", "1"], within=10.0)
        assert "● serving  2 of 2 workers  ring of 1" in seen.line("head")
        await seen.press("2")
        await seen.until(lambda: "lonely" in seen.column("topic"), within=10.0)
        await seen.press("3")
        await seen.until(lambda: seen.column("peer"), within=10.0)
        await seen.press("6")
        await seen.until(lambda: "worker-1" in seen.column("process"))
        pid = node.pid
        assert str(pid) in seen.column("pid")
        client.close()
        node.stop()
        await seen.until(lambda: "connection refused" in seen.line("problem"))
        with embedded(workers=1, admin=True, admin_port=address.port) as other:
            await seen.until(lambda: str(other.pid) in seen.column("pid"), within=10.0)
            assert not seen.line("problem")

    with embedded(workers=2, admin=True) as node, node.connect() as client:
        client.begin("recv", "lonely", timeout=60)
        address = Address.parse(node.admin_address)
        watched(test, address)
