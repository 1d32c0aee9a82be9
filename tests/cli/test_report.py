"""`skywalker report` against admin servers that say what they are told to."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

from skywalker.cli import node as words
from skywalker.cli import outcome
from skywalker.cli.node import Column, Table
from skywalker.cli.report import report
from skywalker.embedding import embedded
from tests.cli.running import run
from tests.cli.told_admin import connection, documents, told_admin
from tests.helpers import eventually, time_factor


def lines(*arguments: str, status: int = 0) -> list[str]:
    ran = run("report", *arguments)
    assert (ran.returncode, ran.stderr) == (status, b"")
    return ran.stdout.decode().splitlines()


def section(printed: list[str], name: str) -> list[str]:
    """The lines of one table, without its title."""
    start = next(at for at, line in enumerate(printed) if line.strip().split(":")[0] == name)
    end = next((at for at in range(start, len(printed)) if not printed[at]), len(printed))
    return [line.strip() for line in printed[start + 1 : end]]


def test_it_prints_who_the_node_is_and_what_it_does() -> None:
    with told_admin() as admin:
        printed = "\n".join(lines(admin.address))
    for part in (
        "red at 127.0.0.1:3443, pid 4711, id id-red",
        "0.1.0, steering",
        "serving, 2 of 2 workers serve, up 3h 12m",
        "51,240/s, of which 50,914/s met",
        "p50 12 µs, p99 84 µs",
        "3 send, 120 recv, 40 take, 8 subscription",
    ):
        assert part in printed
    assert "\x1b" not in printed


def test_it_has_every_table_with_what_stands_out_first() -> None:
    with told_admin() as admin:
        printed = lines(admin.address)
    assert section(printed, "workers")[1].split()[:4] == ["0", "serving", "61%", "83.9"]
    assert [line.split()[0] for line in section(printed, "topics")[1:]] == ["orders.2", "orders.1", "orders.0"]
    assert section(printed, "connections")[1].startswith("10.0.0.7:41002  1       slow-reader")
    assert "half-frame" in section(printed, "closed")[1]
    counts = [line.split() for line in section(printed, "counts")]
    assert ["calls", "send", "timed-out", "17"] in counts
    assert not any(line[-1] == "0" for line in counts)
    assert [line.split()[0] for line in section(printed, "processes")[1:3]] == ["agent", "supervisor"]


def test_json_is_a_line_for_each_node_with_all_that_it_tells() -> None:
    with told_admin() as red, told_admin() as blue:
        told = [json.loads(line) for line in lines(red.address, blue.address, "--json")]
        assert [each["address"] for each in told] == [red.address, blue.address]
        for each, admin in zip(told, (red, blue), strict=True):
            assert each["status"] == "answered"
            assert each["state"] == admin.says["/api/state"]
            assert each["topics"] == admin.says["/api/topics"]
            assert each["connections"] == admin.says["/api/connections"]


def test_a_node_that_does_not_answer_is_told_and_the_others_are_printed() -> None:
    with told_admin() as admin:
        ran = run("report", "127.0.0.1:1", admin.address)
        assert ran.returncode == 4
        assert ran.stderr.decode().startswith("skywalker: nothing answers at 127.0.0.1:1: connection refused. ")
        assert b"id-red" in ran.stdout
        told = [json.loads(line) for line in run("report", "127.0.0.1:1", admin.address, "--json").stdout.splitlines()]
        assert [(each["address"], each["status"]) for each in told] == [
            ("127.0.0.1:1", "unreachable"),
            (admin.address, "answered"),
        ]


def test_cluster_asks_every_member_at_the_same_port_on_its_own_host() -> None:
    with told_admin() as first, told_admin("127.0.0.2", first.port) as second:
        ring: dict[str, Any] = dict(first.says["/api/ring"])  # type: ignore[arg-type]
        members = [
            *ring["members"],
            {"id": "id-blue", "name": "blue", "address": "127.0.0.2:3443", "share": 0.5, "workers": 2},
        ]
        first.says["/api/ring"] = ring | {"members": members}
        second.says |= documents("127.0.0.2:3443", "blue")
        told = [json.loads(line) for line in lines(first.address, "--cluster", "--json")]
    assert [each["state"]["node"]["name"] for each in told] == ["red", "blue"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"{", b"[" * 100_000, b"null", b'{"topics": 5}'])
@pytest.mark.parametrize("path", ["/api/state", "/api/topics", "/api/connections"])
def test_what_is_no_admin_server_is_told_in_one_line(path: str, body: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with told_admin() as admin:
        admin.says[path] = body
        assert outcome.run(report, [admin.address], "report") == 4
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"skywalker: what answers at {admin.address} is ")


@pytest.mark.parametrize("value", [[], {}, "text", None, {"a": {"b": []}}, float("inf")])
def test_a_state_of_any_other_shape_is_no_traceback(value: object) -> None:
    with told_admin() as admin:
        whole: dict[str, Any] = admin.says["/api/state"]  # type: ignore[assignment]
        for key in whole:
            admin.says["/api/state"] = whole | {key: value}
            assert outcome.run(report, [admin.address], "report") in (0, 4)


@pytest.mark.parametrize("moment", [float("inf"), 1e17])
def test_a_moment_that_no_calendar_has_is_no_traceback(moment: float) -> None:
    with told_admin() as admin:
        connections: dict[str, Any] = admin.says["/api/connections"]  # type: ignore[assignment]
        connections["closed"][0]["time"] = moment
        assert outcome.run(report, [admin.address], "report") == 4


def test_a_server_that_says_something_else_than_http_and_one_that_says_nothing_are_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            for words in (b"SSH-2.0-x\r\n", b""):
                peer, _ = listener.accept()
                with peer:
                    peer.sendall(words)
                    peer.shutdown(socket.SHUT_WR)
                    peer.recv(4096)

        thread = threading.Thread(target=answer)
        thread.start()
        ran = run("report", f"127.0.0.1:{port}")
        assert ran.returncode == 4
        assert "does not speak HTTP" in ran.stderr.decode()
        assert run("report", f"127.0.0.1:{port}").returncode == 4
        thread.join(10 * time_factor())
        # From here on nobody accepts.
        ran = run("report", f"127.0.0.1:{port}")
        assert ran.returncode == 4
        assert "no answer in time" in ran.stderr.decode()


def test_escapes_of_clients_do_not_reach_the_terminal() -> None:
    with told_admin() as admin:
        connections: dict[str, Any] = admin.says["/api/connections"]  # type: ignore[assignment]
        connections["connections"] = [connection(1, name="\x1b]0;gotcha\x07" + 300 * "x")]
        printed = "\n".join(lines(admin.address))
    assert "\x1b" not in printed
    assert "?]0;gotcha?xxx" in printed
    assert 70 * "x" not in printed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0 µs"),
        (0.00008, "80 µs"),
        (0.0009996, "1 ms"),
        (0.0123, "12.3 ms"),
        (59.96, "1m 00s"),
        (11_540, "3h 12m"),
    ],
)
def test_times_are_short_and_have_their_unit(seconds: float | None, text: str) -> None:
    assert words.span(seconds) == text


def test_rows_are_sorted_by_value_with_the_unknown_last_and_filtered_by_what_is_seen() -> None:
    table = Table((Column("name"), Column("times", words.span)), [("a", 2.0), ("b", None), ("C", 10.0)])
    assert [row[0] for row in table.arranged(1, descending=False)] == ["a", "C", "b"]
    assert [row[0] for row in table.arranged(1, descending=True)] == ["C", "a", "b"]
    assert [row[0] for row in table.arranged(0, descending=False, wanted="c")] == ["C"]
    assert [row[0] for row in table.arranged(0, descending=False, wanted="10 S")] == ["C"]


def test_a_real_node_tells_all_that_is_printed() -> None:
    with embedded(workers=2, admin=True) as node, node.connect() as client:
        client.begin("recv", "lonely", timeout=60)

        def told() -> dict[str, Any]:
            answer: dict[str, Any] = json.loads(lines(node.admin_address, "--json")[0])
            return answer if answer["topics"]["topics"] and answer["connections"]["connections"] else {}

        documents = eventually(told, within=10.0)
        assert documents["state"]["node"]["pid"] == node.pid
        printed = lines(node.admin_address)
        assert section(printed, "topics")[1].startswith("lonely ")
        assert len(section(printed, "workers")) == 3
        assert section(printed, "connections")[1].startswith("127.0.0.1:")
        assert f"pid {node.pid}" in "\n".join(printed)
        assert "Traceback" not in node.log
