"""What is said to whoever lacks a package: a command that works for what he has installed."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skywalker import extras

ROOT = Path(__file__).resolve().parent.parent

NEEDS = ["msgpack>=1.1", 'pyzmq>=27; extra == "silk"', "psutil>=6; extra == 'admin'", "h11; extra == 'admin'"]


class Installed:
    """A distribution as importlib.metadata finds it."""

    requires = NEEDS

    def __init__(self, origin: dict[str, Any] | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


def told(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, extra: str) -> list[str]:
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(origin))
    python, *words = shlex.split(extras.command_for(extra))
    assert python == sys.executable
    assert words[:3] == ["-m", "pip", "install"]
    return words[3:]


def test_what_came_from_a_directory_is_installed_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "a checkout"
    home.mkdir()
    origin = {"url": home.as_uri(), "dir_info": {}}
    assert told(monkeypatch, origin, "silk") == [f"{home}[silk]"]
    origin = {"url": home.as_uri(), "dir_info": {"editable": True}}
    assert told(monkeypatch, origin, "silk") == ["--editable", f"{home}[silk]"]


def test_what_came_from_a_file_or_a_url_is_installed_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "skywalker-0.1.0-py3-none-any.whl"
    file.touch()
    for url in (file.as_uri(), "https://host/skywalker-0.1.0.tar.gz"):
        assert told(monkeypatch, {"url": url, "archive_info": {}}, "silk") == [f"skywalker[silk] @ {url}"]


def test_what_came_from_a_repository_is_installed_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    origin: dict[str, Any] = {"url": "https://host/repo.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    assert told(monkeypatch, origin, "silk") == ["skywalker[silk] @ git+https://host/repo.git@abc"]
    origin["vcs_info"]["requested_revision"] = "main"
    origin["subdirectory"] = "python"
    expected = "skywalker[silk] @ git+https://host/repo.git@main#subdirectory=python"
    assert told(monkeypatch, origin, "silk") == [expected]


@pytest.mark.parametrize("origin", [None, {"url": "file:///no/such/checkout", "dir_info": {}}])
def test_of_what_came_from_nowhere_that_is_known_the_packages_are_named(
    origin: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(monkeypatch, origin, "silk") == ["pyzmq>=27"]
    assert told(monkeypatch, origin, "admin") == ["psutil>=6", "h11"]


def test_what_was_never_installed_is_installed_from_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert extras.command_for("silk").endswith(shlex.join(["pip", "install", f"{ROOT}[silk]"]))


def test_pip_takes_the_command_that_is_told_here() -> None:
    # With these it looks nowhere, and changes nothing.
    harmless = ("--dry-run", "--no-deps", "--no-index", "--no-build-isolation")
    ran = subprocess.run(
        [*shlex.split(extras.command_for("silk")), *harmless], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Would install skywalker-" in ran.stdout


def test_nothing_tells_anybody_to_install_the_plain_name() -> None:
    """On the index it is somebody else's."""
    plain = re.compile(r"pip install[^\n`]*?[\s'\"]skywalker\b(?![-/])|skywalker\[[a-z]")
    files = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "Makefile", *ROOT.glob("*.py")]
    for name in ("skywalker", "workers", "bench", "systemd", "docs", "tests/soak", "tests/docs"):
        files += [path for path in (ROOT / name).rglob("*") if path.suffix not in {".so", ".c", ".pyc", ".png"}]
    offenders = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in files
        if path.is_file()
        for found in plain.finditer(path.read_text(errors="replace"))
    ]
    assert not offenders, "\n".join(offenders)
