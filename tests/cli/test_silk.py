"""`skywalker silk`: commands that are nodes, against each other and beside nodes of the library."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import signal
import stat
import subprocess
import sys
import termios
import threading
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skywalker import silk
from skywalker.cli.silk.options import Asked
from skywalker.silk.blocking import Node
from tests.cli.running import end, environment, run, started
from tests.helpers import eventually, frozen, time_factor

ANYWHERE = "tcp://127.0.0.1:0"
NOBODY = "tcp://127.0.0.1:1"
PIPE_BYTES = 65_536
LINE = re.compile(r"^\d\d:\d\d:\d\d\.\d{3}  (\w+) +(\S+) \(\S+\)$", re.MULTILINE)


@contextlib.contextmanager
def listening(*arguments: str, **options: Any) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run `silk listen`, of its own cluster unless told otherwise; yield it and its endpoint."""
    where = [] if "--router" in arguments or "--join" in arguments else ["--router", ANYWHERE]
    with started("silk", "listen", *arguments, *where, **options) as process:
        yield process, endpoint_of(process)


def endpoint_of(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    said = process.stderr.readline().decode()
    match = re.fullmatch(r"listening at (\S+), where others can join\n", said)
    assert match, said + process.stderr.read().decode()
    return match[1]


def request(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return run("silk", "request", *arguments, **options)


def members_seen_at(endpoint: str) -> list[str]:
    """Return the names of the members that a node sees, its own included."""
    return sorted(node.name for node in silk.ask(endpoint))


@pytest.fixture
def node() -> Iterator[Node]:
    """A node of the library, for tests to give it handlers."""
    with Node(name="node", keepalive=0.2 * time_factor()) as node:
        yield node


# Listening and asking.


def test_a_request_is_printed_and_answered() -> None:
    with listening("--type", "resize", "--reply", '{"ok": [true, "ä"]}') as (listener, endpoint):
        ran = request("resize", '{"file": "ä.png"}', "--join", endpoint)
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert ran.stdout.decode() == '{"ok": [true, "ä"]}\n'
        assert listener.stdout is not None
        assert listener.stdout.readline().decode() == '{"file": "ä.png"}\n'


def test_the_output_for_scripts_tells_the_type_of_each_message() -> None:
    arguments = ["--type", "a", "--type", "b", "--count", "2", "--json", "--name", "red"]
    with started("silk", "listen", *arguments, "--router", ANYWHERE) as listener:
        assert listener.stdout is not None
        first = json.loads(listener.stdout.readline())
        assert (first["status"], first["node"]["name"], [*first["node"]["messages"]]) == (
            "listening",
            "red",
            ["a", "b"],
        )
        endpoint = first["node"]["endpoints"]["router"]
        asked = json.loads(request("b", "1", "--join", endpoint, "--json").stdout)
        assert asked.pop("ms") > 0
        assert asked == {"status": "answered", "value": None}
        request("a", "2", "--join", endpoint)
        lines = [json.loads(line) for line in listener.communicate(timeout=20 * time_factor())[0].splitlines()]
        assert [(line["status"], line["type"], line["value"]) for line in lines] == [
            ("delivered", "b", 1),
            ("delivered", "a", 2),
        ]


def test_nobody_at_the_endpoint_is_status_4_after_the_timeout() -> None:
    for arguments in (["request", "t", "--join"], ["listen", "--type", "t", "--join"], ["members"], ["watch"]):
        began = time.monotonic()
        ran = run("silk", *arguments, NOBODY, "--timeout", "100ms")
        assert (ran.returncode, ran.stdout) == (4, b"")
        assert ran.stderr.decode() == f"skywalker: {NOBODY}: no node answered within 0.1 s, or those there have keys\n"
        assert time.monotonic() - began < 5 * time_factor()
        ran = run("silk", *arguments, NOBODY, "--timeout", "100ms", "--json")
        assert (ran.returncode, ran.stderr) == (4, b"")
        assert json.loads(ran.stdout)["status"] == "unreachable"


def test_what_nobody_handles_is_status_5(node: Node) -> None:
    endpoint = node.info.router
    ran = request("t", "--join", endpoint)
    assert (ran.returncode, ran.stdout, ran.stderr) == (5, b"", b"skywalker: no member handles 't'\n")
    ran = request("t", "--join", endpoint, "--node", "node")
    assert (ran.returncode, ran.stderr) == (5, b"skywalker: node: nobody handles 't' here\n")
    ran = request("t", "--join", endpoint, "--all", "--json")
    assert (ran.returncode, ran.stderr) == (5, b"")
    outcome = json.loads(ran.stdout)
    assert (outcome["status"], outcome["code"]) == ("refused", "unknown-type")


def test_a_handler_that_fails_is_status_5_with_what_it_said(node: Node) -> None:
    @node.handle("t")
    def fail(data: Any) -> Any:
        raise ValueError(f"{data} is too big")

    ran = request("t", "7", "--join", node.info.router)
    assert (ran.returncode, ran.stdout, ran.stderr) == (5, b"", b"skywalker: node: 7 is too big\n")
    outcome = json.loads(request("t", "7", "--join", node.info.router, "--json").stdout)
    assert (outcome["status"], outcome["code"]) == ("refused", "failed")


def test_no_reply_is_status_3(node: Node) -> None:
    busy = threading.Event()
    try:
        node.handle("t", lambda data: busy.wait(), attempts=2, period=0.1)
        ran = request("t", "--join", node.info.router)
        assert (ran.returncode, ran.stdout) == (3, b"")
        assert "did not answer 't', sent 2 times, within 0.2 s" in ran.stderr.decode()
        node.handle("t", lambda data: busy.wait(), attempts=100, period=1.0)
        ran = request("t", "--join", node.info.router, "--timeout", "300ms")
        assert (ran.returncode, ran.stderr) == (3, b"skywalker: no reply to 't' within 0.3 s\n")
        ran = request("t", "--join", node.info.router, "--timeout", "300ms", "--json")
        assert json.loads(ran.stdout)["status"] == "timed-out"
        ran = request("t", "--join", node.info.router, "--timeout", "300ms", "--all")
        assert (ran.returncode, ran.stdout) == (3, b"")
        assert re.fullmatch(r"skywalker: node \(\S+\) did not answer within 0.3 s\n", ran.stderr.decode())
    finally:
        busy.set()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["listen"], "'--type'"),
        (["listen", "--type", "_ka", "--router", ANYWHERE], "'_ka' begins with _"),
        (["listen", "--type", "t", "--reply", "{"], "--reply '{': it looks like JSON but is none"),
        (["listen", "--type", "t", "--router", "tcp://0.0.0.0:0"], "advertise"),
        (["listen", "--type", "t", "--router", "tcp://192.0.2.1:1"], "cannot listen at tcp://192.0.2.1:1"),
        (["request", "t", "NaN"], "no node answered"),
        (["request", "t", "1", "--all", "--broadcast"], "exclude each other"),
        (["request", "t", "1", "--all", "--tell"], "--broadcast alone tells all"),
        (["members", "--keys", "/nowhere"], "'/nowhere' does not exist"),
    ],
)
def test_wrong_usage_says_why(command: list[str], told: str) -> None:
    where = ["--join", NOBODY, "--timeout", "100ms"] if command[0] == "request" else []
    ran = run("silk", *command, *where)
    assert told in ran.stderr.decode()
    assert ran.returncode == (4 if "NaN" in command else 2)
    assert ran.stdout == b""


