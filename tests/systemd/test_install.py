"""`skywalker systemd`: what it writes and where, what it refuses to overwrite, and what it says."""

from __future__ import annotations

import errno
import os
import re
import signal
from pathlib import Path

import pytest

from skywalker.cli.systemd.command import CannotWrite, _write
from skywalker.cli.systemd.files import FILES, warnings
from skywalker.cli.systemd.plan import Plan
from tests.cli.running import SKYWALKER, end, run, started_anew

SERVICE = "etc/systemd/system/skywalker.service"
CONFIG = "etc/skywalker/skywalker.toml"


def install(root: Path, *arguments: str, status: int = 0, **variables: str) -> str:
    """Run it, and return what it printed, on both streams."""
    ran = run("systemd", "install", "--root", str(root), *arguments, **variables)
    assert ran.returncode == status, ran.stderr.decode()
    return (ran.stdout + ran.stderr).decode()


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def fake_systemctl(directory: Path, version: int) -> str:
    """Return a PATH on which systemd has this version."""
    program = directory / "systemctl"
    program.write_text(f"#!/bin/sh\necho 'systemd {version} ({version}.1-2~deb13u1)'\n")
    program.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"


def test_it_writes_all_files_says_so_and_starts_nothing(tmp_path: Path) -> None:
    said = install(tmp_path)
    assert contents(tmp_path).keys() == {file.path.lstrip("/") for file in FILES}
    for file in FILES:
        assert re.search(rf"^write +{re.escape(str(tmp_path) + file.path)}$", said, re.MULTILINE)
    for command in (
        "systemd-sysusers",
        "systemd-tmpfiles --create",
        "daemon-reload",
        "enable --now",
        "skywalker check",
    ):
        assert command in said
    assert f"ExecStart={SKYWALKER} serve --config /etc/skywalker/skywalker.toml\n" in contents(tmp_path)[SERVICE]


def test_who_reads_no_more_of_what_it_says_gets_all_files(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with started_anew("systemd", "install", "--root", str(tmp_path), pipes={"stdout": writer}) as installing:
        os.close(writer)
        assert (end(installing), installing.stderr and installing.stderr.read()) == (-signal.SIGPIPE, b"")
    assert contents(tmp_path).keys() == {file.path.lstrip("/") for file in FILES}


def test_it_says_what_it_would_write_and_writes_nothing(tmp_path: Path) -> None:
    assert install(tmp_path, "--dry-run").count("would write") == len(FILES)
    assert not contents(tmp_path)


def test_a_second_time_it_keeps_everything(tmp_path: Path) -> None:
    install(tmp_path)
    before = contents(tmp_path)
    said = install(tmp_path)
    assert len(re.findall(r"^keep ", said, re.MULTILINE)) == len(FILES)
    assert contents(tmp_path) == before


def test_a_changed_file_is_overwritten_only_if_forced_and_then_kept_beside(tmp_path: Path) -> None:
    install(tmp_path)
    before = contents(tmp_path)
    (tmp_path / SERVICE).write_text("mine")
    (tmp_path / "etc/tmpfiles.d/skywalker.conf").unlink()
    said = install(tmp_path, status=1)
    assert re.search(rf"^leave +{re.escape(str(tmp_path / SERVICE))}$", said, re.MULTILINE)
    assert re.search(rf"^skywalker: {re.escape(str(tmp_path / SERVICE))}: .*--force", said, re.MULTILINE)
    assert contents(tmp_path) == before | {SERVICE: "mine"}, "the others are not as they should be"
    assert "would overwrite" in install(tmp_path, "--dry-run")
    assert contents(tmp_path)[SERVICE] == "mine"
    assert "overwrite" in install(tmp_path, "--force")
    assert contents(tmp_path) == before | {f"{SERVICE}.old": "mine"}


def test_there_is_a_file_at_every_moment_while_it_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path)
    unit = tmp_path / SERVICE
    unit.write_text("mine")
    before = contents(tmp_path)
    targets = []

    def full_disk(source: Path, target: Path) -> None:
        targets.append(target)
        assert unit.read_text() == "mine"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(CannotWrite, match="No space left"):
        _write(unit, "new")
    assert targets == [unit]
    assert contents(tmp_path) == before | {f"{SERVICE}.old": "mine"}


