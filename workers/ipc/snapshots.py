"""Snapshots on their way from the agent to the workers: files in memory, since a message has no room for one."""

from __future__ import annotations

import json
import os
from typing import BinaryIO

from skywalker.address import Address
from skywalker.members import Member, Snapshot


def write(snapshot: Snapshot) -> BinaryIO:
    """Return a file that holds a snapshot; whoever has a copy of its descriptor can read() it."""
    file = open(os.memfd_create("skywalker-ring"), "wb", buffering=0)  # noqa: SIM115  # the caller closes it
    content = {
        "members": [member.as_map() for member in snapshot],
        "unproven": {str(address): reason for address, reason in snapshot.unproven.items()},
    }
    file.write(json.dumps(content).encode())
    return file


def read(fd: int) -> Snapshot:
    """Return the snapshot in a file, and close this descriptor of it."""
    with open(fd, "rb", buffering=0) as file:
        return content(file)


def content(file: BinaryIO) -> Snapshot:
    """Return the snapshot in a file."""
    fd = file.fileno()
    found = json.loads(os.pread(fd, os.fstat(fd).st_size, 0))  # the position is everybody's
    members = [Member.parse(each) for each in found["members"]]
    unproven = {Address.parse(address): reason for address, reason in found["unproven"].items()}
    return Snapshot([member for member in members if member is not None], unproven)
