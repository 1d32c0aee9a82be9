"""The console: all nodes that are watched, a line for each, and one node with its charts and tables."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from skywalker.cli import terminal
from skywalker.cli.admin_api import FAILURES, AdminApi, reading
from skywalker.cli.node import (
    HISTORY,
    STATE,
    VIEWS,
    Column,
    Document,
    Row,
    Table,
    View,
    condition,
    number,
    part,
    size,
    span,
    spark,
    text,
    uptime,
    waiting,
    workers,
)

AT_ONCE: Final = 32
"""Nodes that are asked at a time."""

MOST_ROWS: Final = 200
"""Rows that are drawn; who looks for one further down sorts or filters."""


STYLES: Final = {
    "starting": "yellow",
    "serving": "green",
    "draining": "yellow",
    "idle": "yellow",
    "stopping": "yellow",
    "not ready": "yellow",
    "no answer": "bold red",
}
"""Of words in any column that is a `state`."""


class Watcher(App[None]):
    """An application of such screens: how often they look, and the threads in which they ask."""

    def __init__(self, every: float) -> None:
        """Take the seconds from one look to the next."""
        super().__init__()
        self.every = every
        self.threads = ThreadPoolExecutor(AT_ONCE, "ask")

    def on_unmount(self) -> None:
        """Wait for nobody who has not answered yet."""
        self.threads.shutdown(wait=False, cancel_futures=True)


class Grid(DataTable[Text]):
    """The table, in which Enter opens a row where its screen has something to open."""

    BINDINGS: ClassVar = [Binding("enter", "select_cursor", "Open", key_display="Enter")]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what there is."""
        return self.screen.opens if action == "select_cursor" and isinstance(self.screen, Watch) else True


