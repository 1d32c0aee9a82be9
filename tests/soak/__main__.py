"""`python -m tests.soak`: see docs/bench.md."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import click

from bench.figures.command import show_progress
from skywalker.errors import SkywalkerError
from tests.soak import page
from tests.soak.run import soak
from tests.soak.stage import NAMES


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--minutes", type=click.FloatRange(0.1, 10_000), default=10.0, help="How long.")
@click.option("--nodes", type=click.IntRange(1, len(NAMES)), default=2, help="Of a cluster; the first is spared.")
@click.option("--tls", is_flag=True, help="Nodes speak nothing but TLS, and let in only whom they know.")
@click.option("--seed", type=int, help="Repeats a mixture, if not its moments.")
@click.option("--logs", type=click.Path(path_type=Path), metavar="DIR", help="Keep what the nodes logged.")
def main(minutes: float, nodes: int, tls: bool, seed: int | None, logs: Path | None) -> None:
    """Use and hit nodes of skywalker for a long time, and see that they are afterwards what they were before.

    The exit status is 1 if something has grown or is left over, an answer was wrong, or a node has made a mistake.
    """
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    click.echo(f"soak of {minutes:g} minutes, {nodes} nodes{', TLS' if tls else ''}, --seed {seed}\n")
    try:
        found = soak(60 * minutes, nodes, seed, tls=tls, logs=logs, say=show_progress)
        show_progress("")
        click.echo("\n".join(page.lines(found)))
    except (AssertionError, SkywalkerError) as error:
        raise click.ClickException(str(error)) from error
    finally:
        show_progress("")
    sys.exit(bool(found.faults))


if __name__ == "__main__":
    main()
