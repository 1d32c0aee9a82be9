"""What the demo shows: what there is, what happens, how it goes now, and how it went.

Below what has happened, a terminal shows the ring, the nodes and the traffic as they are now,
drawn over itself; elsewhere there is a line each second. Each node has a letter, the first of
its name, so that colour adds nothing that cannot be read without it.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from skywalker.cli import terminal
from skywalker.cli.demo.screen import BAR, DIM, INDENT, LABEL, NUMBER, Page
from skywalker.cli.demo_cluster.fleet import Fleet, Ship, State
from skywalker.cli.demo_cluster.story import Chapter, Sight
from skywalker.cli.demo_cluster.traffic import Outcome, Traffic
from skywalker.cli.ring.screen import columns
from skywalker.members import arcs

WIDEST: Final = 100
NARROWEST: Final = 52
"""Columns of a terminal in which what is now fits; in another it is told as where there is no terminal."""
GROUNDS: Final = {"red": 210, "green": 114, "blue": 75, "yellow": 179}
"""Colours of the 256 on which black letters can be read, by the name of the node."""

ROOMY: Final = 32
"""Lines of a terminal that has room for a band of the ring of several lines."""
BAND_ROWS: Final = 3


class Screen(Page):
    """Writes the lines to standard output, and draws what is now below them if that is a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.live and os.environ.get("TERM") != "dumb" and terminal.width() >= NARROWEST
        self.pause = 0.1 if self.live else 1.0
        self._drawn = 0  # lines that are to be drawn over
        self._block: list[str] = []

    def start(self, file: Path, route: str, discovery: str, note: str) -> None:
        """Show what there is."""
        self.row("text", str(file))
        self.row("route", route)
        self.row("nodes", discovery)
        if note:
            self.row("", terminal.painted(note, DIM))
        self.write("\n")

    def event(self, at: float, text: str) -> None:
        """Add to what has happened; `at` is in seconds since the first line left."""
        self._redraw(f"{INDENT}{terminal.painted(f'{at:6.1f} s', DIM)}   {text}")

    def now(self, fleet: Fleet, sight: Sight, traffic: Traffic, seconds: float) -> None:
        """Show how it goes now."""
        progress = traffic.progress
        if not progress.started:
            return
        now = progress.now()
        numbers = (
            f"{traffic.rate(now):,.0f} lines/s",
            f"{traffic.under_way:,} on their way",
            f"{traffic.longest_wait(now) * 1000:,.1f} ms longest wait",
        )
        if not self.live:
            shares = sight.shares
            told = ", ".join(f"{name} {shares[name]:.0%}" for name in fleet.ships if name in shares)
            self.write(f"{INDENT}{now:6.1f} s   {numbers[0]:>14}{numbers[1]:>19}{numbers[2]:>26}   {told}\n")
            return
        width, height = self._size()
        self._block = ["", *self._band(sight, width, height)]
        self._block += [self._ship(ship, sight.shares.get(ship.name), width) for ship in fleet.ships.values()]
        together = f"{numbers[0]:<16}{numbers[1]:<20}{numbers[2]}"
        rows = [together] if LABEL + len(together) <= width else numbers
        self._block += ["", *(self._labelled("" if at else "now", row) for at, row in enumerate(rows))]
        shown = f"{min(now, seconds):6.1f} of {seconds:g} s"
        length = max(0, min(BAR, width - LABEL - len(shown) - 1))
        self._block.append(self._labelled("time", f"{self.bar(min(1.0, now / seconds), length)} {shown}"))
        # A terminal that is too low for all of it shows the last lines: what is above its top cannot be drawn over.
        self._block = self._block[-max(1, height - 1) :]
        self._redraw()

    def done(self) -> None:
        """Leave what is now as it is, and go on below it."""
        self._drawn = 0
        self.write("\n")

    def outcome(self, traffic: Traffic, outcome: Outcome, chapters: Sequence[Chapter]) -> None:
        """Show what was sent, what arrived, how long it took at worst, and whether that is as it should be."""
        progress = traffic.progress
        self.number("sent", outcome.sent, f"lines, {progress.bytes / 1e6:,.1f} MB in {progress.elapsed:.1f} s")
        self.number("received", outcome.received, "lines")
        self.number("lost", outcome.lost, "lines")
        self.number("doubled", outcome.doubled, "lines")
        hint = "one that is on its way as a node dies may come twice"
        self.row("", f"{'':{NUMBER}}  {terminal.painted(hint, DIM)}")
        calm = traffic.longest_apart_from([(chapter.start, chapter.end) for chapter in chapters])
        self.number("longest", calm * 1000, "ms from send to taker, in calm", decimals=1)
        for chapter in chapters:
            self.number("", traffic.longest_during(chapter.start, chapter.end) * 1000, f"ms as {chapter.what}", 1)
        self.write("\n")
        text = "nothing was lost: every line arrived"
        if not outcome.good:
            troubles = ((outcome.lost, "lost"), (outcome.changed, "changed"), (outcome.failed, "not delivered"))
            text = ", ".join(f"{count:,} {what}" for count, what in troubles if count)
            text += f": {traffic.reason}" if traffic.reason else ""
        self.verdict(outcome.good, text)

    # The block that is drawn over itself.

    def _band(self, sight: Sight, width: int, height: int) -> Iterator[str]:
        if sight.snapshot is None:
            return
        rows = BAND_ROWS if height >= ROOMY else 1
        names = {member.id: member.name for member in sight.snapshot}
        owners = [names[id] for id in columns(arcs(sight.snapshot), (width - LABEL) * rows)]
        for row in range(rows):
            part = owners[row * (width - LABEL) : (row + 1) * (width - LABEL)]
            band = "".join(_painted(name, len(list(run))) for name, run in itertools.groupby(part))
            yield self._labelled("" if row else "ring", band)
        yield ""

    def _ship(self, ship: Ship, share: float | None, width: int) -> str:
        owned = f"{share:6.1%}" if share is not None else " " * 6
        text = f"{str(ship.address) if ship.state is not State.ABSENT else '':<17}{_state(ship, share):<10}{owned}  "
        bar = _painted(ship.name, round((share or 0.0) * max(0, width - LABEL - len(text))))
        # The label is two wide for the letter and a space, which colour makes longer than they are.
        return f"{INDENT}{_painted(ship.name)} {ship.name:<{LABEL - 2}}{text}{bar}"

    def _labelled(self, label: str, text: str) -> str:
        return f"{INDENT}{terminal.painted(f'{label:<{LABEL}}', DIM)}{text}"

    def _redraw(self, *above: str) -> None:
        """Write lines above the block, in one go, so that nothing flickers."""
        if not self.live:
            self.write("".join(f"{line}\n" for line in above))
            return
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        self.write(up + "".join(f"{line}\x1b[K\n" for line in (*above, *self._block)) + "\x1b[J")
        self._drawn = len(self._block)

    @staticmethod
    def _size() -> tuple[int, int]:
        size = shutil.get_terminal_size()
        # One column less: to erase the rest of a line that is full erases its last character.
        return max(NARROWEST, min(size.columns, WIDEST)) - len(INDENT) - 1, size.lines


def _state(ship: Ship, share: float | None) -> str:
    if ship.state is State.RUNNING:
        return "serving" if share is not None else "joining"
    return "" if ship.state is State.ABSENT else ship.state.value


def _painted(name: str, times: int = 1) -> str:
    mark = name[0].upper() * times
    return terminal.painted(mark, f"38;5;16;48;5;{GROUNDS[name]}") if mark else ""
