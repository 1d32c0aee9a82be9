"""An agent in a process of its own, with the test in the place of its supervisor; run as a program, the agent."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

from skywalker.address import Address
from skywalker.discovery.source import Finding, Source
from skywalker.discovery.url import source_of
from skywalker.members import Member, Snapshot
from tests.helpers import eventually, time_factor, written_to
from workers.ipc import snapshots
from workers.ipc.control import Channel, Heard, Message, Ring


class AgentProcess:
    """What a supervisor has of an agent, and the snapshots that it was handed."""

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel, log: IO[bytes]) -> None:
        self.process = process
        self.channel = channel
        self.rings: list[Snapshot] = []
        self.heard: list[Message] = []  # all but the rings
        self._log = log

    def say(self, message: Message) -> None:
        """Tell the agent something."""
        assert self.channel.send(message)

    def hint(self, address: Address) -> None:
        """Tell the agent that there is a node at an address."""
        self.say(Heard(str(address)))

    def listen(self) -> AgentProcess:
        """Take in what the agent has said."""
        while self.channel.fileno() >= 0 and select.select([self.channel], [], [], 0)[0]:
            received = self.channel.receive()
            if received is None:
                break
            message, fd = received
            if isinstance(message, Ring):
                assert fd is not None
                self.rings.append(snapshots.read(fd))
            else:
                assert fd is None
                self.heard.append(message)
        return self

    def wait_for(self, *members: Member, within: float = 5.0) -> float:
        """Wait for a snapshot of exactly these; return the seconds until then."""
        start = time.monotonic()
        wanted = {member.id: member for member in members}

        def is_there() -> bool:
            self.listen()
            return bool(self.rings) and self.rings[-1].by_id == wanted

        try:
            eventually(is_there, within)
        except AssertionError as error:
            found = [[str(member) for member in ring] for ring in self.rings]
            error.add_note(f"the rings were {found}, the log:\n{self.log()}")
            raise
        return time.monotonic() - start

    def wait(self, within: float) -> int:
        """Return the status with which the agent ends; AssertionError if it does not in time."""
        try:
            return self.process.wait(within * time_factor())
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the agent did not end within {within} s:\n{self.log()}") from None

    def log(self) -> str:
        """Return all that the agent has written."""
        return written_to(self._log)

    def events(self, name: str) -> list[str]:
        """Return the lines of this event in the log."""
        return [line for line in self.log().splitlines() if re.search(rf"\bevent={name}\b", line)]


@contextlib.contextmanager
def agent(
    me: Member,
    listed: Iterable[Address] | str = (),
    *,
    learning: bool = False,
    health: Address | None = None,
    last: Sequence[Member] = (),
    registration: str = "",
    small_channel: bool = False,
) -> Iterator[AgentProcess]:
    """Run an agent; `listed` is a source that source_of() knows, or "blocked". It must not meet a bug.

    With a `registration` it serves health, if not told otherwise, at any free port.
    """
    if registration and health is None:
        health = Address("127.0.0.1", 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if small_channel:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    settings = {
        "me": me.as_map(),
        "source": listed if isinstance(listed, str) else ",".join(map(str, listed)),
        "learning": learning,
        "health": health and [health.host, health.port],
        "last": [member.as_map() for member in last],
        "registration": registration,
        "fd": theirs.fileno(),
    }
    with tempfile.TemporaryFile() as log, contextlib.closing(Channel(ours)) as channel:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps(settings)],
                pass_fds=[theirs.fileno()], stderr=log, start_new_session=True,
            )  # fmt: skip
        found = AgentProcess(process, channel, log)
        try:
            yield found
            assert "event=bug" not in found.log(), found.log()
            assert "Traceback" not in found.log(), found.log()
        except AssertionError as error:
            error.add_note(f"the log of the agent:\n{found.log()}")
            raise
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            found.listen()


class Blocked(Source):
    """Asked once, it never answers again, not even to be closed."""

    def look(self) -> Finding:
        threading.Event().wait()
        raise AssertionError

    def close(self) -> None:
        pass

    def __str__(self) -> str:
        return "blocked"


class Registered:
    """Takes the place of a registration, and says what it does on standard error."""

    def __init__(self, kind: str, health: Address) -> None:
        self._kind = kind
        self._health = health

    def keep(self, trouble: Callable[[str | None], None], stopped: threading.Event) -> None:
        print(f"registers {self._health}", file=sys.stderr, flush=True)
        if self._kind == "blocked":
            threading.Event().wait()
        stopped.wait()
        print("deregisters", file=sys.stderr, flush=True)
        trouble("it was not quick")


def _run(settings: dict[str, Any]) -> int:
    from workers.agent.agent import Agent
    from workers.agent.health import Health
    from workers.agent.ping import Ping
    from workers.engine.machine import MACHINE
    from workers.stats.log import Log

    me = Member.parse(settings["me"])
    assert me is not None
    source: Source | None = None
    if settings["source"]:
        source = Blocked() if settings["source"] == "blocked" else source_of(settings["source"])
    registration: Any = functools.partial(Registered, settings["registration"]) if settings["registration"] else None
    return Agent(
        me,
        source,
        learning=settings["learning"],
        registration=registration,
        health=Health(Address(*settings["health"]), Ping(me.address)) if settings["health"] else None,
        channel=Channel(socket.socket(fileno=settings["fd"])),
        log=Log(MACHINE.monotonic),
        machine=MACHINE,
        last=[member for member in map(Member.parse, settings["last"]) if member is not None],
    ).run()


if __name__ == "__main__":
    os._exit(_run(json.loads(sys.argv[1])))
