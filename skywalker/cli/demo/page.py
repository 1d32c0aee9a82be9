"""What the demos' screens have in common: rows with a label, numbers in a column, a bar, and a verdict."""

from __future__ import annotations

import os
from typing import Final

from skywalker.cli import terminal

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
