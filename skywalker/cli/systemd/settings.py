"""The example of a config file and of an environment file: every setting, commented out."""

from __future__ import annotations

import json
import textwrap
from typing import Final

from skywalker.config import SETTINGS, TABLES
from skywalker.setting import Setting

_WIDTH: Final = 110

_ACCESS: Final = f"""
# Who may come in, and what they may do; without any such table, whoever gets to a door may do everything.
#[access.NAME]
# What shows that it is them, one is enough: what `skywalker token new` prints, names in a certificate (tls_ca), users
# of this machine (unix), networks.
#token = "sha256:{64 * "0"}"
#certificate = ["web-1"]
#user = ["www-data"]
#network = ["10.0.0.0/8"]
# Topics on which they may do it: one, or all that begin so.
#send = ["jobs", "jobs/*"]
#recv = []
#publish = []
#subscribe = ["*"]
# Whether they may see figures, and whether they are a node of the cluster, trusted with everything.
#admin = false
#node = false
# How many at each worker: calls a second, calls that wait, connections. Any number, unless it says so here.
#rate = 1000
#in_flight = 100
#connections = 10
"""


def config_file() -> str:
    """Return an example config: for each key what it is, its unit and range, and its default."""
    parts = [
        "# Settings of a skywalker node. Each is shown with its default; to change one, take away the # before it.\n"
        "# Then: skywalker check FILE, and reload or restart the node. Times and sizes are bare numbers or as here.\n"
    ]
    for table in ("", *TABLES):
        if table:
            parts.append(f"\n[{table}]\n")
        parts += [_entry(each) for each in SETTINGS if each.table == table]
    return "".join([*parts, _ACCESS])


def environment_file() -> str:
    """Return an example of an environment file: for each variable its default."""
    head = (
        "# Variables of a skywalker node; they outdo its config file, which says what each is. They are read when the\n"
        "# node starts, not when it is reloaded. To set one, take away the # before it.\n"
    )
    return head + "".join(f"#{each.variable}={each.shown(each.default)}\n" for each in SETTINGS)


def _entry(setting: Setting) -> str:
    unit = "in bytes, " if setting.metavar == "SIZE" else ""  # of times what is allowed says it
    help = setting.help[0].upper() + setting.help[1:]
    text = f"{help}. It is {unit}{setting.allowed}."
    text = textwrap.fill(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return f"\n{text}\n#{setting.key} = {_default(setting)}\n"


def _default(setting: Setting) -> str:
    shown = setting.shown(setting.default)
    # What is shown of times and sizes is text: they have their unit.
    return shown if setting.is_switch or setting.metavar == "N" else json.dumps(shown, ensure_ascii=False)
