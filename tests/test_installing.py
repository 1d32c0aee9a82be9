"""Installing a checkout: what it makes, with a compiler and without, and what it leaves alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FRAMES = f"skywalker/wire/frames{sysconfig.get_config_var('EXT_SUFFIX')}"
STALE = b"a module that another environment uses"

NO_COMPILER = {"CC": "/nonexistent", "LDSHARED": "/nonexistent"}

needs_a_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of this checkout that has one hot module, as there are many and each takes its time."""
    pytest.importorskip("setuptools")
    pytest.importorskip("Cython")
    ours = tmp_path / "checkout"
    generated = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for name in ("skywalker", "workers", "bench"):
        shutil.copytree(ROOT / name, ours / name, ignore=generated)
    for path in (*ROOT.glob("*.py"), ROOT / "pyproject.toml", ROOT / "LICENSE"):
        shutil.copy(path, ours)
    for header in ours.rglob("*.pxd"):
        if header.name not in {"__init__.pxd", "frames.pxd"}:
            header.unlink()
    (ours / FRAMES).write_bytes(STALE)
    return ours


def contents(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tree.rglob("*")
        if path.is_file()
    }


def run(tree: Path, *words: str, **environ: str) -> str:
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env={name: value for name, value in os.environ.items() if name != "CFLAGS"} | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def wheel(tree: Path, **environ: str) -> tuple[str, list[str]]:
    """Have pip make a wheel of a tree; return what pip says, and the compiled modules in the wheel."""
    made = tree.parent / "wheels"
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(made))
    said = run(tree, "-m", "pip", "wheel", *options, str(tree), **environ)
    (found,) = made.iterdir()
    return said, [name for name in zipfile.ZipFile(found).namelist() if name.endswith((".so", ".c"))]


def test_without_a_compiler_a_wheel_is_plain_and_says_so_and_the_tree_stays_as_it_is(tree: Path) -> None:
    before = contents(tree)
    said, compiled = wheel(tree, **NO_COMPILER)
    assert contents(tree) == before
    assert compiled == []
    assert "-0_not_compiled-py3-none-any.whl" in said


@needs_a_compiler
def test_with_a_compiler_a_wheel_has_the_hot_modules_and_the_tree_stays_as_it_is(tree: Path) -> None:
    before = contents(tree)
    said, compiled = wheel(tree)
    assert contents(tree) == before
    assert compiled == [FRAMES]
    assert "not_compiled" not in said


def test_what_a_frontend_asks_before_it_builds_leaves_the_tree_as_it_is(tree: Path) -> None:
    before = contents(tree)
    run(tree, "-c", "from setuptools import build_meta as made; made.get_requires_for_build_wheel()")
    assert contents(tree) == before


EDITABLE = "import sys; from setuptools import build_meta as made; made.build_editable(sys.argv[1])"


@needs_a_compiler
@pytest.mark.parametrize("words", [("-c", EDITABLE, "."), ("setup.py", "build_ext", "--inplace")])
def test_an_editable_installation_compiles_in_the_tree(tree: Path, words: tuple[str, ...]) -> None:
    run(tree, *words)
    assert (tree / FRAMES).read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize("words", [("-c", EDITABLE, "."), ("setup.py", "build_ext", "--inplace")])
def test_an_editable_installation_without_a_compiler_leaves_no_module_that_is_out_of_date(
    tree: Path, words: tuple[str, ...]
) -> None:
    said = run(tree, *words, **NO_COMPILER)
    assert not (tree / FRAMES).exists()
    assert "skywalker is not compiled" in said
