"""The shape of the source tree: which way imports point, what importing the library costs, how long a file is."""

import ast
import graphlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAX_LINES = 600
MAX_FUNCTION_LINES = 70

# Lowest first: a part of skywalker may import its own layer and those below it. "skywalker" is the package's own
# __init__, which offers the clients under short names.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"build", "errors", "limits"}),
    frozenset({"cause"}),
    frozenset({"wire"}),
    frozenset(
        {
            "address",
            "backoff",
            "census",
            "deadlines",
            "dialling",
            "extras",
            "journal",
            "json_form",
            "junction",
            "listeners",
            "memory",
            "processes",
            "own_directory",
            "reuseport",
            "ring",
            "state_path",
            "tls",
            "toml_lines",
            "units",
        }
    ),
    frozenset({"access", "members"}),
    frozenset({"setting", "silk"}),
    frozenset({"config"}),
    frozenset({"discovery"}),
    frozenset({"clients", "pubsub"}),
    frozenset({"skywalker", "aio"}),
    frozenset({"pipeline"}),
    frozenset({"cli", "embedding", "pytest_plugin", "__main__"}),
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

# Lowest first: a room of workers may import those before it; doors, which know neither mesh nor nodes, may not all.
ROOMS: tuple[str, ...] = (
    "core",
    "stats",
    "engine",
    "ipc",
    "calls",
    "mesh",
    "nodes",
    "access",
    "doors",
    "setup",
    "agent",
    "worker",
    "process",
    "__main__",
)
STRANGERS_TO = {"doors": {"ipc", "mesh", "nodes"}, "access": {"ipc", "calls", "mesh", "nodes"}, "calls": {"ipc"}}

# Packages that live in this tree, each with those it may import.
MAY_IMPORT = {"skywalker": {"skywalker"}, "workers": {"workers", "skywalker"}}
OURS = {"skywalker", "workers", "bench", "tests"}

# Bytes and `now` in, events out: these parts reach no socket, file, process, thread or clock.
PURE = (
    "errors",
    "cause",
    "limits",
    "wire",
    "census",
    "junction",
    "deadlines",
    "ring",
    "address",
    "access.access",
    "tls.words",
    "members",
    "journal.header",
    "journal.record",
    "journal.topic_text",
    "json_form",
    "backoff",
    "discovery.contact",
    "discovery.roster",
    "discovery.pace",
    "discovery.rumours",
    "discovery.source",
    "discovery.url",
    "clients.call",
    "clients.calls",
    "clients.core",
    "clients.dialogue",
    "clients.homes",
    "clients.line",
    "clients.requests",
    "clients.routes",
    "clients.settings",
    "clients.stream",
    "clients.survey",
    "pubsub.exchange",
    "pubsub.message",
    "pubsub.settings",
    "silk.answers",
    "silk.claims",
    "silk.doubts",
    "silk.endpoints",
    "silk.events",
    "silk.info",
    "silk.membership",
    "silk.pace",
    "silk.peers",
    "silk.requests",
    "silk.visits",
    "silk.outbox",
)
IMPURE = {
    *("asyncio", "concurrent", "io", "logging", "multiprocessing", "os", "pathlib", "select", "selectors", "signal"),
    *("socket", "ssl", "subprocess", "threading", "time", "datetime"),
}

# Clocks and luck, for which a worker and its supervisor's crew ask the machine that they are made with: so a simulation
# can be that. Others ask for themselves, who are none of these: the agent, and what is done before anybody is forked.
CLOCKS_AND_LUCK = {"time", "random", "secrets", "uuid"}
ASK_FOR_THEMSELVES = {
    "workers.agent",
    "workers.setup",
    "workers.engine.machine",
    "workers.process.notify",
    "workers.stats.shared",  # it waits to read
}
MAKES_THEM_WITH_THE_REAL_ONE = "workers.process.start"


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no source files in {package}/"
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full module name of every import in a file, also those inside functions and TYPE_CHECKING."""
    # A module's relative imports start at its package; a package's own start at itself.
    package = module_name(path).split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                yield node.lineno, submodule if origin.split(".")[0] in OURS and is_module(submodule) else origin


def part_of(module: str) -> str:
    """The part of skywalker that a module belongs to: skywalker.wire.frames is of "wire".

    What `python -m` runs stands above all, whichever package it is in.
    """
    parts = module.split(".")
    return parts[-1] if parts[-1] == "__main__" else parts[min(1, len(parts) - 1)]


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def listed(offenders: list[str]) -> str:
    return "\n  ".join(["offenders:", *offenders])


def test_every_part_of_skywalker_has_a_place_in_the_layers() -> None:
    parts = {part_of(module_name(path)) for path in sources("skywalker")}
    assert parts <= RANK.keys(), f"give these a layer in {Path(__file__).name}: {sorted(parts - RANK.keys())}"


def test_imports_inside_skywalker_point_down() -> None:
    offenders = []
    for path in sources("skywalker"):
        importer = part_of(module_name(path))
        for line, module in imports(path):
            if module.split(".")[0] != "skywalker":
                continue
            imported = part_of(module)
            if RANK[imported] > RANK[importer]:
                offenders.append(f"{where(path, line)}: {importer} imports {imported}, which is above it")
    assert not offenders, listed(offenders)


def test_no_module_is_left_over() -> None:
    paths = [path for package in MAY_IMPORT for path in sources(package)]
    used = {module for path in paths for _, module in imports(path) if module != module_name(path)}
    for path in paths:  # those that are imported by name, once they are needed
        used.update(re.findall(r'"((?:skywalker|workers)\.[\w.]+)"', path.read_text()))
    for path in (ROOT / "pyproject.toml", *(ROOT / "docs").rglob("*.md")):
        used.update(re.findall(r"\b(?:skywalker|workers)\.[\w.]+", path.read_text()))
    left = {module_name(path) for path in paths if path.name not in ("__init__.py", "__main__.py")} - used
    assert not left


@pytest.mark.parametrize("package", ["skywalker", "workers", "bench"])
def test_no_modules_import_each_other(package: str) -> None:
    graph = {
        module_name(path): {module for _, module in imports(path) if module != module_name(path)}
        for path in sources(package)
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_the_library_never_imports_the_server_and_neither_imports_its_tests() -> None:
    offenders = []
    for package, allowed in MAY_IMPORT.items():
        for path in sources(package):
            for line, module in imports(path):
                if module.split(".")[0] in OURS - allowed:
                    offenders.append(f"{where(path, line)}: {package} imports {module}")
    assert not offenders, listed(offenders)


def test_the_core_reaches_no_io_and_no_clock() -> None:
    gone = [part for part in PURE if not is_module(f"skywalker.{part}")]
    assert not gone, f"nothing is held of what is not there: {gone}"
    offenders = []
    for path in sources("skywalker"):
        name = module_name(path)
        if not f"{name}.".startswith(tuple(f"skywalker.{part}." for part in PURE)):
            continue
        for line, module in imports(path):
            if module.split(".")[0] in IMPURE:
                offenders.append(f"{where(path, line)}: {name} imports {module}")
    assert not offenders, listed(offenders)


def test_importing_the_library_loads_msgpack_and_mmh3_and_nothing_else_from_outside() -> None:
    program = """
