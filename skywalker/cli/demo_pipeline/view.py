"""What is seen of the words while they are counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from skywalker.cli import terminal
from skywalker.cli.demo.page import BAR, INDENT, LABEL, Page, counted
from skywalker.cli.demo_pipeline.feeder import LINES
from skywalker.cli.demo_pipeline.tally import COUNTS

LINE_S: Final = 1.0
"""Between two lines about how far it is where there is no terminal."""

STARTING: Final = "  (Spark is starting the stream: some seconds)"
"""Why no word is counted yet."""

TOP: Final = 8
WIDEST: Final = 16
"""Columns for a word."""


class View:
    """Shows the words that are counted most often: on a terminal drawn over themselves, elsewhere in the end."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._drawn = 0  # lines that are to be drawn over
        self._shown_at = 0.0

    def start(self, file: Path, lines: int) -> None:
        """Show what is counted, and on which way."""
        self._page.row("text", str(file))
        self._page.row("route", self._page.flow(counted(lines, "line"), f"topic {LINES}", "Spark", f"topic {COUNTS}"))
        self._page.write("\n")

    def now(self, lines: int, counts: Mapping[str, int], seconds: float) -> None:
        """Show how far it is."""
        numbers = f"{seconds:6.1f} s  {lines:>8,} lines  {sum(counts.values()):>9,} words"
        if not counts:
            numbers += STARTING
        if not self._page.live:
            if seconds >= self._shown_at + LINE_S:
                self._shown_at = seconds
                self._page.write(f"{INDENT}{numbers}\n")
            return
        self._clear()
        rows = [numbers, "", *self._bars(counts)]
        self._page.write("".join(f"{INDENT}{row}\n" for row in rows))
        self._drawn = len(rows)

    def outcome(
        self,
        lines: int,
        counts: Mapping[str, int],
        expected: Mapping[str, int],
        seconds: float,
        error: Exception | None,
    ) -> None:
        """Show what was counted, and whether it is right."""
        self._clear()
        if not self._page.live:
            self._page.write("\n")
        for bar in self._bars(counts):
            self._page.write(f"{INDENT}{bar}\n")
        self._page.write("\n")
        self._page.number("lines", lines, f"in {seconds:.1f} s")
        self._page.number("words", sum(counts.values()), f"{len(counts):,} of them different")
        self._page.write("\n")
        if error is not None:
            self._page.verdict(False, terminal.shown(str(error).partition("\n")[0]))
        elif counts == expected:
            self._page.verdict(True, "the stream counts what is in the file, word by word")
        else:
            wrong = sum(counts.get(word) != count for word, count in expected.items())
            self._page.verdict(False, f"{wrong:,} of {len(expected):,} words are counted wrong, or not yet")

    def _bars(self, counts: Mapping[str, int]) -> list[str]:
        top = sorted(counts, key=lambda word: (-counts[word], word))[:TOP]
        length = max(0, min(BAR, terminal.width() - len(INDENT) - WIDEST - LABEL))
        return [
            f"{terminal.shown(word)[:WIDEST]:<{WIDEST}}{counts[word]:>8,}  "
            f"{self._page.bar(counts[word] / counts[top[0]], length)}"
            for word in top
        ]

    def _clear(self) -> None:
        if self._drawn:
            self._page.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0