# One of many, and all of them.


@pytest.fixture(scope="module")
def three() -> Iterator[tuple[str, dict[str, subprocess.Popen[bytes]]]]:
    """Listeners red, blue and green, each of which replies its name; yields an endpoint, and them by name."""
    with contextlib.ExitStack() as stack:
        listeners: dict[str, subprocess.Popen[bytes]] = {}
        join: list[str] = []
        endpoints: list[str] = []
        for name in ("red", "blue", "green"):
            options = ["--type", "t", "--reply", f'"{name}"', "--name", name, *join]
            listeners[name], endpoint = stack.enter_context(listening(*options))
            endpoints.append(endpoint)
            join = ["--join", endpoints[0]]
        eventually(lambda: all(members_seen_at(each) == sorted(listeners) for each in endpoints))
        yield endpoints[0], listeners


def test_what_is_told_and_what_is_broadcast_arrives(three: tuple[str, dict[str, subprocess.Popen[bytes]]]) -> None:
    endpoint, listeners = three
    for number in range(3):
        ran = request("t", str(number), "--tell", "--node", "blue", "--join", endpoint)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert printed_by(listeners["blue"]) == number
        assert request("t", f"b{number}", "--broadcast", "--join", endpoint).returncode == 0
        assert {printed_by(each) for each in listeners.values()} == {f"b{number}"}
    assert json.loads(request("t", "0", "--tell", "--join", endpoint, "--json").stdout)["status"] == "sent"


