"""`skywalker pipeline plan`: what it prints, and how it names what is wrong."""

from __future__ import annotations

import json
import os
import re

import pytest

from skywalker.cli import exits
from skywalker.cli.outcome import run
from skywalker.cli.pipeline.plan import plan

Said = pytest.CaptureFixture[str]


def printed(capfd: Said, *arguments: str) -> str:
    """Return what the command prints if all goes well; standard error is no terminal here, and stays empty."""
    assert run(plan, arguments, "skywalker pipeline plan") == exits.OK
    said = capfd.readouterr()
    assert said.err == ""
    return said.out


def refused(capfd: Said, *arguments: str) -> str:
    """Return what the command says when it is used wrongly; it prints nothing then."""
    assert run(plan, arguments, "skywalker pipeline plan") == exits.USAGE
    said = capfd.readouterr()
    assert said.out == ""
    return " ".join(said.err.split())


def rows(screen: str, title: str) -> list[list[str]]:
    """Return the cells of the table below a title, without its headings."""
    (table,) = [part for part in screen.split("\n\n") if part.strip().startswith(title)]
    return [line.split() for line in table.splitlines()[3:]]


def test_every_size_has_a_line_in_both_tables_and_the_figures_are_those_of_json(
    capfd: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    asked: tuple[str, ...] = (
        "--nodes",
        "3,10",
        "--tokens",
        "8..32",
        "--workers",
        "2",
        "--topics",
        "synthetic:5k",
        "--skew",
        "zipf:1.1",
    )
    asked += ("--rate", "100k", "--worker-rate", "10k", "--remove", "2")
    screen = printed(capfd, *asked)
    document = json.loads(printed(capfd, *asked, "--json"))
    assert document["status"] == "planned"
    value = document["value"]
    assert value["topics"] == 5_000
    assert value["asked"]["topics"] == "synthetic:5k"
    assert value["asked"]["skew"] == "zipf:1.1"
    even, moves = rows(screen, "How even"), rows(screen, "What moves")
    assert len(even) == len(moves) == len(value["clusters"]) == 6
    for line, move, each in zip(even, moves, value["clusters"], strict=True):
        of = [each["ring"]["nodes"][name] for name in ("busiest", "p99", "p50", "least")]
        of += [each[what][who]["busiest"] for what in ("ring", "topics", "calls") for who in ("nodes", "workers")][1:]
        assert line == [str(each["nodes"]), str(each["tokens"]), *(f"{x:.2f}" for x in of), f"{each['bears']:,.0f}"]
        comes, goes = each["comes"], each["goes"]
        assert goes["node"] == 2
        figures = [
            [f"{x['part']:.2%}", f"{x['calls']:.2%}", str(x["others"]), f"{x['most']:.2%}", f"{x['afterwards']:.2f}"]
            for x in (comes, goes)
        ]
        assert move == [str(each["nodes"]), str(each["tokens"]), *figures[0], *figures[1]]
    heat = value["heat"]
    assert f"the hottest        {heat['shares']['1']:.3%} of all calls" in re.sub(
        r"hottest +", "hottest        ", screen
    )
    assert "1 topic asks for more than a worker can do" in screen


def test_without_topics_the_rings_alone_are_told_of(capfd: Said) -> None:
    screen = printed(capfd, "--nodes", "1,4", "--tokens", "16")
    assert "of the topics" not in screen
    assert "calls" not in screen
    assert "Hot topics" not in screen
    assert rows(screen, "How even")[0] == ["1", "16", "1.00", "1.00", "1.00", "1.00"]
    # Of one node none can go.
    assert rows(screen, "What moves")[0][-2:] == ["-", "-"]


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_a_narrow_terminal_goes_without_columns_and_not_without_sizes(
    capfd: Said, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    asked = ("--nodes", "5", "--tokens", "32", "--topics", "synthetic:99", "--skew", "zipf:1", "--workers", "2")
    screen = printed(capfd, *asked)
    for title in ("How even", "What moves"):
        (row,) = rows(screen, title)
        assert row[:2] == ["5", "32"]
        if columns >= 60:
            (table,) = [part for part in screen.split("\n\n") if part.strip().startswith(title)]
            assert max(map(len, table.splitlines()[1:])) <= columns


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--nodes", "0"], "'--nodes': '0': allowed are 1 to 100,000"),
        (["--nodes", "9..3"], "'--nodes': '9..3': the first is more than the last"),
        (["--tokens", "5000"], "'--tokens': '5000': allowed are 1 to 4,096"),
        (["--tokens", "many"], "'--tokens': 'many' is not a whole number"),
        (["--nodes", "100000", "--tokens", "64"], "--nodes 100000 with --tokens 64 make a ring of 6,400,000 tokens"),
        (["--nodes", "3,9", "--remove", "3"], "--remove 3: a cluster of 3 has the nodes 0 to 2"),
        (["--remove", "-1"], "'--remove': '-1' is neither 'busiest' nor the number of a node"),
        (["--workers", "0"], "'--workers'"),
        (["--threads", "65"], "'--threads'"),
        (["--seed", "x"], "'--seed'"),
        (["--skew", "zipf:1"], "--skew says how calls fall on --topics, and there are none"),
        (["--skew", "zipf:99", "--topics", "synthetic:9"], "'--skew': 'zipf:99' is neither"),
        (["--rate", "5"], "--rate is what --topics are called at, and there are none"),
        (["--rate", "0", "--topics", "synthetic:9"], "'--rate': it takes at least 1 call/s"),
        (["--worker-rate", "0.5"], "'--worker-rate': '0.5' is not a whole number"),
        (["--topics", "synthetic:none"], "--topics 'none' is not a whole number"),
        (["--topics", "synthetic:0"], "--topics 'synthetic:0': it takes 1 to"),
        (["--topics", "/nowhere/at/all"], "cannot read topics from /nowhere/at/all: No such file or directory"),
        (["--topics", os.devnull], "there are no topics, or none of them has calls"),
    ],
)
def test_a_bad_option_is_named(capfd: Said, arguments: list[str], problem: str) -> None:
    assert problem in refused(capfd, *arguments)


def test_with_json_a_file_that_cannot_be_used_is_told_as_json(capfd: Said) -> None:
    assert run(plan, ["--topics", "/nowhere", "--json"], "skywalker pipeline plan") == exits.USAGE
    said = json.loads(capfd.readouterr().out)
    assert said["status"] == "not-sent"
    assert said["message"] == "cannot read topics from /nowhere: No such file or directory"
