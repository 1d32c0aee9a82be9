"""`python -m tests.plain MODULE` runs it with the plain files where compiled ones of the same names lie beside them.

So every line is seen by a trace or by atheris, and every method can be replaced. Of the core there is no plain form.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Final

PACKAGES: Final = frozenset(("skywalker", "workers"))


class PlainFiles:
    """Finds the modules of our packages as source, where they have one."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return where the module is; None for one that is not ours, or has no source, which others find."""
        if path is None or name.partition(".")[0] not in PACKAGES:
            return None
        finders = (FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)) for folder in path)
        return next((spec for finder in finders if (spec := finder.find_spec(name))), None)


if __name__ == "__main__":
    assert not PACKAGES & sys.modules.keys(), "it is too late once a module is loaded"
    sys.meta_path.insert(0, PlainFiles)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
