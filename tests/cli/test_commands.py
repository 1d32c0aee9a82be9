"""Help, mistyped names, and what starting a command costs."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import skywalker
from tests.cli.running import run, started

COMMANDS = [
    "serve",
    "check",
    "send",
    "recv",
    "take",
    "publish",
    "subscribe",
    "ping",
    "hello",
    "tokens",
    "topic",
    "silk",
    "ring",
    "route",
    "top",
    "report",
    "doctor",
    "drain",
    "systemd",
    "certs",
    "token",
    "journal",
    "pipeline",
    "demo",
    "demo-cluster",
    "demo-pipeline",
]


def test_help_lists_every_command() -> None:
    ran = run("--help")
    assert ran.returncode == 0
    listed = re.findall(r"^  ([a-z-]+)  ", ran.stdout.decode().partition("Commands:")[2], re.MULTILINE)
    assert listed == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    ran = run(command, "--help")
    assert ran.returncode == 0
    assert ran.stdout.decode().startswith(f"Usage: skywalker {command} ")
    assert max(map(len, ran.stdout.decode().splitlines())) <= 100


def test_the_version_is_the_packages() -> None:
    assert run("--version").stdout.decode() == f"skywalker {skywalker.__version__}\n"


def test_a_mistyped_command_is_told_what_was_meant() -> None:
    ran = run("sned")
    assert ran.returncode == 2
    assert "'send'" in ran.stderr.decode()


def modules_loaded(*arguments: str) -> set[str]:
    program = f"""
import sys, json
sys.argv = ["skywalker", *{list(arguments)!r}]
from skywalker.cli import main
try:
    main()
except SystemExit:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60)
    return set(json.loads(ran.stderr.splitlines()[-1]))


def test_help_loads_neither_client_nor_server() -> None:
    loaded = modules_loaded("--help")
    heavy = {"asyncio", "ssl", "subprocess", "skywalker.clients.blocking.client", "workers.process.start"}
    assert not loaded & heavy


def test_a_client_command_loads_no_asyncio_and_no_server() -> None:
    loaded = modules_loaded("ping", "--timeout", "10ms", "--node", "127.0.0.1:1")
    assert "skywalker.clients.blocking.client" in loaded
    assert not loaded & {"asyncio", "workers", "subprocess", "importlib.metadata"}


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"]])
def test_help_into_a_pipe_that_nobody_reads_is_no_scandal(arguments: list[str]) -> None:
    with started(*arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
