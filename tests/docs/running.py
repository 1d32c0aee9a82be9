"""Blocks of a page run as a reader would run them, on ports that nobody else has."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from skywalker import embedding
from skywalker.cli.demo_cluster.ports import free_ports
from skywalker.limits import DEFAULT_ADMIN_PORT, DEFAULT_PORT, DEFAULT_PUBSUB_PORT, DEFAULT_SILK_PORT
from tests.cli.running import environment
from tests.docs.pages import ROOT, Block
from tests.helpers import eventually, time_factor

END_S = 20.0

DEFAULTS = (DEFAULT_PORT, DEFAULT_PUBSUB_PORT, DEFAULT_ADMIN_PORT, DEFAULT_SILK_PORT)

_SERVE = re.compile(r"\bskywalker serve\b")

PREAMBLE = """
exec 9<&0 </dev/null
serves() {  # returns once a node serves that writes its log there, or has ended
  until grep -qs 'event=serving ' $2; do kill -0 $1 2>/dev/null || break; sleep 0.05; done
}
settles() {  # returns once a process has a connection, and waits for something, or has ended
  local before= now= quiet=0
  while kill -0 $1 2>/dev/null && [ $quiet -lt 3 ]; do
    now=$(cut -d ' ' -f 14,15 /proc/$1/stat 2>/dev/null)
    if [ "$now" = "$before" ] && ls -l /proc/$1/fd 2>/dev/null | grep -q socket: ; then
      quiet=$((quiet + 1))
    else
      quiet=0
    fi
    before=$now
    sleep 0.1
  done
}
"""


class Ports:
    """Free ones in place of those by default, in what is run, and back in what it says."""

    def __init__(self) -> None:
        self._free = dict(zip(DEFAULTS, free_ports(len(DEFAULTS)), strict=True))
        self.node, self.pubsub, self.admin, self.silk = self._free.values()

    def into(self, text: str) -> str:
        """Return `text` with the free ones."""
        return self._replaced(text, self._free)

    def back(self, text: str) -> str:
        """Return `text` with those by default."""
        return self._replaced(text, {free: default for default, free in self._free.items()})

    @staticmethod
    def _replaced(text: str, by: dict[int, int]) -> str:
        numbers = "|".join(map(str, by))
        return re.sub(rf"(?<!\d)({numbers})(?!\d)", lambda number: str(by[int(number[1])]), text)


class Ground:
    """What blocks run on: ports, and a node with all its doors there for those that start none."""

    def __init__(self) -> None:
        self._ports = Ports()
        self._node: embedding.Node | None = None

    def with_node(self) -> Ports:
        """Return the ports of the node, which is another if a block before has ended that one."""
        ports = self._ports
        if self._node is None or not _listens(ports.node):
            self.close()
            self._node = embedding.start(
                port=ports.node, pubsub_port=ports.pubsub, admin_port=ports.admin, workers=2, pubsub=True, admin=True
            )
        return ports

    def close(self) -> None:
        """End the node."""
        if self._node is not None:
            self._node.stop()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def run_python(block: Block, directory: Path, ground: Ground) -> None:
    """Run a program to its end; what it prints must be what the comments beside its print() say."""
    ports = ground.with_node()
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", ports.into(block.text)],
        cwd=directory,
        env=_environment(ports, directory),
        capture_output=True,
        timeout=END_S * time_factor(),
        check=False,
        text=True,
    )
    assert ran.returncode == 0, f"{block}\n{ran.stderr}"
    expected = re.findall(r"^ *print\(.*\)  # (.+)$", block.text, re.MULTILINE)
    assert matches(expected, ports.back(ran.stdout).splitlines()), f"{block} prints\n{ran.stdout}"


def run_console(block: Block, directory: Path, ground: Ground) -> None:
    """Have bash run what follows a $; all that is said must be what is shown."""
    commands, expected = taken_apart(block.text)
    ports = Ports() if any(_SERVE.search(command) for command, _ in commands) else ground.with_node()
    script, output, done = directory / ".script", directory / ".output", directory / ".done"
    lines = [PREAMBLE, *(_bash(command, shows, ports) for command, shows in commands), f": >{done}", "read -r -u 9"]
    script.write_text("\n".join(lines))
    with ExitStack() as stack:
        said = stack.enter_context(output.open("wb"))
        process = subprocess.Popen(
            ["bash", str(script)],
            cwd=directory,
            env=_environment(ports, directory),
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        stack.callback(_end, process)

        def lines_said() -> list[str]:
            return ports.back(output.read_text(errors="replace")).splitlines()

        try:
            eventually(done.exists, END_S)
            # What runs on in the background may be slow to say its last.
            eventually(lambda: matches(expected, lines_said()), 5.0)
        except AssertionError:
            raise AssertionError(f"{block} says\n" + "\n".join(lines_said())) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    # bash waits to be told, so the group is surely its own still.
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def taken_apart(text: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """Return the commands, each with whether it shows output, and all the output."""
    commands: list[tuple[str, bool]] = []
    output: list[str] = []
    for line in text.splitlines():
        if commands and commands[-1][0].endswith("\\") and not commands[-1][1]:
            commands[-1] = f"{commands[-1][0]}\n{line}", False
        elif line.startswith("$ "):
            commands.append((line.removeprefix("$ "), False))
        else:
            assert commands, f"output of what? {line!r}"
            commands[-1] = commands[-1][0], True
            output.append(line)
    return commands, output


def _bash(command: str, shows: bool, ports: Ports) -> str:
    command = ports.into(command)
    bare = re.sub(r"\s*&?\s*(#[^'\"]*)?$", "", command)
    if _SERVE.search(command) and not shows:
        return f"{bare} >.node 2>&1 &\nserves $! .node"
    if re.search(r"&\s*(#[^'\"]*)?$", command) and not bare.endswith("&"):
        return f"{bare} &\nsettles $!"
    return command


def _environment(ports: Ports, home: Path) -> dict[str, str]:
    return environment(
        HOME=str(home),
        XDG_STATE_HOME=str(home / ".state"),
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        PYTHONPATH=str(ROOT),
        TERM="dumb",
        SKYWALKER_NODE=f"127.0.0.1:{ports.node}",
        SKYWALKER_BROKER=f"127.0.0.1:{ports.pubsub}",
        SKYWALKER_PORT=str(ports.node),
        SKYWALKER_PUBSUB_PORT=str(ports.pubsub),
        SKYWALKER_ADMIN_PORT=str(ports.admin),
    )


# What is shown and what is said.


def matches(shown: Iterable[str], said: Iterable[str]) -> bool:
    """Whether lines that were said are those shown: see the rule in test_examples.py."""
    pattern = ""
    for line in shown:
        if line.strip() in ("…", "..."):
            pattern += r"(?:.*\n)*?"
        elif plain := _plain(line):
            pattern += ".*?".join(map(re.escape, plain.split("…"))) + r"\n"
    text = "".join(f"{plain}\n" for plain in map(_plain, said) if plain)
    return re.fullmatch(pattern, text) is not None


def _plain(line: str) -> str:
    line = re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b", "#", line)
    line = re.sub(r"\d+(?:[.,:T-]\d+)*Z?", lambda number: number[0] if len(number[0]) <= 2 else "#", line)
    return " ".join(line.split())
