"""What pages say of the source is so: the files that they name are there, and lists are those of the code."""

from __future__ import annotations

import re

from skywalker.config import SETTINGS
from tests.docs.pages import DOCS, ROOT, prose
from workers.process.reload import FIXED

ARCHITECTURE = (DOCS / "architecture.md").read_text()


def test_every_file_that_the_architecture_names_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", ARCHITECTURE))
    assert len(named) > 50
    assert not {path for path in named if not (ROOT / path).exists()}


def test_every_method_that_the_architecture_names_is_there() -> None:
    source = "\n".join(path.read_text() for each in ("workers", "skywalker") for path in (ROOT / each).rglob("*.py"))
    bodies: dict[str, str] = {}
    for cls, body in re.findall(r"^class (\w+)\b.*\n((?:(?:    .*)?\n)*)", source, re.MULTILINE):
        bodies[cls] = bodies.get(cls, "") + body
    named = set(re.findall(r"`([A-Z]\w+)\.(\w+)`", ARCHITECTURE))
    assert named
    assert not {f"{cls}.{name}" for cls, name in named if f"    def {name}(" not in bodies.get(cls, "")}


def test_every_function_of_the_core_that_the_architecture_names_is_there() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "workers" / "core").glob("[!_]*.c"))
    defined = set(re.findall(r"^(?:\w+ )+\*?(\w+)\(.*\{", source, re.MULTILINE))
    named = set(re.findall(r"`((?:call|core|junction|input|output|inbound|outbound|link|message)_\w+)`", ARCHITECTURE))
    assert len(named) > 10
    assert not named - defined


def test_the_keys_that_no_reload_takes_over_are_those_of_the_code() -> None:
    text = "\n".join(line for _, line in prose(DOCS / "configuration.md"))
    told = re.search(r"<!-- fixed -->(.*?)<!-- end fixed -->", text, re.DOTALL)
    assert told is not None
    listed = re.findall(r"`([\w.]+)`", told[1])
    assert sorted(listed) == sorted(setting.path for setting in SETTINGS if setting.key in FIXED)
