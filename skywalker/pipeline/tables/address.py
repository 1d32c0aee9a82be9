"""The option that says where the nodes are, and how to get to them."""

from __future__ import annotations

from typing import Final

from skywalker.clients.settings import CLOJURE_KEYWORD, Settings
from skywalker.errors import ConfigError, LocalProtocolError
from skywalker.limits import DEFAULT_ADDRESS, MAX_FRAME
from skywalker.pipeline.options import Options

ADDRESS: Final = "address"
"""Where the nodes are, as skywalker.connect() takes it: a list of hosts, silk://, dns:// or consul://."""


def address_of(options: Options) -> str:
    """Return the option `address`. Raises ConfigError if it is empty, since that is a mistake: a variable not set."""
    if options.is_blank(ADDRESS):
        raise options.wrong(ADDRESS, f"the address of a node; {DEFAULT_ADDRESS} is meant only where it is left out")
    return options.text(ADDRESS, DEFAULT_ADDRESS)


def settings(address: str, *, name: str, ack: bool = False) -> Settings:
    """Return how to get to the nodes at the option `address`, over one connection, and call ourselves `name` there.

    With `ack`, a sender hears True only once its value was acknowledged. Raises ConfigError for what is no address.
    """
    try:
        return Settings.of(
            address,
            dialect="current",
            timeout_value=CLOJURE_KEYWORD,
            name=name,
            ack=ack,
            token=None,
            max_frame=MAX_FRAME,
            direct=False,
        )
    except LocalProtocolError as error:
        raise ConfigError(f"option {ADDRESS!r}: {error}") from error
