"""What pyproject.toml cannot say: the server's core and the hot modules are compiled where that is possible.

The core is C, and a node needs it. The hot modules of the library become extension modules of the same names; the .pxd
files beside them say which names have C types. It is all of these or none, so that one question tells what there is.
Without a compiler there are the library and the command line, whose modules do as they are, and no server.

A wheel is built outside of this directory, which another environment may be using right now.
Only an editable installation and `build_ext --inplace` write here: this is where they install.

What is built here is for those who work on it, and checks its assertions. A wheel is a release, which does not.
SKYWALKER_ASSERTIONS=0 or 1 has either built the other way: with 0, `build_ext --inplace` makes a release to measure.
"""

from __future__ import annotations

import atexit
import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.extension import Extension

COMPILED = sorted(path.with_suffix(".py") for path in Path("skywalker").rglob("*.pxd"))

# The core of a worker is C, which a .pyx makes known to Python.
CORE = Path("workers", "core")

# By which tests know its parts: of no use to anybody else, and in no wheel.
PARTS = Path("tests", "workers", "core", "_parts.pyx")

# Python's own -O3 -g takes half as long again as -O2, and gains nothing here. -O1 takes two thirds of it, for those who
# compile often. Who says what he wants gets that.
FLAGS = {"a release": ["-O2", "-g0"], "checked": ["-O1", "-g0"]}

# pip shows nothing of what a build says, but the name of the wheel that it makes. This is a part of it, after a number
# as it must be.
PLAIN = "0_not_compiled"

# What is compiled in place is compiled anew where this file says that it was compiled the other way.
ASSERTIONS_FILE = Path("build", f"assertions-{sys.implementation.cache_tag}")


def elsewhere() -> dict[str, dict[str, str]]:
    """Return options that put whatever a wheel is made of into a directory that ends with this process."""
    if not {"bdist_wheel", "egg_info"}.intersection(sys.argv):
        return {}
    scratch = TemporaryDirectory(prefix="skywalker-build-")
    atexit.register(scratch.cleanup)
    return {"build": {"build_base": scratch.name}, "egg_info": {"egg_base": scratch.name}}


class BuildIfPossible(build_ext):
    """Compiles the extensions, or goes on without them and says so: there is a client then, and no server."""

    def initialize_options(self) -> None:
        """Compile as many at once as there are cores: an editable installation forgets what `options` says of that."""
        super().initialize_options()
        self.parallel = os.cpu_count()

    def run(self) -> None:
        """Build all, or leave none."""
        in_place = bool(self.inplace)
        try:
            from Cython.Build import cythonize
        except ImportError as error:
            self.go_without(error, in_place=in_place)
            return
        # Annotations stay what they are in Python: promises to readers, of which int is wider than C's.
        directives = {"language_level": 3, "annotation_typing": False}
        made = cythonize(
            self.extensions,
            build_dir=None if in_place else self.build_temp,
            compiler_directives=directives,
            quiet=True,
        )
        for extension, in_c in zip(self.extensions, made, strict=True):
            extension.sources = in_c.sources
        self.choose_assertions(in_place=in_place)
        if in_place:
            self.forget_former()
        try:
            super().run()
        except Exception as error:
            # No compiler, no headers, a full disk: whatever it is, clients do without.
            self.go_without(error, in_place=in_place)

    def forget_former(self) -> None:
        """Take away what was compiled in place and is to be so no more: it would hide the file beside it."""
        wanted = {Path(self.get_ext_fullpath(extension.name)).resolve() for extension in self.extensions}
        for package in ("skywalker", "workers"):
            for path in Path(package).rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
                if path.resolve() not in wanted:
                    path.unlink()

    def choose_assertions(self, *, in_place: bool) -> None:
        """Have assertions checked, or left out, and the C compiler do as befits that."""
        default = "1" if in_place else "0"
        wanted = os.environ.get("SKYWALKER_ASSERTIONS", default)
        if wanted not in ("0", "1"):
            raise SystemExit(f"SKYWALKER_ASSERTIONS is {wanted!r}: it is 0 or 1, or not there, which is {default} here")
        for extension in self.extensions:
            if "CFLAGS" not in os.environ:
                extension.extra_compile_args += FLAGS["a release" if wanted == "0" else "checked"]
            if wanted == "0":
                extension.define_macros.append(("CYTHON_WITHOUT_ASSERTIONS", "1"))
            else:
                extension.undef_macros.append("NDEBUG")  # Python's own flags define it
            if in_place:
                extension.depends.append(str(ASSERTIONS_FILE))
        if in_place and not (ASSERTIONS_FILE.is_file() and ASSERTIONS_FILE.read_text() == wanted):
            ASSERTIONS_FILE.parent.mkdir(exist_ok=True)
            ASSERTIONS_FILE.write_text(wanted)

    def go_without(self, error: Exception, *, in_place: bool) -> None:
        """Take away what there is where this build goes to: it is of an earlier one, or not all of it."""
        self.warn(f"skywalker is not compiled: clients run, at a lower speed, and `skywalker serve` does not: {error}")
        for self.inplace in {False, in_place}:
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
        self.extensions = []
        if wheel := self.distribution.get_command_obj("bdist_wheel", create=False):
            wheel.root_is_pure = True
            wheel.build_number = PLAIN


def core() -> list[Extension]:
    """Return the core, of which each part is C with a header, but the way in; none where that is not there."""
    if not (CORE / "_core.pyx").is_file():
        return []
    own = sorted(str(path) for path in CORE.glob("[!_]*.c"))
    headers = sorted(str(path) for path in (*CORE.glob("*.h"), *CORE.glob("*.px[di]")))
    # What its parts share is nobody else's: no symbol of another library may take its place.
    flags = ["-std=gnu11", "-fvisibility=hidden"]
    found = [
        Extension("workers.core._core", [str(CORE / "_core.pyx"), *own], depends=headers, extra_compile_args=flags)
    ]
    if PARTS.is_file() and not {"bdist_wheel", "sdist"}.intersection(sys.argv):
        found.append(
            Extension(
                "tests.workers.core._parts",
                [str(PARTS), *own],
                depends=headers,
                include_dirs=[str(CORE)],
                extra_compile_args=flags,
            )
        )
    return found


setup(
    ext_modules=[*(Extension(".".join(path.with_suffix("").parts), [str(path)]) for path in COMPILED), *core()],
    cmdclass={"build_ext": BuildIfPossible},
    options=elsewhere(),
)
