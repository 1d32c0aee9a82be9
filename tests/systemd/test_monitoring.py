"""The alert rules and the dashboard: every metric and label in them is one that a node has."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skywalker
from tests.helpers import eventually
from workers.stats import metrics
from workers.stats.metrics import UNKNOWN

DIRECTORY = Path(__file__).parent.parent.parent / "systemd"
RULES = DIRECTORY / "prometheus-rules.yml"
DASHBOARD = DIRECTORY / "grafana-dashboard.json"

OF_SCRAPE = frozenset(("job", "instance"))
WORDS = frozenset(
    ("by", "and", "ignoring", "group_left", "sum", "count", "rate", "increase", "histogram_quantile")
)  # of PromQL, those that are used


@pytest.fixture(scope="module")
def series() -> dict[str, frozenset[str]]:
    """The labels of each series that Prometheus would get of a real node, by name."""
    with (
        skywalker.embedded(workers=1) as stranger,  # which proves nothing, and is named for that
        skywalker.embedded(workers=1, admin=True, join=stranger.address, secret="only known here") as node,
    ):

        def metrics() -> str:
            with urllib.request.urlopen(f"http://{node.admin_address}/metrics", timeout=10) as answer:
                text: str = answer.read().decode()
            return text if "skywalker_ring_unproven{" in text else ""

        text = eventually(metrics)
    found = re.findall(r"(?m)^(skywalker_\w+)(?:{(.*)})? ", text)
    return {"up": frozenset(), **{name: frozenset(re.findall(r'(\w+)="', labels)) for name, labels in found}}


def values(label: str) -> frozenset[str] | None:
    """Return what a label may be, None if anything."""
    every = (*metrics.WORKER_METRICS, *metrics.NODE_METRICS)
    found = {value for figure in every for name, of in figure.labels if name == label for value in of}
    return frozenset(found - {UNKNOWN}) or None


def alerts() -> list[dict[str, str]]:
    """Return the rules. No parser of YAML is needed for the little that this file has of it; nothing else passes."""
    found: list[dict[str, str]] = []
    folded = ""
    for line in RULES.read_text().partition("    rules:\n")[2].splitlines():
        if folded and line.startswith("          "):
            found[-1][folded] += " " + line.strip()
            continue
        folded = ""
        if not line:
            continue
        if line == "        annotations:":
            folded = "annotations"
            found[-1][folded] = ""
            continue
        entry = re.fullmatch(r"(      - (?=alert)|        )(alert|expr|for|labels): (.+)", line)
        assert entry, f"not understood: {line}"
        if entry[2] == "alert":
            found.append({})
        assert entry[2] not in found[-1], f"twice: {line}"
        if entry[3] == ">-":
            folded = entry[2]
        found[-1][entry[2]] = "" if folded else entry[3]
    return found


def panels() -> list[dict[str, Any]]:
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str, set[str]]]:
    """Yield where each expression stands, it, and the labels that texts beside it name."""
    for alert in alerts():
        yield alert["alert"], alert["expr"], set(re.findall(r"\$labels\.(\w+)", alert["annotations"]))
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))


@pytest.mark.parametrize(
    ("where", "expression", "shown"), [pytest.param(*each, id=f"{each[0]}-{n}") for n, each in enumerate(expressions())]
)
def test_an_expression_names_series_and_labels_that_there_are(
    series: dict[str, frozenset[str]], where: str, expression: str, shown: set[str]
) -> None:
    found = re.findall(r"\b(up|skywalker_\w+)\b(?:{([^}]*)})?", expression)
    assert found
    labels = OF_SCRAPE.union(*(series[name] for name, _ in found))
    for name, matchers in found:
        for label, value in re.findall(r'(\w+)(?:=~|!=|!~|=)"([^"]*)"', matchers):
            assert label in series[name] | OF_SCRAPE, f"{name} has no label {label}"
            allowed = values(label)
            if label not in OF_SCRAPE and allowed is not None and label != "process":
                assert set(value.split("|")) <= allowed, f"{label} is never {value}"
    grouped = [label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")]
    assert set(grouped) <= labels
    # What a text names must be left of the labels.
    last = re.match(r"(?:sum|count) by \(([^)]*)\)", expression)
    left = set(last[1].split(", ")) if last else (set(grouped) or labels)
    assert shown <= left, f"{where} shows labels that are added up over"
    bare = re.sub(r'"[^"]*"|{[^}]*}|\[[^]]*\]|\b(?:up|skywalker_\w+)\b|\((?:\w+, )*\w*\)', " ", expression)
    assert set(re.findall(r"[A-Za-z_]\w*", bare)) <= WORDS
    assert [expression.count(each) for each in "({["] == [expression.count(each) for each in ")}]"]


def test_the_names_of_rates_are_counters_and_of_others_are_not() -> None:
    for where, expression, _ in expressions():
        changing = set(re.findall(r"(?:rate|increase)\((\w+)", expression))
        for name in re.findall(r"skywalker_\w+", expression):
            assert (name in changing) == name.endswith(("_total", "_bucket")), f"{where}: {name}"


def test_each_alert_says_what_happened_and_what_to_do() -> None:
    found = alerts()
    assert len({alert["alert"] for alert in found}) == len(found) >= 14
    for alert in found:
        assert alert.keys() >= {"alert", "expr", "labels", "annotations"}
        assert alert["labels"] in ("{severity: critical}", "{severity: warning}")
        assert re.fullmatch(r' summary: "[^"]+" description: "[^"]+"', alert["annotations"]), alert["alert"]
        assert re.fullmatch(r"\d+m", alert.get("for", "1m"))


def test_the_dashboard_shows_every_figure_somewhere_and_no_panel_covers_another(
    series: dict[str, frozenset[str]],
) -> None:
    text = " ".join(expression for _, expression, _ in expressions())
    missing = [name for name in series if name.removesuffix("_sum").removesuffix("_count") == name and name not in text]
    assert sorted(missing) == ["skywalker_info", "skywalker_started"]
    cells: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        covered = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & covered
        assert at["x"] + at["w"] <= 24
        cells |= covered
