"""The console: what a node does, on one page that asks nobody but the node.

page.html holds the places of the style and of the scripts, which are put there as they are: a
browser makes one request. What the page shows it asks of /api/, relative to where it was found.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Final

_FILES: Final = resources.files(__package__)
_STYLE: Final = "page.css"
_SCRIPTS: Final = ("words.js", "series.js", "chart.js", "ring.js", "table.js", "troubles.js", "page.js")
"""In the order of their use; together they are one module."""


def _read(*names: str) -> str:
    return "\n" + "\n".join(_FILES.joinpath(name).read_text("utf-8") for name in names)


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def page() -> tuple[bytes, str]:
    """Return the page in UTF-8, and its Content-Security-Policy: a script that is not its own does not run."""
    style, script = _read(_STYLE), _read(*_SCRIPTS)
    text = _FILES.joinpath("page.html").read_text("utf-8")
    text = text.replace("<style></style>", f"<style>{style}</style>", 1)
    text = text.replace('<script type="module"></script>', f'<script type="module">{script}</script>', 1)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode(), policy