def test_all_are_asked_and_each_replies_in_a_line(three: tuple[str, dict[str, subprocess.Popen[bytes]]]) -> None:
    endpoint, listeners = three
    ran = request("t", "1", "--all", "--join", endpoint)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert sorted(ran.stdout.decode().splitlines()) == ['blue\t"blue"', 'green\t"green"', 'red\t"red"']
    ran = request("t", "1", "--all", "--join", endpoint, "--json")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {(line["status"], line["name"], line["value"]) for line in lines} == {
        ("answered", name, name) for name in listeners
    }
    assert {line["node"] for line in lines} == {node.id for node in silk.ask(endpoint)}


def test_one_is_asked_by_its_name_its_id_or_the_beginning_of_that(
    three: tuple[str, dict[str, subprocess.Popen[bytes]]],
) -> None:
    endpoint, _ = three
    green = next(node for node in silk.ask(endpoint) if node.name == "green")
    for to in ("green", green.id, green.id[:8]):
        assert request("t", "--node", to, "--join", endpoint).stdout == b'"green"\n'
    ran = request("t", "--node", "gre", "--join", endpoint)
    assert (ran.returncode, ran.stderr) == (5, b"skywalker: no member has the name or id 'gre'\n")
    ran = request("t", "--node", "", "--join", endpoint, "--json")
    assert json.loads(ran.stdout)["code"] == "no-such-node"
    assert green.id in json.loads(ran.stdout)["message"]


def test_of_all_those_that_fail_are_named(three: tuple[str, dict[str, subprocess.Popen[bytes]]], node: Node) -> None:
    endpoint, listeners = three

    @node.handle("t")
    def fail(data: Any) -> Any:
        raise ValueError("not \x1b[31mme")

    node.join(endpoint)
    eventually(lambda: len(node.members) == 3)
    ran = request("t", "--all", "--join", endpoint)
    assert ran.returncode == 5
    assert len(ran.stdout.splitlines()) == 3
    assert ran.stderr == b"skywalker: node: not ?[31mme\n"
    with frozen(listeners["blue"]):
        ran = request("t", "--all", "--join", endpoint, "--json")
        outcomes = {line["name"]: line for line in map(json.loads, ran.stdout.splitlines())}
        assert (ran.returncode, ran.stderr) == (5, b"")  # of the first that failed
        assert outcomes["blue"]["status"] == "timed-out"
        assert outcomes["node"]["status"] == "refused"
        assert outcomes["red"]["status"] == outcomes["green"]["status"] == "answered"
        screen = run("silk", "members", endpoint, "--timeout", f"{time_factor()}s").stdout.decode()
    assert "3 of 4 nodes see the same" in screen
    assert re.search(r"^  blue \(tcp://\S+\) did not answer within \S+ s$", screen, re.MULTILINE)
    assert re.search(r"^  blue  .* \?$", screen, re.MULTILINE)


