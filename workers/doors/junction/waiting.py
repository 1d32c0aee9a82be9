"""The calls of one connection that wait, by the id that its client gave each; the same may be given twice."""

from __future__ import annotations

from workers.calls.call import ClientCall


class Waiting:
    """All of them. `count` says how many."""

    __slots__ = ("_by_id", "_twins", "count")

    def __init__(self) -> None:
        self.count = 0
        self._by_id: dict[bytes, ClientCall] = {}
        self._twins: dict[bytes, dict[ClientCall, None]] = {}  # those whose id another one had

    def add(self, call: ClientCall) -> None:
        """Keep a call."""
        if self._by_id.setdefault(call.id, call) is not call:
            self._twins.setdefault(call.id, {})[call] = None
        self.count += 1

    def remove(self, call: ClientCall) -> None:
        """Forget one that is here."""
        if self._by_id.get(call.id) is call:
            del self._by_id[call.id]
        else:
            twins = self._twins[call.id]
            del twins[call]
            if not twins:
                del self._twins[call.id]
        self.count -= 1

    def find(self, id: bytes) -> ClientCall | None:
        """Return a call of this id, the latest of several."""
        if id in self._twins:
            return next(reversed(self._twins[id]))
        return self._by_id.get(id)

    def all(self) -> list[ClientCall]:
        """Return them all."""
        return [*self._by_id.values(), *(call for twins in self._twins.values() for call in twins)]