import json, sys
before = set(sys.modules)
import skywalker
skywalker.connect
# Compiled extensions register helper modules without a spec; those were never imported from anywhere.
print(json.dumps([name for name in set(sys.modules) - before if getattr(sys.modules[name], "__spec__", None)]))
"""
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    loaded = set(json.loads(ran.stdout))
    too_heavy = loaded & {"asyncio", "click", "workers", "concurrent.futures"}
    assert not too_heavy, f"import skywalker loads {sorted(too_heavy)}"
    outside = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names - {"skywalker"}
    assert outside <= {"msgpack", "mmh3"}, f"import skywalker loads {sorted(outside)}"


def test_a_room_of_the_server_imports_what_is_below_it() -> None:
    offenders = []
    for path in sources("workers"):
        room = part_of(module_name(path))
        for line, module in imports(path):
            if not module.startswith("workers.") or room == "workers":
                continue
            imported = part_of(module)
            if ROOMS.index(imported) > ROOMS.index(room) or imported in STRANGERS_TO.get(room, ()):
                offenders.append(f"{where(path, line)}: {room} imports {imported}")
    assert not offenders, listed(offenders)


def asks_for_itself(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each clock, or source of luck, that a module takes from elsewhere than its machine."""
    for line, module in imports(path):
        if module in CLOCKS_AND_LUCK:
            yield line, module
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Attribute | ast.alias) and "urandom" in (
            getattr(node, "attr", ""),
            getattr(node, "name", ""),
        ):
            yield node.lineno, "urandom"


def test_a_worker_asks_its_machine_for_time_and_luck() -> None:
    offenders = []
    unused = {*ASK_FOR_THEMSELVES}
    for path in sources("workers"):
        name = module_name(path)
        excused = {each for each in ASK_FOR_THEMSELVES if f"{name}.".startswith(f"{each}.")}
        asked = [*asks_for_itself(path)]
        if asked:
            unused -= excused
        if not excused:
            offenders += [f"{where(path, line)}: {name} uses {module}" for line, module in asked]
    assert not offenders, listed(offenders)
    assert not unused, f"these need no excuse: {sorted(unused)}"


def test_nobody_but_who_starts_a_node_names_the_real_machine() -> None:
    named = {
        module_name(path)
        for path in sources("workers")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module == "workers.engine.machine"
        if any(alias.name == "MACHINE" for alias in node.names)
    }
    assert named == {MAKES_THEM_WITH_THE_REAL_ONE}


MAPPED = [path.parent for path in sources("workers") if path.name == "__init__.py"] + [ROOT / "skywalker" / "clients"]


@pytest.mark.parametrize("package", MAPPED)
def test_the_map_of_a_room_has_every_file(package: Path) -> None:
    named = set(re.findall(r"\w+", ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""))
    missing = {path.stem for path in package.glob("[!_]*.py")} - named
    assert not missing
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    assert rooms <= named


def test_a_source_file_is_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for package in MAY_IMPORT for path in sources(package)}
    offenders = [f"{path.relative_to(ROOT)}: {length} lines" for path, length in lengths.items() if length > MAX_LINES]
    assert not offenders, listed(offenders)


def test_a_function_is_short() -> None:
    offenders = [
        f"{where(path, node.lineno)}: {node.name}"
        for package in ("skywalker", "workers", "bench")
        for path in sources(package)
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert not offenders, listed(offenders)
