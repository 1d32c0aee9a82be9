"""Who a node is to its machine: one that root has started becomes another user for good, or does not start."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import skywalker
from skywalker.cli.systemd.plan import closed_directories
from skywalker.config import load
from skywalker.errors import ConfigError
from tests.authority import Authority
from tests.helpers import eventually, time_factor
from tests.systemd.machine import NEEDED
from tests.workers.processes import Node, is_gone, node
from workers.ipc import exits
from workers.setup import exposure, privileges

NOBODY = pwd.getpwnam("nobody")

is_roots = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="who is not root cannot become somebody else"
)


def reachable() -> list[str]:
    """Return a command that runs another where every user gets through to this Python, and to this code."""
    steps = ["mount -t tmpfs -o mode=755 tmpfs /mnt"]
    for number, directory in enumerate(closed_directories()):
        kept, inside = f"/mnt/{number}", [path for path in NEEDED if path.is_relative_to(directory)]
        steps.append(f"mkdir {kept} && mount --bind {directory} {kept} && mount -t tmpfs -o mode=755 tmpfs {directory}")
        for path in inside:
            at, was = shlex.quote(str(path)), shlex.quote(f"{kept}/{path.relative_to(directory)}")
            steps.append(f"mkdir -p {at} && mount --bind {was} {at}")
    steps.append('exec "$@"')
    return ["unshare", "--mount", "sh", "-euc", "\n".join(steps), "sh"]


SERVE = (sys.executable, "-m", "workers")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that is nobody's, where that user can get to."""
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, NOBODY.pw_uid, NOBODY.pw_gid)
        yield Path(directory)


