"""`skywalker systemd`: write the files by which systemd runs a node, or print one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from skywalker import config
from skywalker.cli import exits, terminal
from skywalker.cli.systemd.files import CONFIG, FILES, File, warnings
from skywalker.cli.systemd.plan import DEFAULT_USER, Plan, closed_directories
from skywalker.errors import SkywalkerError

KEPT: Final = ".old"
"""What a file that --force overwrites is called from then on."""

_NEXT: Final = f"""
next, as root:
  systemd-sysusers                                     make the user
  systemd-tmpfiles --create skywalker.conf             let it read the settings
  $EDITOR {CONFIG}               set what is not to be the default
  skywalker check {CONFIG}
  skywalker systemd install --force                    if that changed an address, workers or drain_timeout_s
  systemctl daemon-reload
  systemctl enable --now skywalker.service             or skywalker.socket, so that a restart refuses nobody
"""


class CannotWrite(SkywalkerError):
    """A file cannot be read or written."""


@click.group(short_help="Let systemd run a node")
def systemd() -> None:
    """The files by which systemd runs a node: units, its user, and examples of its settings.

    \b
      skywalker systemd install --dry-run        says what would be written
      skywalker systemd show skywalker.service   prints one file
    """


@systemd.command(short_help="Write the files; nothing is started")
@click.option("--root", type=click.Path(path_type=Path), default=Path("/"), help="write below DIR", metavar="DIR")
@click.option("--user", default=DEFAULT_USER, metavar="NAME", show_default=True, help="the user that nodes run as")
@click.option("--dry-run", is_flag=True, help="write nothing, only say what would be")
@click.option("--force", is_flag=True, help=f"overwrite files that differ; what they were is kept as FILE{KEPT}")
def install(root: Path, user: str, dry_run: bool, force: bool) -> int:
    """Write the files for this machine and for the settings in /etc/skywalker/skywalker.toml, if that is there.

    Files that are there and differ are left alone unless --force is given; settings are always left alone.
    Exit status: 0 all is as it should be, 1 a unit was left alone or cannot be written, 2 the settings are wrong.
    """
    settings = _below(root, CONFIG)
    plan = Plan.here(config.load(file=settings if settings.exists() else None), user)
    planned = [(file, _below(root, file.path), file.text(plan)) for file in FILES]
    steps = [(path, text, _step(file, path, text)) for file, path, text in planned]
    left = [] if force or dry_run else [path for path, _, step in steps if step == "overwrite"]
    said = []
    try:
        for path, text, step in steps:
            done = f"would {step}" if dry_run and step != "keep" else "leave" if path in left else step
            if done in ("write", "overwrite"):
                _write(path, text)
            said.append(f"{done:<15}  {path}\n")
    finally:
        terminal.say("".join(said))  # only now: who reads no more of it wants the rest to be written all the same
    for warning in warnings(plan, closed_directories()):
        terminal.complain(f"warning: {warning}")
    for path in left:
        terminal.complain(
            f"{path}: not as this would write it, so it is left alone: --force overwrites it, and keeps the old one as "
            f"{path.name}{KEPT}; what you want to differ goes into a drop-in, see systemctl edit"
        )
    terminal.say(_NEXT)
    return exits.FAILED if left else exits.OK


@systemd.command(short_help="Print one file")
@click.argument("name", type=click.Choice([file.name for file in FILES]), metavar="NAME")
@click.option("--user", default=DEFAULT_USER, metavar="NAME", show_default=True, help="the user that nodes run as")
def show(name: str, user: str) -> int:
    """Print the file NAME as `install` would write it on this machine for the default settings."""
    text = next(file.text for file in FILES if file.name == name)
    terminal.write(text(Plan.here(config.Config(), user)).encode())
    return exits.OK


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _step(file: File, path: Path, text: str) -> str:
    """Return what is to be done about a file, in a word."""
    try:
        if path.read_text("utf-8", errors="replace") == text:
            return "keep"
    except FileNotFoundError:
        return "write"
    except OSError as error:
        raise CannotWrite(f"{path}: cannot be read: {error.strerror}") from error
    return "keep" if file.is_yours else "overwrite"


def _write(path: Path, text: str) -> None:
    """Write a file at once or not at all: there is one all the while. What it was is kept beside it."""
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_text(text, "utf-8")
            if os.path.lexists(path):
                kept = path.with_name(path.name + KEPT)
                kept.unlink(missing_ok=True)
                os.link(path, kept, follow_symlinks=False)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(f"{path}: cannot be written: {error.strerror}") from error
