"""What the screens of the console have in common: a table that is read anew each second, and the keys for it."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from skywalker.cli.node.table import Column, Row, Table

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
        for number, column in enumerate(table.columns):
            mark = (" ▼" if self.descending else " ▲") if number == self.by else ""
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