def printed_by(listener: subprocess.Popen[bytes]) -> Any:
    assert listener.stdout is not None
    return json.loads(listener.stdout.readline())


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_is_told_to_end_while_it_asks_leaves_the_cluster(node: Node, number: int, status: int) -> None:
    busy, began = threading.Event(), threading.Event()
    try:
        node.handle("t", lambda data: (began.set(), busy.wait()))
        events = node.events()
        with started("silk", "request", "t", "--join", node.info.router) as asker:
            assert began.wait(20 * time_factor())
            asker.send_signal(number)
            out, complaints = asker.communicate(timeout=20 * time_factor())
            assert (asker.returncode, out, complaints.strip()) == (status, b"", b"")
        assert [type(events.next(timeout=5 * time_factor())) for _ in range(2)] == [silk.Joined, silk.Left]
    finally:
        busy.set()


# How a listener ends.


def unread(pipe: int) -> int:
    """Return how many bytes a pipe holds."""
    held = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, held)
    return held[0]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_listener_that_is_told_to_end_leaves_its_cluster(node: Node, number: int, status: int) -> None:
    with listening("--type", "t", "--join", node.info.router) as (listener, _):
        events = node.events()
        eventually(lambda: node.members)
        listener.send_signal(number)
        assert end(listener) == status
        assert listener.stderr is not None
        assert listener.stderr.read().strip() == b""
        while not isinstance(events.next(timeout=5 * time_factor()), silk.Left):
            pass
        assert not node.members


def test_a_listener_that_nobody_reads_stays_a_member_and_can_be_interrupted(node: Node) -> None:
    with listening("--type", "t", "--join", node.info.router) as (listener, endpoint):
        eventually(lambda: node.members)
        node.tell_any("t", "x" * 500_000)  # more than a pipe holds
        assert listener.stdout is not None
        eventually(lambda: unread(listener.stdout.fileno()) >= PIPE_BYTES)
        assert len(members_seen_at(endpoint)) == 2, "it answers still"
        listener.send_signal(signal.SIGINT)
        assert end(listener) == 130


# Members.


def test_members_are_told_with_what_they_handle_and_nobody_joins() -> None:
    junction = {"address": "10.0.0.7", "port": 3443}
    with (
        Node(name="red", junction=junction) as red,
        Node(name="the other") as other,
    ):
        red.handle("thumb", lambda data: data)
        red.handle("resize", lambda data: data)
        other.join(red.info.router)
        eventually(lambda: red.members)
        events = red.events()
        ran = run("silk", "members", other.info.router)
        assert (ran.returncode, ran.stderr) == (0, b"")
        screen = ran.stdout.decode()
        assert "cluster of 2 nodes" in screen
        assert "all see each other" in screen
        row = next(line for line in screen.splitlines() if line.startswith("  red "))
        assert row.split() == ["red", red.id[:8], red.info.router, "10.0.0.7:3443", "thumb,", "resize"]
        ran = run("silk", "members", other.info.router, "--json")
        value = json.loads(ran.stdout)["value"]
        assert value["agreed"] is True
        nodes = {each["id"]: each for each in value["nodes"]}
        assert nodes[red.id] == {**red.info.as_map(), "problem": None}
        assert nodes.keys() == {red.id, other.id}
        with pytest.raises(TimeoutError):
            events.next(timeout=0.2)


# Watching.

BLUE = """
import sys, time
from skywalker.silk.blocking import Node
with Node(name="blue", keepalive=0.2) as blue:
    blue.join(sys.argv[1])
    time.sleep(100)
"""


