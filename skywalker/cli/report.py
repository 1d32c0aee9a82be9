"""`skywalker report`: how nodes are at this moment, as text or JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from skywalker.cli import exits, terminal
from skywalker.cli.admin_api import FAILURES, AdminAddress, AdminApi, asked_nodes, node_arguments, reading
from skywalker.cli.credentials import Credentials
from skywalker.cli.node import VIEWS, Table, facts
from skywalker.cli.options import failed, result
from skywalker.cli.terminal import aligned

ROWS: Final = 20
"""Rows of each table: what stands first is what there is most to say of."""

AT_ONCE: Final = 32
"""Nodes that are asked at a time, so that those that do not answer take the time of one or two."""

DIM, BOLD = "2", "1"


@click.command(short_help="Print the state of nodes")
@node_arguments
@click.option("--json", "as_json", is_flag=True, help="print a line of JSON for each node, with all that it tells")
def report(addresses: tuple[AdminAddress, ...], cluster: bool, credentials: Credentials, as_json: bool) -> int:
    """Print one snapshot of the nodes with admin servers at ADDRESS..., each host:port, or https://host:port.

    The tables have what stands out: the topics where somebody waits longest, the connections that leave most unread,
    the latest that were closed.
    """
    from concurrent.futures import ThreadPoolExecutor  # only now: help should be quick

    nodes = asked_nodes(addresses, cluster, credentials)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        looks = [threads.submit(_look, api, as_json) for api in nodes]
        status = exits.OK
        for number, look in enumerate(looks):
            started = time.monotonic()
            try:
                page = look.result()
            except FAILURES as error:
                status = status or exits.of(error)
                if as_json:
                    terminal.write(failed(error, started, address=str(nodes[number].address)))
                else:
                    terminal.complain(str(error))
            else:
                terminal.write(page)
    return status


def _look(api: AdminApi, as_json: bool) -> bytes:
    started = time.monotonic()
    documents: dict[str, dict[str, Any]] = {}
    for view in VIEWS:
        if view.path not in documents:
            order = {"order": order} if (order := view.order(view.by)) else {}
            documents[view.path] = api.get(view.path, **order, **({"limit": ROWS} if order else {}))
    if as_json:
        by_name = {path.rpartition("/")[2]: document for path, document in documents.items()}
        return result("answered", started, address=str(api.address), **by_name)
    with reading(api.address):
        tables = [(view.name, view.table(documents[view.path]), view) for view in VIEWS]
        lines = [*_facts(documents["/api/state"])]
        for name, table, view in tables:
            rows = table.arranged(view.by, view.descending)[:ROWS]
            lines += _section(name, table, rows)
    return "".join(f"{line}\n" for line in ["", *lines]).encode(errors="replace")


def _facts(state: dict[str, Any]) -> Iterator[str]:
    for label, text in facts(state):
        yield f"  {terminal.painted(f'{label:<13}', DIM)}{text}"


def _section(name: str, table: Table, rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    yield ""
    yield f"  {terminal.painted(name, BOLD)}{f': {table.note}' if table.note else ''}"
    if rows:
        lines = aligned(
            [[column.title for column in table.columns], *map(table.cells, rows)],
            [column.right for column in table.columns],
        )
        yield f"  {terminal.painted(next(lines), DIM)}"
        yield from (f"  {line}" for line in lines)
    else:
        yield "  none"
