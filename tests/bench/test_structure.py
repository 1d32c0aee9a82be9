"""The shape of the benchmarks: which way imports point, those for types only as well, and that the map is whole."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter

import pytest

from tests.test_layout import ROOT, imports, module_name, sources

MAY_IMPORT = {"servers": {"servers"}, "load": {"load", "servers"}, "figures": {"figures", "load", "servers"}}
"""What the parts of the benchmarks may import of each other. All may raise bench.errors."""


def test_no_imports_go_in_a_circle() -> None:
    found = {module_name(path): {module for _, module in imports(path)} for path in sources("bench")}
    TopologicalSorter({module: found[module] & found.keys() - {module} for module in found}).prepare()


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_only_those_below_it(part: str) -> None:
    for path in sources(f"bench/{part}"):
        for line, module in imports(path):
            package, *rest = module.split(".")
            assert package != "bench" or {*rest[:1]} <= MAY_IMPORT[part] | {"errors"}, f"{path}:{line}: {module}"


def test_the_map_has_every_command() -> None:
    named = set(re.findall(r"\w+", ast.get_docstring(ast.parse((ROOT / "bench" / "__init__.py").read_text())) or ""))
    modules = {path.stem for path in (ROOT / "bench").glob("[!_]*.py") if not path.stem.startswith("test_")}
    folders = {path.parent.name for path in (ROOT / "bench").glob("*/__init__.py")}
    assert (modules | folders) - named <= {"errors"}
