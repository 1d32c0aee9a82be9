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
BUILD = f"skywalker/build{sysconfig.get_config_var('EXT_SUFFIX')}"
CORE = f"workers/core/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
STALE = b"a module that another environment uses"

NO_COMPILER = {"CC": "/nonexistent", "LDSHARED": "/nonexistent"}

needs_a_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of this checkout that has two hot modules and no core, as there are many and each takes its time."""
    pytest.importorskip("setuptools")
    pytest.importorskip("Cython")
    ours = tmp_path / "checkout"
    generated = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for name in ("skywalker", "workers", "bench"):
        shutil.copytree(ROOT / name, ours / name, ignore=generated)
    for path in (*ROOT.glob("*.py"), ROOT / "pyproject.toml", ROOT / "LICENSE"):
        shutil.copy(path, ours)
    for header in ours.rglob("*.pxd"):
        if header.name not in {"build.pxd", "frames.pxd"}:
            header.unlink()
    (ours / "workers/core/_core.pyx").unlink()
    (ours / FRAMES).write_bytes(STALE)
    return ours


def contents(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tree.rglob("*")
        if path.is_file()
    }


def run(tree: Path, *words: str, status: int = 0, **environ: str) -> str:
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env={name: value for name, value in os.environ.items() if name != "CFLAGS"} | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == status, ran.stdout
    return ran.stdout


def wheel(tree: Path, **environ: str) -> tuple[str, zipfile.ZipFile]:
    """Have pip make a wheel of a tree; return what pip says, and the wheel."""
    made = tree.parent / "wheels"
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(made))
    said = run(tree, "-m", "pip", "wheel", *options, str(tree), **environ)
    (found,) = made.iterdir()
    return said, zipfile.ZipFile(found)


def installed(made: zipfile.ZipFile) -> Path:
    """Install a wheel into a directory of its own, which is returned."""
    name = Path(str(made.filename))
    place = name.parent.parent / "installed"
    run(name.parent, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", f"--target={place}", str(name))
    return place


def compiled(made: zipfile.ZipFile) -> set[str]:
    return {name for name in made.namelist() if name.endswith((".so", ".c"))}


def checks_assertions(place: Path) -> bool:
    """Whether the compiled module below `place` that has a failing assertion raises."""
    program = "from skywalker import build; print(build.COMPILED, build.ASSERTIONS)"
    is_compiled, checks = run(place, "-c", program).split()
    assert is_compiled == "True"
    return checks == "True"


RENDEZVOUS = """
import skywalker
junction = skywalker.LocalJunction()
waiting = junction.begin("recv", "topic")
junction.send("topic", "value")
print(waiting.result())
"""


def test_without_a_compiler_a_wheel_is_for_clients_and_says_so_and_the_tree_stays_as_it_is(tree: Path) -> None:
    before = contents(tree)
    said, made = wheel(tree, **NO_COMPILER)
    assert contents(tree) == before
    assert not compiled(made)
    assert "-0_not_compiled-py3-none-any.whl" in said
    place = installed(made)
    assert run(place, "-c", RENDEZVOUS) == "value\n"
    (line,) = run(place, "-m", "workers", "--port=0", status=2).splitlines()
    assert "a node needs its compiled core" in line
    assert "install a C compiler" in line


@needs_a_compiler
def test_with_a_compiler_a_wheel_has_what_a_node_needs_and_no_assertions_and_the_tree_stays(
    tree: Path,
) -> None:
    made_of_it = shutil.ignore_patterns("*.so", "_core.c", "__pycache__")
    shutil.copytree(ROOT / "workers/core", tree / "workers/core", ignore=made_of_it, dirs_exist_ok=True)
    before = contents(tree)
    said, made = wheel(tree, CFLAGS="-O0")  # to optimize takes most of the time, and nothing is measured
    assert contents(tree) == before
    assert compiled(made) == {BUILD, FRAMES, CORE}
    assert "not_compiled" not in said
    place = installed(made)
    assert not checks_assertions(place)
    node = "import skywalker\nwith skywalker.embedded() as node: print(node.address)"
    assert run(place, "-c", node, **NO_COMPILER, PATH="", PYTHONPATH=str(place)).startswith("127.0.0.1:")


IN_PLACE = ("setup.py", "build_ext", "--inplace")
EDITABLE = "import sys; from setuptools import build_meta as made; made.build_editable(sys.argv[1])"


@needs_a_compiler
def test_an_editable_installation_compiles_in_the_tree_and_checks_assertions_unless_it_is_not_to(tree: Path) -> None:
    run(tree, "-c", EDITABLE, ".")
    assert (tree / FRAMES).read_bytes()[:4] == b"\x7fELF"
    assert checks_assertions(tree)
    for header in tree.rglob("frames.pxd"):
        header.unlink()  # one module will do from here on
    run(tree, *IN_PLACE, SKYWALKER_ASSERTIONS="0")
    assert not checks_assertions(tree)
    assert not (tree / FRAMES).exists(), "it would hide the file beside it"
    run(tree, *IN_PLACE)
    assert checks_assertions(tree)


@pytest.mark.parametrize("words", [("-c", EDITABLE, "."), IN_PLACE])
def test_an_editable_installation_without_a_compiler_leaves_no_module_that_is_out_of_date(
    tree: Path, words: tuple[str, ...]
) -> None:
    said = run(tree, *words, **NO_COMPILER)
    assert not (tree / FRAMES).exists()
    assert "skywalker is not compiled" in said
