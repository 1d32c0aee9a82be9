"""The tables of the page come out of the command again, and the network that they are measured on is sound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import BenchError
from bench.figures import command
from bench.silk.__main__ import SEED, deaths, steady_row, storm
from bench.silk.simulation import DELAY_S, Network, acquainted
from skywalker.silk.events import Failed
from skywalker.wire.silk import KEEPALIVE, Message

COMMAND = [sys.executable, "-m", "bench.silk"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "silk.md"
MARKS = "# ours\n<!-- begin traffic -->\nold\n<!-- end traffic -->\nmore\n"


def lines_of(page: Path) -> list[str]:
    before, after = command.split_page(page, "traffic")
    text = page.read_text()
    return text[len(before) : len(text) - len(after)].splitlines()[1:-1]


@pytest.mark.parametrize("nodes", [3, 10])
def test_the_page_has_what_the_command_measures(nodes: int) -> None:
    lines = lines_of(PAGE)
    assert steady_row(nodes, SEED) in lines
    # The others change with the order in which anything is said, and only their places have to be there.
    assert sum(line.startswith(f"| {nodes} |") for line in lines) == 3


def test_the_command_writes_the_tables_of_the_page_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(MARKS)
    ran = subprocess.run(
        [*COMMAND, "--nodes=3,5", f"--markdown={page}"], check=False, capture_output=True, text=True, timeout=100
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert lines_of(page) == ran.stdout.splitlines()
    assert page.read_text().startswith("# ours\n")
    assert page.read_text().endswith("more\n")
    for table in ran.stdout.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1
        assert len(rows) in (0, 4)


def test_the_seed_alone_decides() -> None:
    assert storm(10, 3, seed=7) == storm(10, 3, seed=7) != storm(10, 3, seed=8)
    assert deaths(10, seed=7) == deaths(10, seed=7)


# The network itself.


def test_those_who_are_acquainted_are_as_if_they_had_met() -> None:
    network, nodes = acquainted(5, 1)
    assert network.agree()
    met = Network(1)
    others = met.add(5)
    for node in others[1:]:
        met.join(node, others[0])
    met.until(met.agree, within=5)
    assert nodes[0].membership.version == others[0].membership.version, "of the same seed"
    assert nodes[0].membership.members == others[0].membership.members


@pytest.mark.parametrize("loss", [0.0, 0.25, 1.0])
def test_as_many_are_lost_as_should_be(loss: float) -> None:
    network, nodes = acquainted(2, 1)
    network.loss = loss
    for number in range(1000):
        network._carry(nodes[0], nodes[1], Message(nodes[0].id, "", f"{number}", "_odd"))
    network.run(2 * DELAY_S)
    assert nodes[1].membership.dropped == pytest.approx(1000 * (1 - loss), abs=60 if loss % 1 else 0)


def test_nobody_hears_what_was_said_before_it_listened() -> None:
    network = Network(1)
    nodes = network.add(2)
    network.acquaint(nodes)
    assert network.messages[KEEPALIVE] == 0
    network.run(3)
    assert 0 < network.messages[KEEPALIVE] <= 6


def test_what_is_not_so_in_time_ends_the_measurement() -> None:
    network, _ = acquainted(2, 1)
    with pytest.raises(BenchError, match="5 simulated seconds"):
        network.until(lambda: False, within=5)


def test_the_dead_do_nothing() -> None:
    network, nodes = acquainted(3, 1)
    network.kill(nodes[0])
    network.run(10)
    assert nodes[0].events == []
    assert network.live == nodes[1:]
    assert all(node.told(Failed) for node in network.live)
