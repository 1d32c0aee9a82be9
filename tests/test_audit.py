"""What skywalker loads when it runs: each package has a reason, and an audit does not take silence for good news."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.metadata import requires
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
REASONS: dict[str, dict[str, str]] = tomllib.loads((ROOT / "requirements" / "reasons.toml").read_text())
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

NOT_AT_RUN_TIME = {"audit", "bench", "build", "dev", "fuzz", "lint", "peers", "test"}


def needed(wanted: list[str]) -> set[str]:
    """Return the names of these packages, and of all that they need with this Python."""
    found: set[str] = set()
    todo = [(Requirement(each), "") for each in wanted]
    while todo:
        requirement, extra = todo.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name in found and not requirement.extras:
            continue
        found.add(name)
        todo += [(Requirement(each), one) for each in requires(name) or [] for one in ("", *requirement.extras)]
    return found


def test_every_extra_that_is_for_running_has_its_reasons() -> None:
    assert set(REASONS) == {"always", *(EXTRAS.keys() - NOT_AT_RUN_TIME)}


@pytest.mark.parametrize("extra", REASONS)
def test_every_package_that_is_asked_for_has_a_reason_and_no_other_has(extra: str) -> None:
    told = {name for table in REASONS.values() for name in table}
    wanted = needed(PROJECT["dependencies"] if extra == "always" else EXTRAS[extra])
    assert wanted <= told
    # Some are needed with some versions of Python only, and say so.
    assert {name for name, why in REASONS[extra].items() if "with Python" not in why} <= wanted


def test_all_of_them_are_locked(audit: ModuleType) -> None:
    assert {name for table in REASONS.values() for name in table} <= audit.locked().keys()


# The script.


@pytest.fixture
def audit() -> ModuleType:
    loader = SourceFileLoader("audit", str(ROOT / ".ci" / "audit"))
    spec = importlib.util.spec_from_loader("audit", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module


def played(audit: ModuleType, tmp_path: Path, answer: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run the audit with a pip-audit that answers so to whatever it is asked."""
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    program.chmod(0o755)
    (tmp_path / "lock").write_text("".join(f"{name}==1.0\n" for table in REASONS.values() for name in table))
    audit.pip_audit = lambda: [str(program)]
    audit.LOCK = tmp_path / "lock"
    status = audit.main()
    return status, capsys.readouterr().out


def answered(**of: list[dict[str, Any]]) -> str:
    names = [name for table in REASONS.values() for name in table]
    known = [{"name": name, "version": "1.0", "vulns": of.get(name, [])} for name in names if name != "mmh3"]
    skipped = [{"name": "mmh3", "skip_reason": "Dependency not found on PyPI and could not be audited: mmh3 (1.0)"}]
    return json.dumps({"dependencies": [*known, *skipped], "fixes": []})


def test_what_is_known_to_be_good_is_not_listed_and_what_is_skipped_is(
    audit: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It skips what its source has never heard of, says so in a corner, and ends with status 0."""
    status, said = played(audit, tmp_path, answered(), capsys)
    assert status == 0
    assert "mmh3 1.0" in said
    assert "msgpack" not in said
    assert said.endswith(" packages looked up, 0 holes known\n")


def test_a_hole_is_told_and_fails(audit: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hole = {"id": "PYSEC-1", "fix_versions": ["1.1", "2.0"], "aliases": [], "description": ""}
    status, said = played(audit, tmp_path, answered(h11=[hole]), capsys)
    assert status == 1
    assert "h11 1.0: PYSEC-1, mended in 1.1, 2.0\n" in said


def test_where_nothing_can_be_asked_everything_is_listed_with_its_reason(
    audit: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = played(audit, tmp_path, "ERROR: cannot be reached", capsys)
    assert status == 0
    for extra, table in REASONS.items():
        for name, why in table.items():
            assert re.search(rf"^{extra} +{re.escape(name)} 1\.0 +{re.escape(why)}$", said, re.MULTILINE)
    assert "0 of " in said


@pytest.mark.parametrize("lock", sorted(path.name for path in (ROOT / "requirements").glob("*.txt")))
def test_every_package_of_a_lock_is_one_version_and_has_hashes_of_its_files(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) >= 5
    for line in lines:
        assert re.fullmatch(r"[\w.-]+==[\w.]+(\s+--hash=sha256:[0-9a-f]{64})+", line), line[:80]


def test_what_is_installed_from_a_lock_must_have_a_hash_that_is_in_it() -> None:
    recipe = (ROOT / "Makefile").read_text()
    locked = re.search(r"^LOCKED := (.*)$", recipe, re.MULTILINE)
    assert locked is not None
    assert "--require-hashes" in locked[1]
    installs = [line for line in recipe.splitlines() if "--requirement" in line]
    assert installs
    assert all("$(LOCKED)" in line for line in installs)
    # The project itself is what is here, and takes nothing that it needs from anywhere.
    assert "install --quiet --no-deps --no-build-isolation --editable ." in recipe
