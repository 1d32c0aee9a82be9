"""An agent in a thread, with the test in the place of its supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import re
import select
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

from skywalker.address import Address
from skywalker.discovery.source import Finding, Source
from skywalker.discovery.url import source_of
from skywalker.members import Member, Snapshot
from tests.helpers import eventually, time_factor, written_to
from workers.agent.agent import Agent
from workers.agent.health import Health
from workers.agent.ping import Ping
from workers.engine.machine import MACHINE
from workers.ipc import exits, snapshots
from workers.ipc.control import Channel, Heard, Message, Ring
from workers.stats.log import Log


class LoneAgent:
    """What a supervisor has of an agent, and the snapshots that it was handed."""

    def __init__(self, agent: Agent, channel: Channel, log: IO[bytes]) -> None:
        self.channel = channel
        self.rings: list[Snapshot] = []
        self.heard: list[Message] = []  # all but the rings
        self._agent = agent
        self._log = log
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(self._agent.live())
        loop.close()

    def say(self, message: Message) -> None:
        """Tell the agent something."""
        assert self.channel.send(message)

    def hint(self, address: Address) -> None:
        """Tell the agent that there is a node at an address."""
        self.say(Heard(str(address)))

    def listen(self) -> LoneAgent:
        """Take in what the agent has said."""
        while select.select([self.channel], [], [], 0)[0]:
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

    def wait_for(self, *members: Member, within: float = 5.0) -> None:
        """Wait for a snapshot of exactly these."""
        wanted = {member.id: member for member in members}

        def is_there() -> bool:
            self.listen()
            return bool(self.rings) and self.rings[-1].by_id == wanted

        eventually(is_there, within)

    def end(self) -> None:
        """Have its supervisor be gone: it ends at once, and in good order."""
        self.channel.close()
        self._thread.join(2.0 * time_factor())
        assert not self._thread.is_alive(), self.log()
        assert self._agent.status == exits.OK, self.log()

    def has_ended(self) -> bool:
        """Whether it has, by itself or not."""
        return not self._thread.is_alive()

    def log(self) -> str:
        """Return all that the agent has written."""
        return written_to(self._log)

    def events(self, name: str) -> list[str]:
        """Return the lines of this event in the log."""
        return [line for line in self.log().splitlines() if re.search(rf"\bevent={name}\b", line)]


@contextlib.contextmanager
def agent(
    me: Member,
    listed: Iterable[Address] | Source = (),
    *,
    learning: bool = False,
    health: Address | None = None,
    last: Sequence[Member] = (),
    registration: Callable[[Address], Any] | None = None,
    small_channel: bool = False,
) -> Iterator[LoneAgent]:
    """Run an agent, whose source is given or lists these. With a registration it serves health, at any port if need be.

    It must not meet a bug.
    """
    if registration is not None and health is None:
        health = Address("127.0.0.1", 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if small_channel:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    addresses = [] if isinstance(listed, Source) else [*listed]
    with tempfile.TemporaryFile() as file, theirs:
        made = Agent(
            me,
            listed if isinstance(listed, Source) else source_of(",".join(map(str, addresses))) if addresses else None,
            learning=learning,
            registration=registration,
            health=Health(health, Ping(me.address)) if health is not None else None,
            channel=Channel(theirs),
            log=Log(MACHINE.monotonic, file.fileno()),
            machine=MACHINE,
            last=last,
        )
        found = LoneAgent(made, Channel(ours), file)
        try:
            yield found
        except AssertionError as error:
            error.add_note(f"the rings were {[[*map(str, ring)] for ring in found.rings]}, the log:\n{found.log()}")
            raise
        finally:
            found.end()
        assert "event=bug" not in found.log(), found.log()
        assert "Traceback" not in found.log(), found.log()


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
    """Takes the place of a registration."""

    def __init__(self, *, blocks: bool = False) -> None:
        self.said: list[str] = []
        """What it did."""
        self._blocks = blocks

    def __call__(self, health: Address) -> Registered:
        """Have it made, as a registration is, for a node whose health is asked for there."""
        self.said.append(f"registers {health}")
        return self

    def keep(self, trouble: Callable[[str | None], None], stopped: threading.Event) -> None:
        if self._blocks:
            threading.Event().wait()
        stopped.wait()
        self.said.append("deregisters")
        trouble("it was not quick")
