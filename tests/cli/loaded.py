"""All that commands load once they need it, loaded beforehand: a process that has done so begins them in a moment."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator

# It would start threads, which are not there after a fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

_PACKAGES = ("skywalker", "workers.setup", "workers.access", "workers.engine", "workers.ipc")
_APART = ("skywalker.cli.top", "skywalker.pytest_plugin", "skywalker.pipeline")
"""What is large, and of use to few."""


def _modules() -> Iterator[str]:
    for package in map(importlib.import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_APART) and not module.name.endswith("__main__"):
                yield module.name


for _name in (*_modules(), "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"):
    importlib.import_module(_name)
