"""What pyproject.toml cannot say: the hot modules are compiled where that is possible.

The very files run as they are without a compiler. With one they become extension modules of
the same names; the .pxd files beside them say which names have C types.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import setup
from setuptools.extension import Extension

COMPILED = sorted(
    path.with_suffix(".py") for package in ("skywalker", "workers") for path in Path(package).rglob("[!_]*.pxd")
)


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    names = [".".join(path.with_suffix("").parts) for path in COMPILED]
    made = [
        Extension(name, [str(path)], optional=True, extra_compile_args=["-O2"])
        for name, path in zip(names, COMPILED, strict=True)
    ]
    # Annotations stay what they are in Python: promises to readers, of which int is wider than C's.
    directives = {"language_level": 3, "annotation_typing": False}
    return cythonize(made, compiler_directives=directives, quiet=True)


setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count()}})
