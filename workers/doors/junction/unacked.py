"""The values that one client was given and has not acknowledged, by the id of the call that each answered."""

from __future__ import annotations

from workers.calls.call import ClientCall


class Unacked:
    """All of them: how many, and how many bytes their replies have."""

    __slots__ = ("_by_id", "count", "size")

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self._by_id: dict[bytes, ClientCall] = {}

    def add(self, listener: ClientCall) -> None:
        """Keep what a listener was given. None of its id may be here."""
        self._by_id[listener.id] = listener
        self.count += 1
        self.size += len(listener.chunk)

    def has(self, listener: ClientCall) -> bool:
        """Return whether this listener's value is one of them."""
        return self._by_id.get(listener.id) is listener

    def pop(self, id: bytes) -> ClientCall | None:
        """Forget the one of this id, and return it."""
        listener = self._by_id.pop(id, None)
        if listener is not None:
            self.count -= 1
            self.size -= len(listener.chunk)
        return listener

    def clear(self) -> list[ClientCall]:
        """Forget them all, and return them."""
        listeners = [*self._by_id.values()]
        self._by_id.clear()
        self.count = self.size = 0
        return listeners
