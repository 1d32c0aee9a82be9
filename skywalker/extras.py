"""Packages that a part of skywalker needs and that are not always installed. Loads none of them."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

ADMIN: Final = ("starlette", "anyio", "uvicorn", "h11", "prometheus_client", "psutil")
"""What the admin server imports, by itself or by what it imports."""


CERTS: Final = ("cryptography",)
"""What certificates are made with."""


def missing(packages: Iterable[str]) -> list[str]:
    """Return the names of those that are not there."""
    return [name for name in packages if find_spec(name) is None]


def command_for(extra: str) -> str:
    """Return the command that adds what `extra` stands for to this very installation.

    It names where skywalker came from, as on an index its name is somebody else's. If that is not known, or is no
    longer there, it names the packages.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # only now: it loads much, and is seldom needed

    try:
        ours = distribution("skywalker")
    except PackageNotFoundError:
        words = [f"{Path(__file__).parents[1]}[{extra}]"]
    else:
        words = _from_origin(json.loads(ours.read_text("direct_url.json") or "{}"), extra) or _packages(ours, extra)
    return shlex.join([sys.executable, "-m", "pip", "install", *words])


def _from_origin(origin: dict[str, Any], extra: str) -> list[str]:
    """Return what pip is to install for a direct_url.json, see packaging.python.org; nothing if it is not there."""
    url = str(origin.get("url", ""))
    parts = urlsplit(url)
    if parts.scheme == "file" and not Path(unquote(parts.path)).exists():
        return []
    if "dir_info" in origin:
        directory = f"{unquote(parts.path)}[{extra}]"
        return ["--editable", directory] if origin["dir_info"].get("editable") else [directory]
    if found := origin.get("vcs_info"):
        url = f"{found['vcs']}+{url}@{found.get('requested_revision') or found['commit_id']}"
    if "subdirectory" in origin:
        url += f"#subdirectory={origin['subdirectory']}"
    return [f"skywalker[{extra}] @ {url}"] if url else []


def _packages(ours: Distribution, extra: str) -> list[str]:
    """Return the requirements that come with an extra only."""
    halves = (requirement.partition(";") for requirement in ours.requires or [])
    return [name.strip() for name, _, marker in halves if re.search(rf"""extra == ['"]{extra}['"]""", marker)]
