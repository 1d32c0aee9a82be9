"""Has a send! at one worker meet a listener that waits at another, which owns the topic; prints what that calls.

The two are without their processes, linked as siblings are, and run by hand in this one. Printed are, in JSON, the
functions of our packages that run from the send! to both answers, in the order in which each is first called: its file
and its name.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from types import FrameType

from skywalker.wire.values import pack
from tests.workers.one_worker import OneWorker

ROOT = Path(__file__).resolve().parents[3]
TOKENS = range(0, 2**32, 2**28)


def pair() -> list[OneWorker]:
    """Return the two workers of one node, which are linked."""
    workers = [OneWorker(name="node", tokens=TOKENS, workers=2, slot=slot) for slot in range(2)]
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for slot, (worker, end) in enumerate(zip(workers, ends, strict=True)):
        end.setblocking(False)
        worker.hub.siblings.connect(1 - slot, end, workers[1 - slot].hub.turn.hand.life)
    return workers


def main() -> None:
    """Have them meet, and print the way."""
    home, owner = workers = pair()

    def turns() -> None:
        for worker in workers * 6:
            worker.turn()

    def owned(name: str) -> bool:
        return home.hub.router.owner(pack(name)).place.worker == 1

    topic = next(name for name in map(str, range(1000)) if owned(name))
    sender, listener = home.connect(), owner.connect()
    way: dict[tuple[str, str], None] = {}

    def called(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if (
            event == "call"
            and path.is_relative_to(ROOT)
            and path.relative_to(ROOT).parts[0] in ("workers", "skywalker")
            and path.name != "points.py"  # assertions alone come there, which a release has not
        ):
            way[str(path.relative_to(ROOT)), frame.f_code.co_qualname] = None

    for number in range(3):  # what is looked up, or sampled, the first time is no part of it
        listener.call(":recv!", number, 5000, topic)
        turns()
        if number == 2:
            sys.setprofile(called)
        sender.call(":send!", number, 5000, topic, "value")
        turns()
        sys.setprofile(None)
        assert sender.reply() == [":send!", number, True]
        assert listener.reply() == [":recv!", number, "value"]
    print(json.dumps([*way]))


if __name__ == "__main__":
    main()
