"""The blocking clients are made from those for asyncio: what says the same in both is written once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("skywalker/clients/aio/junction.py")
MADE = Path("skywalker/clients/blocking/junction.py")


def faces(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / ".ci" / "faces"), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in ("clients", "pubsub"):
        shutil.copytree(ROOT / "skywalker" / package, tmp_path / "skywalker" / package)
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "faces", tmp_path / ".ci" / "faces")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_blocking_clients_are_what_those_for_asyncio_say() -> None:
    checked = faces(ROOT, "--check")
    assert checked.returncode == 0, checked.stderr


def test_what_is_changed_on_one_side_only_is_told_and_made_again(copy: Path) -> None:
    source = copy / SOURCE
    source.write_text(source.read_text().replace("def ping(", "def pong("))
    checked = faces(copy, "--check")
    assert checked.returncode == 1
    assert str(MADE) in checked.stderr
    assert "make faces" in checked.stderr
    assert faces(copy).returncode == 0
    assert "    def pong(" in (copy / MADE).read_text()
    assert faces(copy, "--check").returncode == 0


@pytest.mark.parametrize("package", ["clients", "pubsub"])
def test_what_is_made_says_so_and_has_no_word_of_asyncio(package: str) -> None:
    made = [path for path in (ROOT / "skywalker" / package).rglob("*.py") if path.read_text().startswith("# Made by")]
    assert made
    for path in made:
        text = path.read_text()
        assert f"from {path.relative_to(ROOT).parent.parent / 'aio' / path.name};" in text
        code = text.split("\n", 1)[1]
        assert not [word for word in ("async", "await", "aio.", "event loop", "task") if word in code], path
