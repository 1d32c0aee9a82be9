"""What a receiver hands out at a time."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(slots=True)
class Chunk:
    """Values in the order they came, each with the id of its call; a subscription's all have its one."""

    ids: list[bytes]
    values: list[bytes]
    connection: int  # which of those that were made, one after another

    def __len__(self) -> int:
        return len(self.values)

    def split(self, at: int) -> tuple[Chunk, Chunk]:
        """Return the first so many, and the others."""
        return (
            Chunk(self.ids[:at], self.values[:at], self.connection),
            Chunk(self.ids[at:], self.values[at:], self.connection),
        )
