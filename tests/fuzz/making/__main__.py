"""Writes all seeds anew, in place of those that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.fuzz.making import doors, told, wire
from tests.fuzz.making.steps import Seeds
from tests.fuzz.targets import seeds_of

SEEDS: Final[Mapping[str, Callable[[], Seeds]]] = {
    "frames": wire.frames,
    "values": wire.values,
    "junction": wire.junction,
    "session": doors.session,
    "pubsub": doors.pub_sub,
    "mesh": doors.mesh,
    "siblings": doors.siblings,
    "access": doors.access,
    "silk": told.silk,
    "address": told.address,
    "config": told.config,
    "journal": told.journal,
    "peer": told.peer,
    "records": told.records,
}


FOUND: Final = "found-"
"""What the names of inputs begin with that once failed, and that nothing here makes."""


def main() -> None:
    for target, make in SEEDS.items():
        directory = seeds_of(target)
        directory.mkdir(parents=True, exist_ok=True)
        for path in directory.iterdir():
            if not path.name.startswith(FOUND):
                path.unlink()
        for name, data in make().items():
            (directory / name).write_bytes(data)


if __name__ == "__main__":
    main()