def refused(*arguments: str, command: tuple[str, ...] = SERVE, user: str = "") -> str:
    """Run a node that does not start for a wrong setting, and return the one line that it says."""
    environment = {**os.environ, "SKYWALKER_USER": user}
    ran = subprocess.run(
        [*command, "--port=0", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=20 * time_factor(),
        check=False,
    )
    assert (ran.returncode, ran.stderr.count("\n")) == (exits.USAGE, 1), ran.stderr
    return ran.stderr


def status(pid: int, name: str) -> str:
    """Return one line of what the kernel tells of a process."""
    found = re.search(rf"^{name}:\s*(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.contextmanager
def nobodys(place: Path, *settings: str) -> Iterator[Node]:
    """Run a node that root starts, and that becomes nobody."""
    flags = ["--user=nobody", f"--state-dir={place}/state", *settings]
    with node(command=[*reachable(), *SERVE], settings=flags) as found:
        yield found


# Who does not start.


@is_roots
def test_root_is_told_to_say_whom_to_become_where_others_get_and_nothing_is_made(tmp_path: Path) -> None:
    said = refused("--open", "--bind=0.0.0.0", f"--state-dir={tmp_path}/state", f"--journal={tmp_path}/journal")
    assert "--user NAME" in said
    assert "--user root" in said
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("door", ["bind", "pubsub_bind", "admin_bind", "silk"])
def test_others_get_to_whatever_is_not_on_loopback(door: str) -> None:
    assert exposure.is_local(load({door: "127.0.0.1:3444" if door == "silk" else "127.0.0.1"}))
    assert not exposure.is_local(load({door: "0.0.0.0:3444" if door == "silk" else "0.0.0.0"}))


def test_who_is_not_root_needs_no_user_and_may_give_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY.pw_uid)
    assert privileges.heir("") is None
    assert privileges.heir("nobody") is None
    with pytest.raises(ConfigError, match="only root can become root"):
        privileges.heir("root")
    with pytest.raises(ConfigError, match="there is no user 'no-such-user'"):
        privileges.heir("no-such-user")


@is_roots
def test_a_file_that_the_user_may_not_read_keeps_it_from_starting(place: Path) -> None:
    """Or the first reload would be refused: it is the user who reads files then."""
    file = place / "node.toml"
    cert, key = Authority(place).sign("localhost")
    Path(key).chmod(0o600)
    file.write_text(f'tls_cert = "{cert}"\ntls_key = "{key}"\n')
    said = refused(f"--config={file}", command=(*reachable(), *SERVE), user="nobody")
    assert f"{key}, which holds the key of a certificate, cannot be read: Permission denied" in said
    assert "have that user or its group read them" in said
    file.write_text('user = "nobody"\n')
    file.chmod(0o600)
    said = refused(f"--config={file}", command=(*reachable(), *SERVE), user="nobody")
    assert f"{file}: cannot be read: Permission denied" in said


@is_roots
def test_a_journal_that_the_user_may_not_write_keeps_it_from_starting(place: Path) -> None:
    place.chmod(0o755)
    os.chown(place, 0, 0)
    said = refused("--user=nobody", f"--journal={place}/journal", command=(*reachable(), *SERVE))
    assert "journal: cannot write" in said
    assert f"user {NOBODY.pw_uid}" in said
    assert not [*place.iterdir()]


# Who does, and what is left of root.


def undecided(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, *before: str
) -> contextlib.AbstractContextManager[Node]:
    """Run a node that root starts, and that is not told whom to become."""
    monkeypatch.delenv("SKYWALKER_USER")
    return node(command=[*before, *SERVE], settings=["--workers=1", *flags])


@is_roots
def test_root_on_loopback_that_says_nothing_becomes_nobody_with_a_warning(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/root/state")  # where nobody can make anything
    flags = [f"--port={low_port()}", f"--journal={place}/journal", "--log-level=error"]
    with undecided(flags, monkeypatch, *reachable()) as found:
        assert [event["user"] for event in found.events("leaves-root")] == ["nobody"]
        for pid in (found.pid, *children(found.pid)):
            assert status(pid, "Uid").split() == [str(NOBODY.pw_uid)] * 4
        with skywalker.connect(f"127.0.0.1:{found.port}") as client:
            client.ping()


@is_roots
def test_root_stays_that_with_the_journal_that_nobody_could_make_but_not_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as everybodys:
        os.chmod(everybodys, 0o1777)
        journal = Path(everybodys, "new", "journal")
        flags = [f"--journal={journal}", f"--state-dir={tmp_path}/state"]
        with undecided(flags, monkeypatch, *reachable()) as found:
            [event] = found.events("stays-root")
            assert "state" in event["reason"]
            assert {path.stat().st_uid for path in (journal, journal.parent)} == {0}


@is_roots
def test_a_trial_that_is_killed_has_failed() -> None:
    program = """
import os, pwd, signal
from skywalker.errors import ConfigError
from workers.setup import privileges
try:
    privileges.trial(pwd.getpwnam("nobody"), lambda: os.kill(os.getpid(), signal.SIGKILL))
except ConfigError as error:
    print(error)
"""
    assert as_root(program) == "it was killed when it tried\n"


@is_roots
def test_every_process_is_the_users_and_none_has_anything_left_of_root(place: Path) -> None:
    with nobodys(place, f"--journal={place}/journal", "--join=127.0.0.1:1") as found:
        eventually(lambda: len(children(found.pid)) == 3)  # two workers and the agent
        for pid in (found.pid, *children(found.pid)):
            assert status(pid, "Uid").split() == [str(NOBODY.pw_uid)] * 4
            assert status(pid, "Gid").split() == [str(NOBODY.pw_gid)] * 4
            assert "0" not in status(pid, "Groups").split()
            for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                assert int(status(pid, kind), 16) == 0, kind
            assert status(pid, "NoNewPrivs") == "1"
            limits = Path(f"/proc/{pid}/limits").read_text()
            told = re.search(r"^Max core file size +(\d+) +(\d+)", limits, re.MULTILINE)
            assert told is not None, limits
            assert {*told.groups()} <= {"0", "1"}, "and may not dump core"
        made = [place / "state", *place.glob("state/*"), place / "journal", *place.glob("journal/*")]
        assert len(made) >= 4
        assert {path.stat().st_uid for path in made} == {NOBODY.pw_uid}


@is_roots
def test_it_listens_where_only_root_may_and_goes_on_there_after_a_death_and_a_reload(
    place: Path, tmp_path: Path
) -> None:
    port, door = low_port(), tmp_path / "door"  # in a directory of root's
    with nobodys(place, f"--port={port}", f"--unix={door}") as found:
        assert found.port == port
        with skywalker.connect(f"unix://{door}") as client:
            assert client.hello()["node"]
        first = found.workers()
        os.kill(first[0], signal.SIGKILL)
        second = found.wait_for_workers(2, without=first[:1])
        found.signal(signal.SIGHUP)
        eventually(lambda: found.events("reloaded"), within=20.0)
        found.wait_for_workers(2, without=second)
        assert [found.connect_to(slot).answer(":ping") for slot in (0, 1)]
        assert status(found.workers()[0], "Uid").split()[0] == str(NOBODY.pw_uid)
        found.signal(signal.SIGTERM)
        assert found.wait(10.0) == exits.OK
        assert is_gone(found.pid)


def low_port() -> int:
    """Return a free port below 1024."""
    for port in range(1023, 600, -1):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("there is no free port below 1024")


@is_roots
def test_its_state_is_kept_below_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    program = """
import os, pwd
from workers.setup import privileges
from skywalker.state_path import usual_state_path
privileges.become(pwd.getpwnam("nobody"))
print(usual_state_path("127.0.0.1", 7), os.environ["USER"])
"""
    assert as_root(program) == "None nobody\n", "who has no home"
    program = program.replace("print(", "os.environ['HOME'] = '/home/x'; print(")
    assert as_root(program) == "/home/x/.local/state/skywalker/7 nobody\n"


@is_roots
def test_there_is_no_way_back() -> None:
    program = """
import os, pwd
from workers.setup import privileges
privileges.become(pwd.getpwnam("nobody"))
for back in (os.setuid, os.seteuid, os.setgid, os.setegid):
    try:
        back(0)
    except PermissionError:
        print("no", end=" ")
"""
    assert as_root(program) == "no no no no "


BECOME = """
import pwd
from skywalker.errors import ConfigError
from workers.setup import privileges
try:
    privileges.become(pwd.getpwnam("nobody"))
except ConfigError as error:
    print(error)
"""


@is_roots
def test_rights_that_would_stay_are_noticed() -> None:
    """SECBIT_NO_SETUID_FIXUP has the kernel leave capabilities to who is no longer root."""
    securebits = "import ctypes; assert ctypes.CDLL(None).prctl(28, 4, 0, 0, 0) == 0"
    assert "keeps some of what root may do" in as_root(f"{securebits}\n{BECOME}")


@is_roots
def test_root_that_may_not_empty_its_bounding_set_is_told() -> None:
    said = as_root(BECOME, "setpriv", "--bounding-set=-setpcap", "--inh-caps=-setpcap")
    assert "may not give up capabilities for good here" in said
    assert "CAP_SETPCAP" in said


@is_roots
def test_code_that_the_user_may_not_read_is_told_before_it_is_missed(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden.py"
    hidden.write_text("")
    hidden.chmod(0o600)
    moved = f"from workers.setup import privileges; privileges.__file__ = {str(hidden)!r}"
    assert f"nobody may not read {hidden}" in as_root(f"{moved}\n{BECOME}")


def as_root(program: str, *command: str) -> str:
    """Run a program, by a command perhaps, and return what it prints."""
    ran = subprocess.run(
        [*reachable(), *command, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=20 * time_factor(),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


# Core dumps.


def test_what_crashes_leaves_no_core(tmp_path: Path) -> None:
    program = """
import os, resource
from workers.setup import privileges
_, hard = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
privileges.forbid_core_dumps()
os.abort()
"""
    paths = {"PYTHONPATH": str(Path(privileges.__file__).parent.parent)}
    ran = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=os.environ | paths)
    _, ended = os.waitpid(ran.pid, 0)
    ran.returncode = 0  # it is waited for
    assert os.WTERMSIG(ended) == signal.SIGABRT
    assert not os.WCOREDUMP(ended)
    assert not [*tmp_path.iterdir()]
