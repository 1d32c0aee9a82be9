"""`skywalker serve`: the options are made from the table of settings, then the supervisor takes over."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from skywalker import build, config, memory, own_directory
from skywalker.config import SETTINGS, TABLES, Config
from skywalker.errors import ConfigError
from skywalker.setting import Setting


def _option(setting: Setting) -> click.Option:
    if setting.is_switch:
        names = [setting.flag, setting.key]
        text = setting.shown(not setting.default)
        help = f"do not {setting.help}" if setting.default else setting.help
        return click.Option(names, is_flag=True, flag_value=text, default=None, help=help)
    default = f"  [{setting.shown(setting.default)}]" if setting.default != "" else ""
    return click.Option([setting.flag, setting.key], metavar=setting.metavar, help=setting.help + default)


class Serve(click.Command):
    """A command whose help keeps apart what belongs together."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under one heading for each table of settings."""
        tables = {setting.key: setting.table for setting in SETTINGS}
        options = self.get_params(ctx)
        for table in ("", *TABLES):
            with formatter.section(table.capitalize() or "Options"):
                formatter.write_dl(_rows((each for each in options if tables.get(each.name or "", "") == table), ctx))


def _rows(options: Iterable[click.Parameter], ctx: click.Context) -> list[tuple[str, str]]:
    records = (option.get_help_record(ctx) for option in options)
    return [record for record in records if record is not None]


def _need_core() -> None:
    """Raises ConfigError if the core is not there, or is another Python's: the library does without."""
    try:
        importlib.import_module("workers.core._core")
    except ImportError as error:
        raise ConfigError(f"a node needs its compiled core ({error}): {build.HOW}") from None


def _serve(config_file: Path | None, parent_fd: int, **flags: Any) -> int:
    # It waits until the supervisor hears signals: who has settings read again so early does not want the node to end.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    given = {key: text for key, text in flags.items() if text is not None}
    _need_core()
    # Only now: `skywalker --help` reads this file too.
    from workers.engine import credentials
    from workers.process.start import Start
    from workers.setup import cluster, exposure, ports

    def load() -> Config:
        settings = config.load(given, os.environ, config_file)
        ports.check(settings)
        exposure.check(settings)
        cluster.check(settings.cluster)
        memory.check(settings.limits, settings.workers or os.cpu_count() or 1)
        return settings

    def read() -> Config:
        settings = load()
        if settings.journal_settings is not None:
            _check_writable(settings.journal_settings.directory)
        return settings

    # What it writes is the business of who it then is, which may be another than who starts it.
    settings = load()
    if settings.tls_cert:
        credentials.server(settings)  # what is wrong with the files is told before anything is bound
    return Start(settings, parent_fd, read).run()


def _check_writable(journal: Path) -> None:
    """Make the directory of the journal, if it is not there. Raises ConfigError if it cannot be written."""
    try:
        own_directory.make(journal, own_directory.SHARED)
        reason = None if os.access(journal, os.W_OK | os.X_OK) else "the node may not write, or the disk is read-only"
    except FileExistsError:
        reason = "it is not a directory"
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        user = f"user {os.geteuid()}"
        raise ConfigError(f"journal: cannot write to {journal}: {reason}: give a directory that {user} may write to")


serve = Serve(
    "serve",
    callback=_serve,
    short_help="Run a node",
    help="Run a node until SIGTERM or Ctrl-C. Both let it drain: calls that wait get the drain timeout, "
    "then it ends; a second one ends it at once.\n\n"
    "Every option is also a key of the configuration file and a variable, SKYWALKER_PORT for --port; "
    "an option outdoes a variable, a variable the file. Secrets have no option, since everybody sees a command line. "
    "Times may be written as 500ms, 5s or 2m, sizes as 64KiB or 1MiB.",
    params=[
        click.Option(
            ["--config", "config_file"],
            metavar="FILE",
            type=click.Path(path_type=Path),
            envvar="SKYWALKER_CONFIG",
            help="read settings from this TOML file; also SKYWALKER_CONFIG",
        ),
        click.Option(
            ["--parent-fd"],
            type=click.IntRange(-1, 2**31 - 1),
            default=-1,
            hidden=True,
            help="socket on which the program that starts the node is told the address, and is watched; -1 for none",
        ),
        *(_option(setting) for setting in SETTINGS if not setting.secret),
    ],
)
