"""What the demo shows: where it runs, a bar while it does, and how it went; and the page that all demos show it on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skywalker.cli import terminal

if TYPE_CHECKING:
    from skywalker.cli.demo.run import Comparison, Progress
    from skywalker.cli.demo.taker import Receipts

INDENT: Final = "  "
LABEL: Final = 11
NUMBER: Final = 12
BAR: Final = 40
DIM, BOLD, GREEN, RED, CYAN = "2", "1", "32", "31", "36"


class Page:
    """Writes to standard output. On a terminal it is `live`: what changes is drawn over itself."""

    def __init__(self) -> None:
        self.live = os.isatty(terminal.STDOUT)
        self.fancy = terminal.speaks("━→✓✗")

    def title(self, text: str) -> None:
        """Open the page."""
        self.write(f"\n{INDENT}{terminal.painted(text, BOLD)}\n\n")

    def row(self, label: str, text: str) -> None:
        """Write a line after its label."""
        self.write(f"{INDENT}{terminal.painted(f'{label:<{LABEL}}', DIM)}{text}\n")

    def number(self, label: str, number: float, unit: str, decimals: int = 0) -> None:
        """Write a number in the column of all numbers."""
        self.row(label, f"{number:>{NUMBER},.{decimals}f}  {unit}")

    def verdict(self, good: bool, text: str) -> None:
        """Close the page with how it went."""
        if good:
            mark, colour = ("✓" if self.fancy else "ok"), GREEN
        else:
            mark, colour = ("✗" if self.fancy else "FAILED"), RED
        self.write(f"{INDENT}{terminal.painted(f'{mark} {text}', colour)}\n\n")

    def bar(self, part: float, length: int) -> str:
        """Return a bar of which a part is full."""
        full, empty = ("━", "━") if terminal.colourful(terminal.STDOUT) and self.fancy else ("#", ".")
        done = round(part * length)
        return terminal.painted(full * done, CYAN) + terminal.painted(empty * (length - done), DIM)

    def flow(self, *stations: str) -> str:
        """Return what goes through these stations, one after the other."""
        return (" → " if self.fancy else " -> ").join(stations)

    def write(self, text: str) -> None:
        """Write text as it is."""
        terminal.write(text.encode(errors="replace"))


def counted(number: int, noun: str, plural: str = "s") -> str:
    """Return "1 line" or "1,000 lines"."""
    return f"{number:,} {noun}{'' if number == 1 else plural}"


class Screen(Page):
    """Writes the demo's lines to standard output; the bar is drawn over itself on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn = False
        self.pause = 0.1 if self.live else 1.0

    def node(self, address: str, pubsub_address: str, workers: int, note: str) -> None:
        """Show where the node is."""
        self.row("node", f"{address}, {counted(workers, 'worker process', 'es')}")
        self.row("pub/sub", f"{pubsub_address}, on the same topics")
        if note:
            self.row("", terminal.painted(note, DIM))

    def route(self, file: Path, topics: int, takers: int, in_flight: int) -> None:
        """Show what goes where."""
        self.row("file", str(file))
        route = self.flow("1 sender", f"{topics} topics", f"{takers} taker processes")
        self.row("route", f"{route}, {in_flight} lines in flight")
        self.write("\n")

    def progress(self, progress: Progress) -> None:
        """Show how far it is."""
        if not progress.started:
            return
        seconds = progress.elapsed or progress.now()
        part = min(1.0, seconds / progress.seconds)
        rate = f"{progress.delivered / max(seconds, 0.001):,.0f} lines/s"
        numbers = f"{part:5.0%}  {progress.delivered:>10,} lines  {rate:>16}"
        if not self.live:
            self.write(f"{INDENT}{numbers}\n")
            return
        length = max(0, min(BAR, terminal.width() - len(INDENT) - len(numbers) - 2))
        self.write(f"\r{INDENT}{self.bar(part, length)} {numbers}\x1b[K")
        self._drawn = True

    def progress_done(self, progress: Progress) -> None:
        """Leave the bar as it is now, and go on below it."""
        if self.live:
            self.progress(progress)
        if self._drawn:
            self.write("\n")
        self.write("\n")

    def outcome(self, progress: Progress, receipts: Receipts, comparison: Comparison) -> None:
        """Show what was sent, what arrived, and whether that is the same."""
        sent, seconds = len(progress.digests), progress.elapsed
        latencies = sorted(receipts.latencies_us)
        again = f", the file {progress.passes:,} times over" if progress.passes >= 2 else ""
        self.number("sent", sent, f"lines, {progress.bytes / 1e6:,.1f} MB in {seconds:.1f} s{again}")
        self.number("received", len(receipts.numbers), "lines")
        self.number("timed out", len(progress.timed_out), "lines")
        self.number("rate", round(progress.delivered / seconds), "lines/s handed over")
        if latencies:
            self.number("p50", _percentile(latencies, 0.50), "ms from send to taker", decimals=2)
            self.number("p99", _percentile(latencies, 0.99), "ms", decimals=2)
        self.write("\n")
        if comparison.good:
            text = "every line arrived exactly once, as it was sent"
            if progress.timed_out:
                text = "every line that did not time out arrived exactly once, as it was sent"
        else:
            text = ", ".join(
                f"{count:,} {what}"
                for what, count in (
                    ("lost", comparison.lost),
                    ("repeated", comparison.repeated),
                    ("changed", comparison.changed),
                    ("arrived after all", comparison.unexpected),
                )
                if count
            )
        self.verdict(comparison.good, text)


def _percentile(ordered_us: list[int], part: float) -> float:
    """Return a percentile of sorted microseconds, in milliseconds."""
    return ordered_us[min(len(ordered_us) - 1, int(len(ordered_us) * part))] / 1000
