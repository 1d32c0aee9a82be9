"""What the demo shows: where it runs, a bar while it does, and how it went."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skywalker.cli import terminal

if TYPE_CHECKING:
    from skywalker.cli.demo.receipts import Receipts
    from skywalker.cli.demo.run import Comparison, Progress

INDENT: Final = "  "
LABEL: Final = 11
NUMBER: Final = 12
BAR: Final = 40
DIM, BOLD, GREEN, RED, CYAN = "2", "1", "32", "31", "36"


class Screen:
    """Writes the demo's lines to standard output; the bar is drawn over itself on a terminal."""

    def __init__(self) -> None:
        self._live = os.isatty(terminal.STDOUT)
        self._fancy = terminal.speaks("━→✓✗")
        self._drawn = False
        self.pause = 0.1 if self._live else 1.0

    def title(self) -> None:
        """Open the screen."""
        self._write(f"\n{INDENT}{terminal.painted('skywalker demo', BOLD)}\n\n")

    def node(self, address: str, workers: int, note: str) -> None:
        """Show where the node is."""
        self._row("node", f"{address}, {_counted(workers, 'worker process', 'es')}")
        if note:
            self._row("", terminal.painted(note, DIM))

    def route(self, file: Path, topics: int, takers: int, in_flight: int) -> None:
        """Show what goes where."""
        to = " → " if self._fancy else " -> "
        self._row("file", str(file))
        self._row("route", f"1 sender{to}{topics} topics{to}{takers} taker processes, {in_flight} lines in flight")
        self._write("\n")

    def progress(self, progress: Progress) -> None:
        """Show how far it is."""
        if not progress.started:
            return
        seconds = progress.elapsed or progress.now()
        part = min(1.0, seconds / progress.seconds)
        rate = f"{progress.delivered / max(seconds, 0.001):,.0f} lines/s"
        numbers = f"{part:5.0%}  {progress.delivered:>10,} lines  {rate:>16}"
        if not self._live:
            self._write(f"{INDENT}{numbers}\n")
            return
        length = max(0, min(BAR, terminal.width() - len(INDENT) - len(numbers) - 2))
        self._write(f"\r{INDENT}{self._bar(part, length)} {numbers}\x1b[K")
        self._drawn = True

    def progress_done(self, progress: Progress) -> None:
        """Leave the bar as it is now, and go on below it."""
        if self._live:
            self.progress(progress)
        if self._drawn:
            self._write("\n")
        self._write("\n")

    def outcome(self, progress: Progress, receipts: Receipts, comparison: Comparison) -> None:
        """Show what was sent, what arrived, and whether that is the same."""
        sent, seconds = len(progress.digests), progress.elapsed
        latencies = sorted(receipts.latencies_us)
        again = f", the file {progress.passes:,} times over" if progress.passes >= 2 else ""
        self._number("sent", sent, f"lines, {progress.bytes / 1e6:,.1f} MB in {seconds:.1f} s{again}")
        self._number("received", len(receipts.numbers), "lines")
        self._number("timed out", len(progress.timed_out), "lines")
        self._number("rate", round(progress.delivered / seconds), "lines/s handed over")
        if latencies:
            self._number("p50", _percentile(latencies, 0.50), "ms from send to taker", decimals=2)
            self._number("p99", _percentile(latencies, 0.99), "ms", decimals=2)
        self._write("\n")
        if comparison.good:
            mark, colour = ("✓" if self._fancy else "ok"), GREEN
            verdict = "every line arrived exactly once, as it was sent"
            if progress.timed_out:
                verdict = "every line that did not time out arrived exactly once, as it was sent"
        else:
            mark, colour = ("✗" if self._fancy else "FAILED"), RED
            verdict = ", ".join(
                f"{count:,} {what}"
                for what, count in (
                    ("lost", comparison.lost),
                    ("repeated", comparison.repeated),
                    ("changed", comparison.changed),
                    ("arrived after all", comparison.unexpected),
                )
                if count
            )
        self._write(f"{INDENT}{terminal.painted(f'{mark} {verdict}', colour)}\n\n")

    def _bar(self, part: float, length: int) -> str:
        full, empty = ("━", "━") if terminal.colourful(terminal.STDOUT) and self._fancy else ("#", ".")
        done = round(part * length)
        return terminal.painted(full * done, CYAN) + terminal.painted(empty * (length - done), DIM)

    def _row(self, label: str, text: str) -> None:
        self._write(f"{INDENT}{terminal.painted(f'{label:<{LABEL}}', DIM)}{text}\n")

    def _number(self, label: str, number: float, unit: str, decimals: int = 0) -> None:
        self._row(label, f"{number:>{NUMBER},.{decimals}f}  {unit}")

    def _write(self, text: str) -> None:
        terminal.write(text.encode(errors="replace"))


def _percentile(ordered_us: list[int], part: float) -> float:
    """Return a percentile of sorted microseconds, in milliseconds."""
    return ordered_us[min(len(ordered_us) - 1, int(len(ordered_us) * part))] / 1000


def _counted(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"
