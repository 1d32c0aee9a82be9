"""A directory that a program writes to is made for its user, and one that another may tamper with is not taken."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from skywalker import own_directory
from skywalker.cli.certs import _make as make_certs
from skywalker.errors import ConfigError
from skywalker.journal.header import Origin
from skywalker.journal.settings import JournalSettings
from skywalker.journal.writer import Writer
from skywalker.pipeline.tables.spool import open_spool
from workers.process.command import _check_writable
from workers.setup.identity import StateDirectory, StateError

NOBODY = pwd.getpwnam("nobody")

is_roots = pytest.mark.skipif(os.geteuid() != 0, reason="who is not root cannot make what belongs to somebody else")


def opened_spool(path: Path) -> None:
    open_spool(path).close()


def opened_state(path: Path) -> None:
    state = StateDirectory(path)
    state.open()
    state.close()


USES: dict[str, Callable[[Path], None]] = {
    "spool": opened_spool,
    "state": opened_state,
    "journal": _check_writable,
    "certificates": make_certs,
}

all_uses = pytest.mark.parametrize("use", USES.values(), ids=USES)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory such as /tmp."""
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o1777)
    return directory


@pytest.mark.parametrize("use", [opened_spool, opened_state, make_certs])
def test_it_is_made_for_its_user_alone(shared: Path, use: Callable[[Path], None]) -> None:
    before = os.umask(0)
    try:
        use(shared / "made")
    finally:
        os.umask(before)
    assert (shared / "made").stat().st_mode & 0o7777 == 0o700


@is_roots
@all_uses
def test_one_that_somebody_else_has_made_there_is_refused(shared: Path, use: Callable[[Path], None]) -> None:
    theirs = shared / "theirs"
    theirs.mkdir(0o777)
    os.chown(theirs, NOBODY.pw_uid, NOBODY.pw_gid)
    with pytest.raises((ConfigError, StateError), match=f"it belongs to user {NOBODY.pw_uid}: name a"):
        use(theirs)
    assert not [*theirs.iterdir()]


@is_roots
@all_uses
def test_one_below_a_directory_that_somebody_else_has_made_there_is_refused(
    shared: Path, use: Callable[[Path], None]
) -> None:
    theirs = shared / "theirs"
    theirs.mkdir(0o777)
    (theirs / "ours").mkdir(0o700)
    os.chown(theirs, NOBODY.pw_uid, NOBODY.pw_gid)
    with pytest.raises((ConfigError, StateError), match=f"{theirs} belongs to user {NOBODY.pw_uid}"):
        use(theirs / "ours")
    assert not [*(theirs / "ours").iterdir()]


@is_roots
@all_uses
def test_a_link_that_somebody_else_has_made_is_not_followed(
    shared: Path, tmp_path: Path, use: Callable[[Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(0o700)
    (shared / "link").symlink_to(victim)
    os.chown(shared / "link", NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
    with pytest.raises((ConfigError, StateError), match=r"belongs to user|is a link"):
        use(shared / "link")
    assert not [*victim.iterdir()]


@all_uses
def test_one_that_others_may_write_to_is_refused_with_what_to_do(tmp_path: Path, use: Callable[[Path], None]) -> None:
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises((ConfigError, StateError), match=f"others may write to it: chmod go-w {path}"):
        use(path)
    path.chmod(0o755)
    use(path)


@pytest.mark.parametrize("mode", [0o775, 0o1777])
def test_others_may_add_to_a_journal_and_to_nothing_else(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "groups"
    path.mkdir()
    path.chmod(mode)
    own_directory.check(path, own_directory.SHARED)
    for alone in (own_directory.PUBLIC, own_directory.PRIVATE):
        with pytest.raises(PermissionError, match="others may write to it"):
            own_directory.check(path, alone)


def test_one_that_everybody_may_replace_is_refused(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    with pytest.raises(PermissionError, match=rf"everybody may put another in its place: chmod \+t {loose}"):
        own_directory.make(loose / "a" / "b")
    loose.chmod(0o1777)
    own_directory.make(loose / "a" / "b")


def test_a_link_of_ours_leads_to_a_journal_and_not_to_a_spool(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    _check_writable(tmp_path / "link")
    with pytest.raises(ConfigError, match=r"option 'spool': .*/link is a link: name the directory that it leads to"):
        open_spool(tmp_path / "link")


@is_roots
def test_a_temporary_spool_leaves_alone_what_others_have_made_by_such_a_name(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    theirs = shared / "skywalker-spool-theirs"
    theirs.mkdir()
    (theirs / "kept").write_text("")
    (theirs / "lock").symlink_to(tmp_path / "made")  # by a link that is followed, it would be
    os.chown(theirs, NOBODY.pw_uid, NOBODY.pw_gid)
    (tmp_path / "precious").mkdir(0o700)
    (tmp_path / "precious" / "lock").write_text("")
    (shared / "skywalker-spool-link").symlink_to(tmp_path / "precious")
    os.chown(shared / "skywalker-spool-link", NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
    open_spool(None).close()
    assert (theirs / "kept").exists()
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "precious" / "lock").exists()


@is_roots
def test_a_journal_writes_nothing_where_somebody_else_may_tamper_with_it(shared: Path) -> None:
    theirs = shared / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY.pw_uid, NOBODY.pw_gid)
    said: list[str] = []
    settings = JournalSettings.parse(str(theirs), "1/1", "1MiB/60s", 2**20)
    writer = Writer(settings, Origin("node", "n", "n", 0), lambda event, **fields: said.append(event), print)
    writer.write(bytearray(32), 1)
    writer.close()
    assert said[0] == "journal-stopped"
    assert not [*theirs.iterdir()]