def test_settings_are_never_overwritten(tmp_path: Path) -> None:
    for name in (CONFIG, "etc/skywalker/skywalker.env"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# mine\n")
        install(tmp_path, "--force")
        assert path.read_text() == "# mine\n"


def test_units_follow_the_settings_that_are_there(tmp_path: Path) -> None:
    config = tmp_path / CONFIG
    config.parent.mkdir(parents=True)
    config.write_text(
        'bind = "::1"\nport = 5000\npubsub_bind = "0.0.0.0:5001"\nworkers = 3\nbacklog = 77\n'
        "drain_timeout_s = 90.5\nwatchdog_s = 20\n"
    )
    install(tmp_path)
    found = contents(tmp_path)
    service = found[SERVICE]
    assert "\nTimeoutStopSec=101s\n" in service
    assert "\nWatchdogSec=60s\n" in service
    assert found["etc/systemd/system/skywalker.socket"].count("ListenStream=[::1]:5000\n") == 3
    assert found["etc/systemd/system/skywalker-pubsub.socket"].count("ListenStream=0.0.0.0:5001\n") == 3
    assert found["etc/systemd/system/skywalker.socket"].count("Backlog=77\n") == 1


@pytest.mark.parametrize(("text", "said"), [("prot = 1", "did you mean 'port'"), ("port = 0", "port: a service needs")])
def test_settings_that_no_service_can_have_are_told(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / CONFIG
    config.parent.mkdir(parents=True)
    config.write_text(text)
    assert said in install(tmp_path, status=2)
    assert [*contents(tmp_path)] == [CONFIG]


def test_the_user_is_the_one_that_is_named(tmp_path: Path) -> None:
    install(tmp_path, "--user", "bus")
    found = contents(tmp_path)
    assert "\nUser=bus\nGroup=bus\n" in found[SERVICE]
    assert found["etc/sysusers.d/skywalker.conf"].startswith("u bus ")
    assert "0750 root bus\n" in found["etc/tmpfiles.d/skywalker.conf"]
    for name in ("", "Root", "a b", "x\n", "-x", "x" * 32):
        assert "cannot name a system user" in install(tmp_path, f"--user={name}", status=2)


@pytest.mark.parametrize(("version", "reloads"), [(247, False), (252, False), (253, True), (257, True)])
def test_a_reload_is_announced_by_the_service_where_systemd_knows_that(
    tmp_path: Path, version: int, reloads: bool
) -> None:
    (tmp_path / "bin").mkdir()
    install(tmp_path / "root", PATH=fake_systemctl(tmp_path / "bin", version))
    service = contents(tmp_path / "root")[SERVICE]
    assert ("\nType=notify-reload\n" in service) == reloads
    assert ("\nExecReload=/bin/kill -HUP $MAINPID\n" in service) != reloads


def test_show_prints_a_file_for_this_machine(tmp_path: Path) -> None:
    install(tmp_path)
    for file in FILES:
        ran = run("systemd", "show", file.name)
        assert ran.stdout.decode() == contents(tmp_path)[file.path.lstrip("/")]
    unknown = run("systemd", "show", "skywalker.timer")
    assert unknown.returncode == 2
    assert b"skywalker.socket" in unknown.stderr


def test_what_would_keep_the_service_from_starting_is_said() -> None:
    temporary, closed = warnings(Plan(executable="/tmp/x/bin/skywalker"), [Path("/root")])
    assert "temporary files" in temporary
    assert "/root lets in its owner only" in closed
    assert not [*warnings(Plan(), [])]
