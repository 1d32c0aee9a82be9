"""What connections have published that are gone since: kept until it is in effect, wherever that comes to be."""

from __future__ import annotations

from workers.calls.call import ClientCall
from workers.calls.ledger import Ledger


class Orphans:
    """All of one worker."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._all: dict[ClientCall, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def adopt(self, publication: ClientCall) -> None:
        """Keep one whose connection is gone."""
        assert publication not in self._all, "it is kept once"
        self._all[publication] = None
        self._ledger.add(publication.cost())

    def settled(self, publication: ClientCall) -> None:
        """It is in effect."""
        del self._all[publication]
        self._ledger.remove(publication.cost())

    def waiting(self) -> list[ClientCall]:
        """Return them all."""
        return [*self._all]
