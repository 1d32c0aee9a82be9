"""Settings, from a TOML file, from the environment, and who may do what.

Any file is a config or a ConfigError, which is one line. Each value that it gives is within its range, and what is
shown of it reads back as the same. Whoever it lets in may do only what it says, and no token of it is shown.

The first byte of an input says whether the rest is a file, or "key=text" in lines, as the environment has them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from skywalker import config
from skywalker.access.access import Access
from skywalker.access.principal import ACTIONS
from skywalker.config import SETTINGS, Config
from skywalker.errors import ConfigError
from skywalker.wire import values

FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
FILE = Path(FOLDER.name) / "skywalker.toml"
TOPICS = [values.pack(topic) for topic in ("jobs", "jobs/a", "other", 7, b"jobs", None)]


def check_input(data: bytes) -> object:
    """Hold the invariant for one file, or one environment."""
    try:
        if data[:1] < b"\x80":
            FILE.write_bytes(data[1:])
            found = config.load(file=FILE)
        else:
            lines = (line.partition("=") for line in data[1:].decode("utf-8", "surrogateescape").split("\n"))
            found = config.load(environ={name: text for name, _, text in lines})
    except ConfigError as error:
        return str(error).replace(str(FILE), "FILE")
    check_config(found)
    names = [] if found.access is None else [principal.name for principal in found.access.principals]
    return [setting.of(found) for setting in SETTINGS], names


def check_config(found: Config) -> None:
    """See that all values can be shown and read back."""
    for setting in SETTINGS:
        value = setting.of(found)
        shown = setting.shown(value)
        again = setting.parse(shown, "shown")
        # Of seconds six digits are shown.
        assert again == value or (isinstance(value, float) and abs(float(again) - value) <= 1e-6), setting.key
        assert setting.accept(value, "value") == value
    if found.access is not None:
        check_access(found.access)


def check_access(access: Access) -> None:
    """See that whoever nobody knows is nobody, and that what is allowed is allowed to somebody known."""
    assert access.by_token("skw_nobody") is None
    assert access.by_certificate(()) is None
    for host in ("127.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1"):
        known = access.by_network(host)
        assert known is None or known in access.principals
    for principal in access.principals:
        for action in ACTIONS:
            allowed = [topic for topic in TOPICS if principal.may(action, topic)]
            assert not allowed or principal.topics[action]
