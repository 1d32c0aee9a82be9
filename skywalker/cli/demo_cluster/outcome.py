"""What became of the lines: what the takers got, held against what was sent."""

from __future__ import annotations

from dataclasses import dataclass

from skywalker.cli.demo.receipts import Receipts
from skywalker.cli.demo.run import Comparison, Progress


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of lines."""

    sent: int
    received: int  # with those that came again
    lost: int  # delivered, says the cluster, and no taker has it
    doubled: int  # how many too many have come
    changed: int  # arrived as something else
    failed: int  # not delivered, says the cluster

    @classmethod
    def of(cls, progress: Progress, receipts: Receipts) -> Outcome:
        """Compare."""
        comparison = Comparison.of(progress, receipts)
        return cls(
            sent=len(progress.digests),
            received=len(receipts.numbers),
            lost=comparison.lost,
            doubled=len(receipts.numbers) - len(set(receipts.numbers)),
            changed=comparison.changed,
            failed=len(progress.timed_out),
        )

    @property
    def good(self) -> bool:
        """Whether each line arrived as it was sent, at least once."""
        return not (self.lost or self.changed or self.failed)
