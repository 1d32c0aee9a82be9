"""A group of commands of which each is loaded when it is called, or when help lists it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class Lazy(click.Group):
    """Commands by name, each with the module that has it under this name."""

    def __init__(self, *arguments: Any, homes: Mapping[str, str], **settings: Any) -> None:
        """Take `homes`, modules by name of command, and what a click.Group takes."""
        super().__init__(*arguments, **settings)
        self._homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which one gets to know them."""
        return [*self._homes]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command; None if there is none of that name."""
        home = self._homes.get(cmd_name)
        return None if home is None else getattr(importlib.import_module(home), cmd_name)
