"""What pyproject.toml cannot say: the hot modules are compiled where that is possible.

The very files run as they are without a compiler. With one they become extension modules of
the same names; the .pxd files beside them say which names have C types. They know each
other's types, so it is all of them or none.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.extension import Extension

COMPILED = sorted(
    path.with_suffix(".py") for package in ("skywalker", "workers") for path in Path(package).rglob("[!_]*.pxd")
)

# Python's own -O3 -g takes half as long again, and gains nothing here. Who says what he wants gets that.
FLAGS = [] if "CFLAGS" in os.environ else ["-O2", "-g0"]


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    names = [".".join(path.with_suffix("").parts) for path in COMPILED]
    made = [Extension(name, [str(path)], extra_compile_args=FLAGS) for name, path in zip(names, COMPILED, strict=True)]
    # Annotations stay what they are in Python: promises to readers, of which int is wider than C's.
    directives = {"language_level": 3, "annotation_typing": False}
    return cythonize(made, compiler_directives=directives, quiet=True)


class BuildIfPossible(build_ext):
    """Compiles the extensions, or goes on without them and says so."""

    def initialize_options(self) -> None:
        """Compile as many at once as there are cores: an editable installation forgets what `options` says of that."""
        super().initialize_options()
        self.parallel = os.cpu_count()

    def run(self) -> None:
        """Build all, or leave none: one from an earlier build would be out of date."""
        try:
            super().run()
        except Exception as error:
            # No compiler, no headers, a full disk: whatever it is, the plain files do.
            self.warn(f"skywalker is not compiled, and runs at a sixth to two thirds of the speed: {error}")
            for path in COMPILED:
                for old in path.parent.glob(f"{path.stem}.*.so"):
                    old.unlink()
            self.extensions = []


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildIfPossible})
