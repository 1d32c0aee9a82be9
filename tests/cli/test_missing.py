"""Commands whose packages are missing: what they say to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from skywalker import extras
from skywalker.embedding import Node
from tests.cli.running import run
from tests.cli.terminal import on_terminal

HIDE = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {name!r} else found(name, package)
sys.modules[{name!r}] = None
"""


def without(package: str, directory: Path) -> dict[str, str]:
    """Return variables with which a Python does not find a package."""
    (directory / "sitecustomize.py").write_text(HIDE.format(name=package))
    return {"PYTHONPATH": str(directory)}


@pytest.mark.parametrize(
    ("package", "extra", "command", "status"),
    [
        ("cryptography", "certs", ["certs", "new"], 2),
        ("matplotlib", "bench", ["ring", "--plot", "ring.svg"], 1),
        ("numpy", "spark", ["pipeline", "plan", "--topics", "synthetic:9", "--skew", "zipf:1"], 2),
        ("pyarrow", "spark", ["pipeline", "plan", "--topics", "synthetic:9", "--skew", "zipf:1"], 2),
        ("zmq", "silk", ["silk", "listen", "--type", "t"], 1),
        ("zmq", "silk", ["silk", "keygen", "file"], 1),
    ],
)
def test_a_command_says_how_to_get_what_it_lacks(
    node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    extra: str,
    command: list[str],
    status: int,
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ran = run(*command, node=node.address, **without(package, tmp_path))
    assert (ran.returncode, ran.stdout) == (status, b"")
    assert extras.command_for(extra) in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1
    assert not [*Path().iterdir()]


def test_so_does_one_of_a_journal(tmp_path: Path) -> None:
    ran = run("journal", "stat", str(tmp_path), **without("numpy", tmp_path))
    assert ran.returncode == 2
    assert b"numpy, which is not installed: pip install" in ran.stderr


def test_so_does_one_that_needs_a_terminal(tmp_path: Path) -> None:
    with on_terminal("top", columns=300, **without("textual", tmp_path)) as (terminal, process):
        shown = terminal.read_to_the_end()
        assert process.wait() == 2
    assert extras.command_for("top") in shown.decode()
