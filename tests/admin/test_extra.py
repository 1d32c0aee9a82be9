"""Nodes whose admin server lacks a part of what it is built on: they serve all the same, and say what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import skywalker
from skywalker import extras
from tests.helpers import eventually
from tests.workers.processes import node


@pytest.mark.parametrize(
    ("file", "text", "missing"),
    [
        ("sitecustomize.py", "import sys\nsys.modules.update(h11=None, psutil=None)\n", "h11 psutil"),
        ("h11.py", "raise ImportError('broken')\n", "broken"),
        ("starlette.py", "", "starlette.applications"),
    ],
    ids=["not there", "broken", "something else"],
)
def test_what_is_missing_is_said_once_and_the_agent_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, missing: str
) -> None:
    (tmp_path / file).write_text(text)
    root = Path(skywalker.__file__).parents[1]
    monkeypatch.setenv("SKYWALKER_ADMIN", "true")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{root}")
    command = (sys.executable, "-P", "-m", "workers")
    with node(workers=1, command=command, settings=["--admin-port=0"]) as running:
        [said] = eventually(lambda: running.events("no-admin"))
        assert said["missing"].strip('"') == missing
        assert extras.command_for("admin") in running.log()
        with running.connect() as client:
            assert client.answer(":ping") is True
        assert len(running.events("no-admin")) == 1
        assert not running.events("agent-ended")
        assert "Traceback" not in running.log()
