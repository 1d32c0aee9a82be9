"""The application: which nodes it watches, and what it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from skywalker.cli.admin_api import AdminApi
from skywalker.cli.top.node_screen import NodeScreen
from skywalker.cli.top.nodes_screen import NodesScreen
from skywalker.cli.top.watch import Watcher


class Top(Watcher):
    """Watches one node, or `many` of which each can be opened."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "skywalker top"
    CSS = """
    Screen { layout: vertical; }
    #head, #tabs, #note { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #problem { height: auto; padding: 0 1; color: $text-error; text-style: bold; display: none; }
    #head { background: $panel; }
    #note { color: $text-warning; }
    #tabs, #note { display: none; }
    #problem.-shown, #tabs.-shown, #note.-shown { display: block; }
    DataTable { height: 1fr; scrollbar-size: 1 1; scrollbar-color: $panel-lighten-2; scrollbar-background: $surface; }
    DataTable > .datatable--header { background: $surface; color: $text-muted; text-style: none; }
    #filter { height: 1; border: none; padding: 0 1; display: none; background: $boost; }
    #filter.-shown { display: block; }
    """
    BINDINGS: ClassVar = [("q", "quit", "Quit")]

    def __init__(self, apis: Sequence[AdminApi], *, many: bool, every: float = 1.0) -> None:
        """Take the admin servers to ask, and the seconds from one look to the next."""
        super().__init__(every)
        self._apis = apis
        self._many = many

    def on_mount(self) -> None:
        """Open the first screen."""
        self.push_screen(NodesScreen(self._apis) if self._many else NodeScreen(self._apis[0]))
