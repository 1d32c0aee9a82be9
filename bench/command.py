"""The options of `skywalker-bench`."""

from __future__ import annotations

from typing import Any

import click

from bench.idle import idle_test
from bench.load.command import load_options, load_test, output_options, target_options


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@target_options
@load_options
@output_options
def bench(target: Any, **options: Any) -> None:
    """Have pairs of connections meet on a node, as fast as they can or at a --rate, and show how it does.

    \b
      skywalker-bench --start 2                     a node with 2 workers, started for this
      skywalker-bench --connect 10.0.0.5:3443       one that runs
      skywalker-bench --rate 5000 --plot load.png   at a steady rate, with a picture
      skywalker-bench idle --connections 10000      what waiting costs

    A connection that is lost is dialled again and a call that fails is made again; both are counted. Ctrl-C
    ends it early, with the figures so far. The exit status is 1 if a reply was wrong or a value was lost.
    """
    if click.get_current_context().invoked_subcommand is None:
        load_test(target, **options)


bench.add_command(idle_test)
