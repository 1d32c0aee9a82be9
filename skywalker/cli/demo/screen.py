"""What the demo shows: where it runs, a bar while it does, and how it went."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skywalker.cli import terminal
from skywalker.cli.demo.page import BAR, DIM, INDENT, Page, counted

if TYPE_CHECKING:
    from skywalker.cli.demo.receipts import Receipts
    from skywalker.cli.demo.run import Comparison, Progress


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