class Watch(Screen[None]):
    """A head, a line of what can be chosen, and a table that is sorted by a column and filtered by a text."""

    BINDINGS: ClassVar = [
        Binding("s", "sort(1)", "Sort"),
        Binding("S", "sort(-1)", "Sort back", show=False),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("p", "pause", "Pause"),
    ]

    opens: ClassVar = False
    """Whether rows can be opened."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self.wanted = ""  # the text that rows must have
        self.by = 0  # the column that the table is sorted by
        self.descending = False
        self.table: Table | None = None  # None until it was read
        self._drawn_rows: list[Row] = []
        self._again = asyncio.Event()

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Static(id="problem", markup=False)
        yield Static(id="head")
        yield Static(id="tabs")
        yield Static(id="note", markup=False)
        yield Grid(cursor_type="row")
        yield Input(id="filter", placeholder="text that a row must have; Enter keeps it, Escape lifts it", compact=True)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self.grid.focus()
        self.draw()
        self.run_worker(self._watch(), exclusive=True)

    @property
    def watcher(self) -> Watcher:
        """The application."""
        assert isinstance(self.app, Watcher)
        return self.app

    @property
    def grid(self) -> Grid:
        """The widget of the table."""
        return self.query_one(Grid)

    # What a screen is.

    async def look(self) -> None:
        """Read what is to be shown, and set `table`. What fails is shown, and raises nothing."""
        raise NotImplementedError

    def draw_head(self) -> None:
        """Draw what is above the table."""
        raise NotImplementedError

    # Looking.

    async def _watch(self) -> None:
        while True:
            if self.is_current and not self.paused:
                await self.look()
                # Where it was left meanwhile, it has no widgets any more.
                if self.is_current and self.watcher.is_running:
                    self.draw()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.watcher.every):
                    await self._again.wait()
            self._again.clear()

    def look_now(self) -> None:
        """Look before the second is over, since something else is wanted now."""
        self._again.set()

    async def asked(self, question: Any, *arguments: Any) -> Any:
        """Return what a function returns that may take its time, from a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.watcher.threads, question, *arguments)

    def on_screen_resume(self) -> None:
        """Be up to date when it is seen again."""
        self.look_now()

    # Drawing.

    def draw(self) -> None:
        """Draw everything anew."""
        self.draw_head()
        said = [f"with {self.wanted!r}" if self.wanted else "", self.table.note if self.table else ""]
        self.say("#note", "; ".join(["paused"] * self.paused + [each for each in said if each]))
        if self.table is not None:
            self._draw_table(self.table)

    def _draw_table(self, table: Table) -> None:
        grid = self.grid
        rows = table.arranged(self.by, self.descending, self.wanted)[:MOST_ROWS]
        chosen = self.chosen
        at, scrolled = grid.cursor_row, grid.scroll_offset
        grid.clear(columns=True)
        for at_column, column in enumerate(table.columns):
            mark = (" ▼" if self.descending else " ▲") if at_column == self.by else ""
            grid.add_column(Text(column.title + mark, justify="right" if column.right else "left"))
        for row in rows:
            grid.add_row(*map(_cell, table.cells(row), table.columns))
        self._drawn_rows = rows
        if rows:
            # The cursor stays with its row, wherever that is now; at the top it has not been moved to any.
            key = chosen[: table.key] if chosen and at else None
            same = (number for number, row in enumerate(rows) if row[: table.key] == key)
            grid.move_cursor(row=next(same, min(at, len(rows) - 1)), animate=False, scroll=False)
        grid.scroll_to(scrolled.x, scrolled.y, animate=False)

    @property
    def chosen(self) -> Row | None:
        """The row that the cursor is on; None if there is none."""
        at = self.grid.cursor_row
        return self._drawn_rows[at] if 0 <= at < len(self._drawn_rows) else None

    def say(self, line: str, text: str | Text) -> None:
        """Show a text in one of the lines around the table, "#problem", "#tabs" or "#note"; no line if it is empty."""
        widget = self.query_one(line, Static)
        widget.update(text)
        widget.set_class(bool(text), "-shown")

    # Keys.

    def action_sort(self, step: int) -> None:
        """Sort by the next column, or the one before."""
        if self.table is not None:
            self._sort((self.by + step) % len(self.table.columns))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by a column that is clicked on; once more reverses it."""
        if event.column_index == self.by:
            self.action_reverse()
        else:
            self._sort(event.column_index)

    def _sort(self, by: int) -> None:
        assert self.table is not None
        self.by = by
        self.descending = self.table.columns[by].right  # of numbers one wants the most, of names the first
        self._draw_from_the_top()
        self.look_now()

    def action_reverse(self) -> None:
        """Turn the order around."""
        self.descending = not self.descending
        self._draw_from_the_top()

    def _draw_from_the_top(self) -> None:
        self.grid.move_cursor(row=0, animate=False)
        self.draw()

    def action_pause(self) -> None:
        """Stop looking, or go on."""
        self.paused = not self.paused
        self.draw()
        self.look_now()

    def action_filter(self) -> None:
        """Ask for the text that rows must have."""
        field = self.query_one("#filter", Input)
        field.add_class("-shown")
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        self.wanted = event.value
        self.draw()

    def on_input_submitted(self) -> None:
        """Keep the filter, and go back to the table."""
        self._leave_filter()
        self.look_now()

    def on_key(self, event: events.Key) -> None:
        """Lift the filter by Escape, while it is typed or later."""
        field = self.query_one("#filter", Input)
        if event.key == "escape" and (field.has_focus or self.wanted):
            event.stop()
            event.prevent_default()
            field.value = ""
            self._leave_filter()

    def _leave_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("-shown")
        self.grid.focus()


def _cell(text: str, column: Column) -> Text:
    style = STYLES.get(text, "") if column.title == "state" else ""
    return Text(text, style, justify="right" if column.right else "left")


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
        how = condition(state)
        head = Text()
        head.append(text(node["name"]), "bold")
        head.append(f"  {text(node['address'])}  {text(node['version'])}  up {uptime(state)}  ")
        head.append(f"● {how}", STYLES[how])
        head.append(f"  {workers(state)} workers  ring of {number(state['ring']['nodes'])}\n")
        width = max(20, (self.size.width or 80) - 2)
        half = (width - 3) // 2
        for at in range(0, len(CHARTS), 2):
            left, right = (self._chart(history, *chart, half) for chart in CHARTS[at : at + 2])
            head.append_text(left).append("   ").append_text(right).append("\n")
        waits = state["latency"]["hand_off"]
        head.append("in ", "dim").append(f"{size(rates['bytes_received'])}/s")
        head.append("  out ", "dim").append(f"{size(rates['bytes_sent'])}/s")
        head.append("  waiting ", "dim").append(waiting(state))
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
                condition(state),
                workers(state),
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


class Top(Watcher):
    """Watches one node, or `many` of which each can be opened."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "skywalker top"
    CSS = """
    Screen { layout: vertical; }
    #head, #tabs, #note { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #problem { height: auto; padding: 0 1; color: $text-error; text-style: bold; display: none; }
    #head { background: $panel; }
    #note { color: $text-warning; }
    #tabs, #note { display: none; }
    #problem.-shown, #tabs.-shown, #note.-shown { display: block; }
    DataTable { height: 1fr; scrollbar-size: 1 1; scrollbar-color: $panel-lighten-2; scrollbar-background: $surface; }
    DataTable > .datatable--header { background: $surface; color: $text-muted; text-style: none; }
    #filter { height: 1; border: none; padding: 0 1; display: none; background: $boost; }
    #filter.-shown { display: block; }
    """
    BINDINGS: ClassVar = [("q", "quit", "Quit")]

    def __init__(self, apis: Sequence[AdminApi], *, many: bool, every: float = 1.0) -> None:
        """Take the admin servers to ask, and the seconds from one look to the next."""
        super().__init__(every)
        self._apis = apis
        self._many = many

    def on_mount(self) -> None:
        """Open the first screen."""
        self.push_screen(NodesScreen(self._apis) if self._many else NodeScreen(self._apis[0]))
