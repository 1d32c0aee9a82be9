"""The `skywalker-bench` command: its page and its files, Ctrl-C, what it refuses; and the idle test."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.figures.target import Target
from bench.idle import measure
from bench.micro import changes
from skywalker.address import Address
from skywalker.embedding import Node, embedded
from tests.bench.broker import serving
from tests.bench.running import processes_of_session
from tests.helpers import eventually, time_factor

COMMAND = [sys.executable, "-m", "bench"]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; it may not show a traceback, whatever it is asked."""
    limit = 60 * time_factor()
    ran = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=limit)
    assert "Traceback" not in ran.stderr
    return ran


def test_a_load_test_shows_a_page_and_writes_its_files(tmp_path: Path) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("json", "hdr", "svg")}
    ran = bench(
        *("--start=2", "--direct", "--seconds=1.1", "--warm-up=0.1", "--pairs=4"),
        *(f"--json={files['json']}", f"--hdr={files['hdr']}", f"--plot={files['svg']}"),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    data = json.loads(files["json"].read_text())
    assert f"{data['rate']:,.0f}  rendezvous/s" in ran.stdout
    assert "errors     none" in ran.stdout
    assert data["errors"] == {}
    assert data["forwarded"] == 0
    assert len(data["server"]["processes"]) == 3
    assert [round(second["seconds"], 1) for second in data["timeline"]] == [1.0, 0.1]
    assert data["rate_per_core"] == pytest.approx(data["rate"] / data["server"]["cores"])
    for process in data["server"]["processes"]:
        assert str(process["pid"]) in ran.stdout
    assert "1/(1-Percentile)" in files["hdr"].read_text()
    assert "rendezvous a second" in files["svg"].read_text()


def test_ctrl_c_ends_it_early_with_the_figures_so_far() -> None:
    # On a terminal, whose line tells when it is under way.
    ours, theirs = pty.openpty()
    seen = b""

    def watch() -> None:
        nonlocal seen
        while b"rendezvous/s" not in seen:
            seen += os.read(ours, 1000)
        process.send_signal(signal.SIGINT)

    with subprocess.Popen(
        [*COMMAND, "--start=1", "--seconds=600", "--warm-up=0.1", "--pairs=2"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        start_new_session=True,
    ) as process:
        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            output, _ = process.communicate(timeout=30 * time_factor())
        finally:
            process.kill()
        watching.join()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0
    assert "ended early" in output
    assert "errors     none" in output
    assert b"p99" in seen
    eventually(lambda: not processes_of_session(process.pid))


def test_a_wrong_reply_makes_the_exit_status_1() -> None:
    def wrong_once(reply: bytes, number: int) -> bytes:
        return reply[:-1] + b"!" if number == 50 else reply

    with serving(wrong_once) as (_, port):
        ran = bench(f"--connect=127.0.0.1:{port}", "--seconds=0.3", "--warm-up=0.1", "--pairs=1", "--in-flight=2")
    assert ran.returncode == 1
    assert "1 wrong-reply" in ran.stdout
    assert "no correct node gives this reply" in ran.stdout


def test_no_node_is_one_line() -> None:
    with serving() as (_, port):
        pass
    ran = bench(f"--connect=127.0.0.1:{port}")
    assert ran.returncode == 1
    assert ran.stderr == f"skywalker-bench: cannot connect to 127.0.0.1:{port}: Connection refused\n"


def target_of(node: Node) -> Target:
    return Target(Address(node.host, node.port), node.address, node.pid, Address.parse(node.admin_address))


def test_what_waiting_costs_is_measured_by_difference() -> None:
    with embedded(workers=2, admin=True) as node:
        found = measure(target_of(node), 300, 20, 0.2)
        forwarded = measure(target_of(node), 30, 20, 0.2, forwarded=True)
    assert 0 < found.empty_bytes < found.connected_bytes < found.waiting_bytes
    assert 0.1 < found.forwarded < 0.9
    assert forwarded.forwarded == 1
    for turn_s in (found.turn_s, found.closing_turn_s):
        assert turn_s is not None
        assert 0.00001 < turn_s < 1
    assert 0 < found.connection_bytes < 20_000
    assert found.call_bytes is not None
    assert 100 < found.call_bytes < 3000
    assert 0 <= found.cores < 0.5


def test_idle_shows_its_page(tmp_path: Path) -> None:
    file = tmp_path / "idle.json"
    ran = bench("idle", "--start=1", "--connections=100", "--calls=10", "--seconds=0.2", f"--json={file}")
    assert (ran.returncode, ran.stderr) == (0, "")
    data = json.loads(file.read_text())
    assert f"{data['call_bytes']:,.0f} bytes for a waiting call" in ran.stdout


def test_what_changed_most_since_the_baseline_comes_first() -> None:
    before = {"same": 10.0, "slow": 10.0, "fast": 10.0, "left out": 1.0}
    rows = list(changes(before, {"same": 10.5, "slow": 20.0, "fast": 6.0, "added": 3.0}))
    assert [(name, change) for name, _, _, change in rows] == [
        ("slow", "+100%  slower"),
        ("fast", "-40%  faster"),
        ("same", "+5%"),
        ("added", "new"),
        ("left out", "not run"),
    ]
