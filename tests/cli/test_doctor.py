"""`skywalker doctor`: each check on a machine that is made up, and the command on the real one."""

from __future__ import annotations

import dataclasses
import json
import os
import pwd
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skywalker import build, config, extras
from skywalker.cli.doctor import checks, command
from skywalker.cli.doctor import machine as machines
from skywalker.cli.doctor.finding import Finding
from skywalker.cli.doctor.machine import Machine
from skywalker.config import Config
from skywalker.embedding import embedded
from skywalker.limits import MIB
from skywalker.tls.authority import Authority
from tests.cli.running import run
from tests.cli.told_admin import told_admin
from tests.helpers import time_factor


def settings(**flags: object) -> Config:
    return config.load({key: str(value) for key, value in flags.items()})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with 4 cores on which all is well, and nothing runs."""
    monkeypatch.setattr(Machine, "is_bound", lambda *_: False)  # what is here is another machine
    files = {
        "sys/net/core/somaxconn": "4096\n",
        "sys/net/ipv4/tcp_max_syn_backlog": "4096\n",
        "sys/fs/file-max": "9223372036854775807\n",
        "meminfo": "MemTotal:       16000000 kB\nMemFree:  1 kB\n",
        "self/limits": limits(1024, 524_288),
        "net/tcp": TCP_HEAD,
        "net/tcp6": TCP_HEAD,
    }
    for name, text in files.items():
        write(tmp_path, name, text)
    return Machine(tmp_path, cores=4, kernel="6.1.0-18-amd64")


TCP_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def write(proc: Path, name: str, text: str) -> None:
    (proc / name).parent.mkdir(parents=True, exist_ok=True)
    (proc / name).write_text(text)


def limits(soft: int | str, hard: int | str, address_space: int | str = "unlimited") -> str:
    return (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max cpu time              unlimited            unlimited            seconds   \n"
        f"Max open files            {soft:<20} {hard:<20} files     \n"
        f"Max address space         {address_space:<20} unlimited            bytes     \n"
    )


def listen(machine: Machine, address: str, inode: int, user: int = 0, state: str = "0A") -> None:
    """Add a line to the table of TCP sockets; `address` is in its hexadecimal form."""
    file = machine.proc / "net" / ("tcp" if len(address) == 13 else "tcp6")
    queues = "00000000:00000000 00:00000000 00000000"
    row = f"   0: {address} 00000000:0000 {state} {queues}  {user:>4}        0 {inode} 1 0\n"
    file.write_text(file.read_text() + row)


def process(machine: Machine, pid: int, name: str, *inodes: int, parent: int = 1, user: int = 0) -> None:
    write(machine.proc, f"{pid}/comm", f"{name}\n")
    write(machine.proc, f"{pid}/status", f"Name:\t{name}\nUid:\t{user}\t{user}\t{user}\t{user}\n")
    write(machine.proc, f"{pid}/stat", f"{pid} ({name}) S {parent} 0\n")
    (machine.proc / str(pid) / "fd").mkdir()
    for fd, inode in enumerate(inodes):
        (machine.proc / str(pid) / "fd" / str(fd)).symlink_to(f"socket:[{inode}]")


def one(found: Iterator[Finding]) -> Finding:
    (finding,) = found
    return finding


# Room.


def test_a_machine_where_all_is_well_has_nothing_to_change(machine: Machine) -> None:
    for check in (checks.open_files, checks.accept_queue, checks.syn_queue, checks.memory, checks.ports, checks.kernel):
        for finding in check(Config(), machine):
            assert (finding.level, finding.advice) == ("ok", "")


def test_too_few_open_files_are_told_with_the_number_that_is_needed(machine: Machine) -> None:
    write(machine.proc, "self/limits", limits(1024, 4096))
    finding = one(checks.open_files(Config(), machine))
    assert (finding.level, finding.advice.split()[0]) == ("fail", "LimitNOFILE=10068")
    assert "of this shell" in finding.found
    write(machine.proc, "self/limits", limits(1024, 8192))
    assert one(checks.open_files(Config(), machine)).level == "warn"
    assert one(checks.open_files(settings(max_connections=8000, workers=1), machine)).level == "ok"
    write(machine.proc, "self/limits", limits("unlimited", "unlimited"))
    assert one(checks.open_files(Config(), machine)).level == "ok"


def test_the_limit_of_a_node_that_runs_counts_and_not_that_of_the_shell(machine: Machine) -> None:
    listen(machine, "0100007F:0D73", 70)
    process(machine, 500, "skywalker:3443", 70)
    write(machine.proc, "500/limits", limits(100, 200))
    finding = one(checks.open_files(Config(), machine))
    assert finding.level == "fail"
    assert "of the node that runs, process 500" in finding.found


def test_all_workers_together_must_get_their_files(machine: Machine) -> None:
    write(machine.proc, "sys/fs/file-max", "40000\n")
    finding = list(checks.open_files(Config(), machine))[1]
    assert (finding.name, finding.level, finding.advice) == ("files in all", "warn", "sysctl -w fs.file-max=80544")


@pytest.mark.parametrize(
    ("check", "file", "key"),
    [
        (checks.accept_queue, "sys/net/core/somaxconn", "net.core.somaxconn"),
        (checks.syn_queue, "sys/net/ipv4/tcp_max_syn_backlog", "net.ipv4.tcp_max_syn_backlog"),
    ],
)
def test_a_queue_of_connections_that_the_kernel_cuts_off_is_told(
    machine: Machine, check: command.Check, file: str, key: str
) -> None:
    write(machine.proc, file, "1023\n")
    finding = one(check(Config(), machine))
    assert (finding.level, finding.advice.split(",")[0]) == ("warn", f"sysctl -w {key}=1024")
    assert one(check(settings(backlog=1023), machine)).level == "ok"


def test_memory_that_waiting_calls_could_fill_is_told(machine: Machine) -> None:
    write(machine.proc, "meminfo", f"MemTotal: {4 * 128 * 1024} kB\n")
    finding = one(checks.memory(Config(), machine))
    assert finding.level == "warn"
    assert "512 MiB in 4 workers, of 512 MiB" in finding.found
    assert "102 MiB" in finding.advice
    assert one(checks.memory(settings(workers=3), machine)).level == "ok"


def test_a_control_group_may_have_less_than_the_machine(machine: Machine, tmp_path: Path) -> None:
    write(machine.proc, "self/cgroup", "4:cpu,memory:/a/b\n0::/c/d\n")
    inside = dataclasses.replace(machine, cgroups=tmp_path / "cgroup")
    for name, text in {
        "c/d/memory.max": "max\n",
        "c/memory.max": f"{512 * MIB}\n",
        "memory/a/memory.limit_in_bytes": "9223372036854771712\n",
    }.items():
        write(inside.cgroups, name, text)
    finding = one(checks.memory(Config(), inside))
    assert (finding.level, "of 512 MiB that the control group may have" in finding.found) == ("warn", True)
    write(inside.cgroups, "memory/a/b/memory.limit_in_bytes", f"{256 * MIB}\n")
    assert "of 256 MiB" in one(checks.memory(Config(), inside)).found


def test_a_process_that_may_not_have_what_a_worker_may_hold_is_told(machine: Machine) -> None:
    assert not [*checks.address_space(Config(), machine)]
    write(machine.proc, "self/limits", limits(1024, 524_288, 200 * MIB))
    finding = one(checks.address_space(settings(workers=1), machine))
    assert (finding.level, finding.advice.split(",")[0]) == ("fail", "waiting_bytes of at most 85MiB")
    assert one(checks.address_space(settings(workers=1, waiting_bytes="85MiB"), machine)).level == "ok"
    assert "more, by ulimit -v" in one(checks.address_space(settings(workers=10), machine)).advice


def test_a_machine_that_tells_nothing_is_no_crash(tmp_path: Path) -> None:
    bare = Machine(tmp_path, cores=1, kernel="unknown")
    for check in (checks.open_files, checks.accept_queue, checks.syn_queue, checks.memory, checks.ports, checks.kernel):
        assert {finding.level for finding in check(Config(), bare)} == {"warn"}


# Ports.


def by_name(config: Config, machine: Machine) -> dict[str, Finding]:
    return {finding.name: finding for finding in checks.ports(config, machine)}


TAKEN = "127.0.0.1 port 3443 is taken by nginx, process 812 of user root"


def test_a_port_that_another_program_has_fails_and_names_the_program(machine: Machine) -> None:
    listen(machine, "0100007F:0D73", 91)  # 127.0.0.1:3443
    process(machine, 812, "nginx", 90, 91)
    process(machine, 813, "nginx", 91, parent=812)
    found = by_name(Config(), machine)
    assert (found["port"].level, found["port"].found) == ("fail", TAKEN)
    assert found["admin_port"].level == "ok"


@pytest.mark.parametrize(
    ("address", "state", "level"),
    [
        ("00000000:0D73", "0A", "fail"),  # all addresses
        ("00000000000000000000000000000000:0D73", "0A", "fail"),
        ("0200007F:0D73", "0A", "ok"),  # another address
        ("0100007F:0D74", "0A", "ok"),  # another port
        ("0100007F:0D73", "01", "ok"),  # a connection
        ("00000000000000000000000001000000:0D73", "0A", "ok"),  # [::1]
    ],
)
def test_who_listens_there_or_on_all_addresses_is_in_the_way(
    machine: Machine, address: str, state: str, level: str
) -> None:
    listen(machine, address, 91, state=state)
    process(machine, 812, "nginx", 91)
    assert by_name(Config(), machine)["port"].level == level


def test_of_a_process_that_may_not_be_seen_the_user_is_named(machine: Machine) -> None:
    listen(machine, "0100007F:0D73", 91, user=4321)
    finding = by_name(Config(), machine)["port"]
    assert finding.level == "fail"
    assert "a process of user 4321, and only root can tell which" in finding.found
    process(machine, 499, "skywalker:3443", user=4322)
    process(machine, 498, "skywalker:3444", user=4321)
    assert by_name(Config(), machine)["port"].level == "fail", "those are other nodes"
    process(machine, 500, "skywalker:3443", user=4321)
    finding = by_name(Config(), machine)["port"]
    assert finding.level == "ok"
    assert "it may well be this node, skywalker:3443, process 500 of user 4321" in finding.found


def test_a_port_of_the_node_itself_is_well_whoever_else_has_it_open(machine: Machine) -> None:
    listen(machine, "0100007F:0D73", 91)
    listen(machine, "0100007F:0D98", 92)  # its admin server's
    process(machine, 1, "systemd", 91, parent=0)
    process(machine, 500, "skywalker:3443", 91, 92, user=1000)
    process(machine, 501, "skywalker-0", 91, parent=500, user=1000)
    assert {finding.level for finding in by_name(Config(), machine).values()} == {"ok"}
    other = by_name(settings(port=3480, admin_port=3999), machine)["port"]
    assert other.level == "fail", "another node's port is taken"


def test_a_port_that_somebody_has_bound_without_listening_is_taken() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        finding = by_name(settings(port=bound.getsockname()[1]), Machine())["port"]
    assert finding.level == "fail"
    assert "taken by a program that has bound it, and does not listen there" in finding.found


def test_a_port_that_systemd_holds_for_a_unit_is_well(machine: Machine) -> None:
    listen(machine, "0100007F:0D73", 91)
    process(machine, 1, "systemd", 91, parent=0)
    assert "for a socket unit" in by_name(Config(), machine)["port"].found


def test_every_port_that_is_configured_is_looked_at(machine: Machine) -> None:
    everything = settings(pubsub="true", health_port=8080, silk="0.0.0.0:3444", admin_port=9000)
    assert set(by_name(everything, machine)) == {"port", "pubsub_port", "health_port", "silk", "admin_port"}
    assert set(by_name(settings(port=0, admin="false"), machine)) == set()


# What is installed.


@pytest.mark.parametrize(
    ("release", "level"), [("4.5.9", "warn"), ("4.6.0", "ok"), ("6.18.44-x", "ok"), ("10.1", "ok"), ("?", "warn")]
)
def test_a_kernel_that_cannot_steer_is_told(machine: Machine, release: str, level: str) -> None:
    assert one(checks.kernel(Config(), Machine(machine.proc, kernel=release))).level == level


@pytest.mark.parametrize(
    ("compiled", "assertions", "told"),
    [
        (True, False, ("ok", "compiled")),
        (True, True, ("ok", "compiled, with assertions")),
        (False, True, ("fail", "plain Python, with assertions")),
    ],
)
def test_how_the_hot_modules_were_built_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, compiled: bool, assertions: bool, told: tuple[str, str]
) -> None:
    monkeypatch.setattr(build, "COMPILED", compiled)
    monkeypatch.setattr(build, "ASSERTIONS", assertions)
    finding = one(checks.compiled(Config(), machine))
    assert (finding.level, finding.found) == told


def test_an_admin_server_whose_packages_are_missing_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "ADMIN", ("json", "no_such_package"))
    finding = one(checks.admin(Config(), machine))
    assert (finding.level, finding.found) == ("warn", "lacks no_such_package")
    assert not list(checks.admin(settings(admin="false"), machine))


# What is around.


@pytest.mark.parametrize(("told", "level"), [(True, "ok"), (False, "warn"), (None, "warn")])
def test_the_clock_is_as_the_kernel_says(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, told: bool | None, level: str
) -> None:
    monkeypatch.setattr(Machine, "clock_is_synchronised", lambda self: told)
    assert one(checks.clock(Config(), machine)).level == level


@pytest.mark.parametrize(("days", "level"), [(30, "ok"), (3, "warn"), (0, "fail")])
def test_a_certificate_is_judged_by_the_days_that_it_has_left(
    machine: Machine, tmp_path: Path, days: int, level: str
) -> None:
    pair = Authority.new(90).for_node(["a.example"], days)
    file = tmp_path / "node.pem"
    file.write_bytes(pair.certificate + pair.key)
    found = one(checks.certificate(settings(tls_cert=file), machine))
    assert found.level == level
    assert ("expired on" if days == 0 else f"of a.example; good for {days - 1} more days") in found.found
    file.write_text("nothing")
    assert one(checks.certificate(settings(tls_cert=file), machine)).level == "fail"
    assert not list(checks.certificate(Config(), machine))


def test_a_state_directory_is_judged_by_what_is_there_of_it(machine: Machine, tmp_path: Path) -> None:
    def look(path: Path) -> Finding:
        return one(checks.state_directory(settings(state_dir=path), machine))

    assert look(tmp_path).level == "ok"
    new = look(tmp_path / "a" / "b")
    assert new.level == "ok"
    assert f"and {tmp_path} can be written" in new.found
    assert not (tmp_path / "a").exists(), "nothing is changed"
    (tmp_path / "file").touch()
    assert look(tmp_path / "file" / "c").level == "fail"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert look(tmp_path / "dangling" / "c").level == "fail"
    assert one(checks.state_directory(settings(port=0), machine)).level == "ok"


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who runs this is root, as far as the doctor knows."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("root")
def test_to_root_the_state_directory_is_shown_that_serve_would_use(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(**flags: object) -> str:
        return one(checks.state_directory(settings(**flags), machine)).found

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for module in (checks, machines):
        monkeypatch.setattr(module, "may", lambda heir, path, mode: heir is None or path != tmp_path)
    nobody = pwd.struct_passwd(("nobody", "x", 65534, 65534, "", "/nonexistent", ""))
    homely = pwd.struct_passwd(("carol", "x", 4321, 4321, "", "/srv/carol", ""))
    monkeypatch.setattr(pwd, "getpwnam", {"nobody": nobody, "carol": homely}.__getitem__)
    assert look(user="root") == f"{tmp_path}/skywalker/3443 is to be made, and {tmp_path} can be written by this user"
    assert look().startswith("none, since nobody, whom serve becomes when root starts it, has no home")
    assert look(user="carol").startswith("/srv/carol/.local/state/skywalker/3443 is to be made, and ")
    assert look(state_dir="/").endswith("can be written by nobody, whom serve becomes")
    assert look(state_dir=tmp_path).endswith("can be written by this user"), "serve stays root then"
    assert look(state_dir=tmp_path, user="carol").endswith("cannot be written by carol, whom serve becomes")
    assert look(user="dave") == "not looked at: there is no user 'dave' on this machine"
    assert look(bind="10.0.0.5").startswith("not looked at: root must say by user")
    for module in (checks, machines):
        monkeypatch.setattr(module, "may", lambda heir, path, mode: heir is None)
    assert look().startswith(str(tmp_path)), "serve stays root where nobody could not read what it is made of"


@pytest.mark.parametrize(
    ("mode", "may"),
    [(0o700, False), (0o702, False), (0o703, True), (0o007, True), (0o570, False)],
)
def test_what_another_user_may_is_what_the_modes_say(tmp_path: Path, mode: int, may: bool) -> None:
    other = pwd.struct_passwd(("nobody", "x", os.geteuid() + 1, os.getegid() + 1, "", "/", ""))
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, mode)
        assert machines.may(other, Path(directory), machines.WRITE | machines.ENTER) is may
        (inner := Path(directory, "inner")).mkdir()
        inner.chmod(0o777)
        assert machines.may(other, inner, machines.WRITE) is bool(mode & machines.ENTER), (
            "it must be entered on the way"
        )
        os.chmod(directory, 0o700)


def consul(machine: Machine, url: str) -> Finding:
    return one(checks.consul(settings(consul="true", consul_url=url), machine))


def test_a_consul_that_answers_is_well(machine: Machine) -> None:
    with told_admin() as server:
        server.says["/v1/status/leader"] = b'"10.0.0.1:8300"'
        assert consul(machine, f"http://{server.address}").level == "ok"
        server.says["/v1/status/leader"] = b'""'
        assert consul(machine, f"http://{server.address}").level == "warn"
        del server.says["/v1/status/leader"]
        refused = consul(machine, f"http://{server.address}")
        assert (refused.level, "is no Consul" in refused.found) == ("fail", True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://127.0.0.1:1", "nonsense"])
def test_a_consul_that_cannot_be_asked_fails(machine: Machine, url: str) -> None:
    assert consul(machine, url).level == "fail"


# All together.


def test_what_hangs_is_told_of_and_delays_nothing_else() -> None:
    over = threading.Event()

    def hangs(config: Config, machine: Machine) -> Iterator[Finding]:
        over.wait()
        yield Finding("never", "ok", "")

    def breaks(config: Config, machine: Machine) -> Iterator[Finding]:
        raise RuntimeError("what nobody foresaw")

    def works(config: Config, machine: Machine) -> Iterator[Finding]:
        yield Finding("works", "ok", "fine")

    started = time.monotonic()
    found = list(command.examined([hangs, breaks, works], Config(), Machine(), 0.2))
    assert time.monotonic() - started < 1.0 * time_factor()
    assert [(each.name, each.level) for each in found] == [("hangs", "warn"), ("breaks", "warn"), ("works", "ok")]
    assert "what nobody foresaw" in found[1].found
    over.set()


def test_the_command_says_a_line_for_each_and_ends_with_0_or_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        file = tmp_path / "node.toml"
        file.write_text(
            f"port = {port}\nadmin = false\nworkers = 1\nstate_dir = '{tmp_path}'\n[limits]\nmax_connections = 10\n"
        )
        started = time.monotonic()
        ran = run("doctor", "--config", str(file))
        assert time.monotonic() - started < 4 * time_factor()
        assert ran.returncode == 1
        lines = ran.stdout.decode().splitlines()
        (about,) = (line for line in lines if line.startswith("fail"))
        assert f"127.0.0.1 port {port} is taken by " in about
        assert all(line.startswith(("ok    ", "warn  ", "fail  ")) for line in lines[:-1])
        assert lines[-1].endswith(" 1 failed")
    told = json.loads(run("doctor", "--json", SKYWALKER_CONFIG=str(file)).stdout)
    assert told["ok"] is True
    assert {each["name"] for each in told["checks"]} >= {
        "open files",
        "somaxconn",
        "port",
        "clock",
        "core",
        "steering",
    }
    assert run("doctor", "--config", str(file)).returncode == 0


def test_a_node_that_runs_has_its_own_ports(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with embedded(port=port, state_dir=str(tmp_path)) as node:
        checks = json.loads(run("doctor", "--json", SKYWALKER_PORT=str(port), SKYWALKER_ADMIN="false").stdout)["checks"]
        found = {each["name"]: each for each in checks}
        assert found["port"]["found"] == f"127.0.0.1 port {port} is this node's, which runs: process {node.pid}"
        assert f"of the node that runs, process {node.pid}" in found["open files"]["found"]
