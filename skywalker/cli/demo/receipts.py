"""What a taker notes of each line, and hands to the demo in the end."""

from __future__ import annotations

import hashlib
import time
from array import array


def digest(line: str | bytes) -> int:
    """Return 64 bits that tell lines apart."""
    data = line.encode() if isinstance(line, str) else line
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


class Receipts:
    """What arrived: of each line its number, the microseconds that it took, and its digest."""

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.latencies_us = array("Q")
        self.digests = array("Q")

    def add(self, number: int, sent_ns: int, line: str | bytes) -> None:
        """Note a line that has just arrived; the monotonic clock is the same for all processes of a machine."""
        self.numbers.append(number)
        self.latencies_us.append((time.monotonic_ns() - sent_ns) // 1000)
        self.digests.append(digest(line))

    def to_bytes(self) -> bytes:
        """Return them as extend() reads them."""
        return self.numbers.tobytes() + self.latencies_us.tobytes() + self.digests.tobytes()

    def extend(self, data: bytes) -> None:
        """Add those that another process wrote. Raises ValueError if it did not finish."""
        third, rest = divmod(len(data), 3)
        if rest or third % self.numbers.itemsize:
            raise ValueError("a taker ended in the middle of its receipts")
        self.numbers.frombytes(data[:third])
        self.latencies_us.frombytes(data[third : 2 * third])
        self.digests.frombytes(data[2 * third :])
