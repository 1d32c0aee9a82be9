"""What the commands of the benchmarks refuse, before anything is measured."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from bench import command, fanout, peers, scaling
from bench.silk import __main__ as silk

SIZES = [(silk.main, f"--nodes={nodes}") for nodes in ("", "2", "3,", "a", "3,-5", "3 10")]


@pytest.mark.parametrize(
    ("main", "option"),
    [
        *((fanout.main, option) for option in ("--load=3x3", "--server=kafka", "--runs=0", "--subscribers=0")),
        *((peers.main, option) for option in ("--shape=3x3", "--peer=kafka", "--seconds=0", "--plot=x.txt")),
        (peers.main, "--plot=no/such.svg"),
        *((scaling.main, option) for option in ("--workers=0", "--workers=1,x", "--shape=8", "--shape=1x257")),
        *SIZES,
        *((command.bench, option) for option in ("--size=7", "--in-flight=257", "--rate=0", "--timeout=soon")),
        *((command.bench, option) for option in ("--connect=:99999999", "--plot=picture.gif")),
    ],
)
def test_an_option_that_makes_no_sense_is_a_usage_error(main: click.Command, option: str) -> None:
    ran = CliRunner().invoke(main, [option])
    assert ran.exit_code == 2
    assert option.split("=")[0] in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--start=1", "--pairs=1", "--in-flight=2", "--topics=3"], "3 topics"),
        (["--start=1", "--pid=1"], "--pid"),
        (["idle", "--connections=0"], "--connections"),
    ],
)
def test_options_that_make_no_sense_together_are_a_usage_error(arguments: list[str], named: str) -> None:
    ran = CliRunner().invoke(command.bench, arguments)
    assert ran.exit_code == 2
    assert named in ran.stderr
