"""What the page on operations says that the code decides."""

from __future__ import annotations

import re
from pathlib import Path

from skywalker.cli.systemd.files import FILES
from skywalker.config import BY_KEY
from skywalker.limits import DEFAULT_ADMIN_PORT
from tests.systemd.test_monitoring import DASHBOARD, RULES
from workers.process.reload import FIXED

TEXT = (Path(__file__).parent.parent.parent / "docs/operations.md").read_text()


def test_it_names_the_keys_that_are_not_reloaded() -> None:
    named = re.search(r"<!-- fixed -->(.*)<!-- end fixed -->", TEXT, re.DOTALL)
    assert named
    assert sorted(re.findall(r"`([\w.]+)`", named[1])) == sorted(BY_KEY[key].path for key in FIXED)


def test_it_lists_what_is_installed() -> None:
    rows = "\n".join(line for line in TEXT.splitlines() if line.startswith("| `/etc/"))
    named = set(re.findall(r"`([\w@./-]+\.\w+)`", rows))
    assert named == {file.path for file in FILES} - {"/etc/systemd/system/skywalker-pubsub.socket"} | {
        "skywalker-pubsub.socket"
    }


def test_every_directive_and_setting_it_names_is_known() -> None:
    directives = set(re.findall(r"`([A-Z]\w+)=", TEXT))
    written = "".join((RULES.parent / f"skywalker.{kind}").read_text() for kind in ("service", "socket"))
    other = {"CPUQuota", "DynamicUser", "LimitAS", "ReadWritePaths", "MemoryHigh", "MemoryMax", "MemorySwapMax"}
    assert {each for each in directives if f"\n{each}=" not in written} == other
    assert f"http://127.0.0.1:{DEFAULT_ADMIN_PORT}" in TEXT
    for path in (RULES, DASHBOARD):
        assert f"`systemd/{path.name}`" in TEXT