def test_who_comes_leaves_and_fails_is_told(node: Node) -> None:
    endpoint = node.info.router
    with started("silk", "watch", endpoint) as watcher:
        assert next_event(watcher) == ("joined", "node")
        with Node(name="red", keepalive=0.2) as red:
            red.join(endpoint)
            assert next_event(watcher) == ("joined", "red")
            eventually(lambda: len(red.members) == 2)
            red.handle("t", lambda data: data)
            assert next_event(watcher) == ("changed", "red")
        assert next_event(watcher) == ("left", "red")
        with subprocess.Popen([sys.executable, "-c", BLUE, endpoint], env=environment()) as blue:
            assert next_event(watcher) == ("joined", "blue")
            blue.kill()
            assert next_event(watcher) == ("suspected", "blue")
            assert next_event(watcher) == ("failed", "blue")
        events = node.events()
        watcher.send_signal(signal.SIGINT)
        assert end(watcher) == 130
        assert watcher.stderr is not None
        assert watcher.stderr.read().strip() == b""
        # The node may find out that the other failed after the watcher has.
        while type(events.next(timeout=5 * time_factor())) is not silk.Left:
            pass


def next_event(watcher: subprocess.Popen[bytes]) -> tuple[str, str]:
    assert watcher.stdout is not None
    line = watcher.stdout.readline().decode()
    match = LINE.fullmatch(line.removesuffix("\n"))
    assert match, line
    return match[1], match[2]


def test_the_output_for_scripts_has_a_time_and_the_whole_node(node: Node) -> None:
    with started("silk", "watch", node.info.router, "--json") as watcher:
        assert watcher.stdout is not None
        line = json.loads(watcher.stdout.readline())
        assert abs(time.time() - line.pop("time")) < 60
        assert line == {"status": "joined", "node": node.info.as_map()}


# Keys.


def test_a_key_pair_is_only_for_its_owner_and_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "cluster.key"
    ran = run("silk", "keygen", str(file))
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"--keys {file}" in ran.stdout.decode()
    before = file.read_bytes()
    assert silk.Keys.load(file).secret.decode() not in ran.stdout.decode()
    ran = run("silk", "keygen", str(file))
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert f"the key file {file} cannot be written: File exists" in ran.stderr.decode()
    assert file.read_bytes() == before


def test_who_has_other_keys_or_none_finds_nobody(tmp_path: Path) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    for file in (ours, others):
        silk.Keys.generate().save(file)
    with listening("--type", "t", "--reply", "1", "--keys", str(ours)) as (_, endpoint):
        assert request("t", "--join", endpoint, "--keys", str(ours)).stdout == b"1\n"
        assert "cluster of 1 node" in run("silk", "members", endpoint, "--keys", str(ours)).stdout.decode()
        for keys in (["--keys", str(others)], []):
            ran = request("t", "--join", endpoint, "--timeout", "500ms", *keys)
            assert (ran.returncode, ran.stdout) == (4, b"")
            assert ("nobody with these keys at least" in ran.stderr.decode()) == bool(keys)
    ours.write_text("nothing")
    ran = request("t", "--join", NOBODY, "--keys", str(ours))
    assert ran.returncode == 2
    assert f"the key file {ours} cannot be read" in ran.stderr.decode()


# Endpoints, and what is loaded.


@pytest.mark.parametrize(
    ("joins", "router"),
    [
        (None, "tcp://127.0.0.1:3444"),
        ("tcp://127.0.0.1:1", ANYWHERE),
        ("tcp://localhost:1", ANYWHERE),
        ("ipc:///path", ANYWHERE),
        ("tcp://no.such.host.invalid:1", ANYWHERE),
        (f"tcp://{'x' * 64}.invalid:1", ANYWHERE),
    ],
)
def test_a_node_listens_where_those_that_it_joins_can_reach_it(joins: str | None, router: str) -> None:
    settings = Asked(None, False, None, None, "", "", None).settings(joins)
    assert settings["router"] == router
    assert settings["pub"] == ANYWHERE
