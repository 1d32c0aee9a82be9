"""All nodes that are watched, a line for each; Enter opens one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.widgets import DataTable, Static

from skywalker.cli import terminal
from skywalker.cli.admin_api import FAILURES, AdminApi, reading
from skywalker.cli.node import facts
from skywalker.cli.node.table import Column, Row, Table
from skywalker.cli.node.views import STATE
from skywalker.cli.node.words import number, part, size, span
from skywalker.cli.top.node_screen import NodeScreen
from skywalker.cli.top.watch import Watch

COLUMNS: Final = (
    Column("admin server"),
    Column("node"),
    Column("state"),
    Column("workers"),
    Column("calls/s", number),
    Column("waiting", number),
    Column("conns", number),
    Column("hand-off p99", span),
    Column("wait p99", span),
    Column("cpu", part),
    Column("in/s", size),
    Column("out/s", size),
    Column("errors", number),
    Column("up", span),
    Column("version"),
    Column("ring"),
)
CALLS: Final = 4


class NodesScreen(Watch):
    """Asks all nodes at once; one that does not answer says so in its line."""

    opens: ClassVar = True

    def __init__(self, apis: Sequence[AdminApi]) -> None:
        super().__init__()
        self._apis = {str(api.address): api for api in apis}
        self._problem = ""  # of the first of them that has one

    async def look(self) -> None:
        """Ask all of them."""
        answers = await asyncio.gather(*(self.asked(_row, api) for api in self._apis.values()))
        rows = [row for row, _ in answers]
        rings = {row[-1] for row in rows if row[-1] is not None}
        note = "" if len(rings) < 2 else f"the nodes use {len(rings)} different rings"
        self.table = Table(COLUMNS, rows, note=note)
        self._problem = next((problem for _, problem in answers if problem), "")

    def draw_head(self) -> None:
        """Draw what all of them do together."""
        head = Text()
        head.append("skywalker top", "bold")
        if self.table is not None:
            rows = self.table.rows
            there = [row for row in rows if row[CALLS] is not None]
            head.append(
                f"  {len(there)} of {len(rows)} nodes answer", "green" if len(there) == len(rows) else "bold red"
            )
            sums = [sum(row[CALLS + at] for row in there) for at in range(3)]
            for label, total in zip(("calls/s", "waiting", "connections"), sums, strict=True):
                head.append(f"  {label} ", "dim").append(number(total), "bold")
        self.query_one("#head", Static).update(head)
        self.say("#problem", terminal.shown(self._problem))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open a node that is clicked on, or on which Enter is pressed."""
        event.stop()
        if self.chosen is not None:
            self.app.push_screen(NodeScreen(self._apis[self.chosen[0]]))


def _row(api: AdminApi) -> tuple[Row, str]:
    """Return the row of a node, and what is wrong with it in words."""
    address = str(api.address)
    try:
        state = api.get(STATE)
        with reading(api.address):
            row = (
                address,
                state["node"]["name"],
                facts.condition(state),
                facts.workers(state),
                state["rates"]["calls"],
                sum(state["waiting"].values()),
                state["connections"],
                state["latency"]["hand_off"]["p99"],
                state["latency"]["wait"]["p99"],
                sum(each["cpu"] or 0.0 for each in state["processes"]),
                state["rates"]["bytes_received"],
                state["rates"]["bytes_sent"],
                sum(state["errors"].values()),
                max(0.0, state["time"] - state["node"]["started"]),
                state["node"]["version"],
                state["ring"]["version"],
            )
            Table(COLUMNS, [row])
            return row, ""
    except FAILURES as error:
        return (address, None, "no answer", *(None for _ in COLUMNS[3:])), str(error)
