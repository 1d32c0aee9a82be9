"""Runs the plain files where compiled ones of the same names lie beside them.

Asked for by SKYWALKER_PURE=1, which must be known before the first module loads: to compare
the two, and to have every line in a trace.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Final

PACKAGES: Final = frozenset(("skywalker", "workers"))


class PlainFiles:
    """Finds the modules of our packages, and only as source."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return where the module is; None for one that is not ours, which others find."""
        if path is None or name.partition(".")[0] not in PACKAGES:
            return None
        finders = (FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)) for folder in path)
        return next((spec for finder in finders if (spec := finder.find_spec(name))), None)


def prefer() -> None:
    """Load no compiled module of ours from now on."""
    sys.meta_path.insert(0, PlainFiles)
