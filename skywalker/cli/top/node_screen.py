"""One node: rates and times over the last minutes, and its tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding
from textual.widgets import Static

from skywalker.cli import terminal
from skywalker.cli.admin_api import FAILURES, AdminApi, reading
from skywalker.cli.node import facts
from skywalker.cli.node.table import Table
from skywalker.cli.node.views import HISTORY, STATE, VIEWS, Document, View
from skywalker.cli.node.words import number, part, size, span, spark, text
from skywalker.cli.top.watch import STYLES, Watch

LIMIT: Final = 200
FILTERED_LIMIT: Final = 1000
"""Rows that the node is asked for; more while a filter looks for one among them."""

LABEL: Final = 13
FIGURE: Final = 9

CHARTS: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("calls/s", "calls", number),
    ("hand-off p99", "hand_off_p99", span),
    ("met/s", "met", number),
    ("wait p99", "wait_p99", span),
    ("waiting", "waiting", number),
    ("connections", "connections", number),
)
"""Label, name in the history, and how it is written; two in a line."""


class NodeScreen(Watch):
    """Asks one node for its state, its history, and what the table that is seen is made of."""

    BINDINGS: ClassVar = [
        *(Binding(str(key), f"view({key - 1})", view.name, show=False) for key, view in enumerate(VIEWS, 1)),
        Binding("tab", "next_view(1)", "Next view", priority=True),
        Binding("shift+tab", "next_view(-1)", "View before", show=False, priority=True),
        Binding("escape", "back", "Nodes"),
    ]

    def __init__(self, api: AdminApi) -> None:
        super().__init__()
        self._api = api
        self._view = VIEWS[0]
        self._orders = {view.name: (view.by, view.descending) for view in VIEWS}
        self._state: Document = {}
        self._history: Document = {}
        self._seen_at = 0.0  # when the node answered last, on the monotonic clock
        self.problem = ""

    # Looking.

    async def look(self) -> None:
        """Ask the node; while it does not answer, what it said last stays."""
        view = self._view
        try:
            state, history, document = await self.asked(self._ask, view, view.order(self.by), bool(self.wanted))
            if view is not self._view:
                return  # another was chosen meanwhile, and is asked for next
            with reading(self._api.address):
                table = view.table(document)
                self._headlines(state, history)  # drawn later, but what it cannot be made of is told of here
        except FAILURES as error:
            self.problem = str(error)
            return
        self.problem = ""
        self._state, self._history, self.table = state, history, table
        self._seen_at = time.monotonic()

    def _ask(self, view: View, order: str, filtered: bool) -> tuple[Document, Document, Document]:
        state = self._api.get(STATE)
        history = self._api.get(HISTORY)
        if view.path == STATE:
            return state, history, state
        limit = FILTERED_LIMIT if filtered else LIMIT
        return state, history, self._api.get(view.path, order=order, limit=limit)

    # Drawing.

    def draw_head(self) -> None:
        """Draw how the node is, or why that is not known."""
        problem = terminal.shown(self.problem)
        if problem and self._state:
            problem += f". It answered {span(time.monotonic() - self._seen_at)} ago: below is what it said then"
        self.say("#problem", problem)
        asking = Text(f"asking {self._api.address}")
        head = self._headlines(self._state, self._history) if self._state else asking
        self.query_one("#head", Static).update(head)
        tabs = Text()
        for key, view in enumerate(VIEWS, 1):
            tabs.append(f" {key} {view.name} ", "reverse" if view is self._view else "")
        self.say("#tabs", tabs)

    def _headlines(self, state: Document, history: Document) -> Text:
        node, rates = state["node"], state["rates"]
        condition = facts.condition(state)
        head = Text()
        head.append(text(node["name"]), "bold")
        head.append(f"  {text(node['address'])}  {text(node['version'])}  up {facts.uptime(state)}  ")
        head.append(f"● {condition}", STYLES[condition])
        head.append(f"  {facts.workers(state)} workers  ring of {number(state['ring']['nodes'])}\n")
        width = max(20, (self.size.width or 80) - 2)
        half = (width - 3) // 2
        for at in range(0, len(CHARTS), 2):
            left, right = (self._chart(history, *chart, half) for chart in CHARTS[at : at + 2])
            head.append_text(left).append("   ").append_text(right).append("\n")
        waits = state["latency"]["hand_off"]
        head.append("in ", "dim").append(f"{size(rates['bytes_received'])}/s")
        head.append("  out ", "dim").append(f"{size(rates['bytes_sent'])}/s")
        head.append("  waiting ", "dim").append(facts.waiting(state))
        head.append("  cpu ", "dim").append(part(_last(history, "cpu")))
        head.append("  hand-off p50 ", "dim").append(span(waits["p50"]))
        return head

    def _chart(self, history: Document, label: str, name: str, shown: Callable[[Any], str], width: int) -> Text:
        line = Text(f"{label:<{LABEL}}", "dim")
        line.append(f"{shown(_last(history, name)):>{FIGURE}}", "bold not dim")
        line.append(f" {spark(history[name], width - LABEL - FIGURE - 1)}", "cyan not dim")
        return line

    def on_resize(self) -> None:
        """Have the lines as long as there is room."""
        if self.is_mounted:
            self.draw()

    # Keys.

    def action_view(self, number: int) -> None:
        """Show another table."""
        self._orders[self._view.name] = (self.by, self.descending)
        self._view = VIEWS[number]
        self.by, self.descending = self._orders[self._view.name]
        self.table = Table(self._view.columns, [])
        self.draw()
        self.look_now()

    def action_next_view(self, step: int) -> None:
        """Show the next table, or the one before."""
        self.action_view((VIEWS.index(self._view) + step) % len(VIEWS))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the way back only where there is one."""
        return len(self.app.screen_stack) > 2 if action == "back" else True

    def action_back(self) -> None:
        """Return to the list of nodes."""
        self.app.pop_screen()


def _last(history: Document, name: str) -> float | None:
    return history[name][-1] if history[name] else None
