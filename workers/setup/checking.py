"""`skywalker check`: whether `skywalker serve` would take a config file. It is an entry point, as `serve` is."""

from __future__ import annotations

import os
from pathlib import Path

import click

from skywalker import config, memory
from skywalker.access import token
from skywalker.cli import terminal
from skywalker.config import SETTINGS


@click.command(short_help="Test a config file")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="print the settings that differ from their defaults")
def check(file: Path, verbose: bool) -> int:
    """Test whether a node could run with the config FILE, and say all that is wrong with it, each with its line.

    Nothing is started, opened or asked; so whether a name has an address, such as that of advertise, is not known.

    Flags and variables, which outdo a file, are not looked at. Exit status: 0 it is good, 2 it is not.
    """
    # Only now: help reads this file too.
    from skywalker.tls.certificate import fault_of
    from workers.ipc import exits
    from workers.setup.faults import faults

    settings, found = faults(file)
    for each in found:
        terminal.complain(token.masked(str(each)))
    if found:
        return exits.USAGE
    fault = fault_of(settings.tls_cert, settings.tls_key) if settings.tls_cert else ""
    terminal.say(f"{file}: ok\n")
    there = memory.address_space()
    short = memory.shortage(settings.limits, settings.workers or os.cpu_count() or 1, there) if there else ""
    for but in filter(None, (fault, short)):
        click.echo(f"{file}: but {but}", err=True)
    if verbose:
        default = config.Config()
        for setting in SETTINGS:
            value = setting.of(settings)
            if value != setting.of(default):
                told = "(not shown)" if setting.secret else setting.shown(value)
                terminal.say(f"{setting.path} = {told}\n")
    return exits.OK
