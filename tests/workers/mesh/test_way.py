"""The way of a send! to another worker, as docs/architecture.md tells it, is the one that a real call takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MAX_FILES = 21


def told() -> list[tuple[str, list[str]]]:
    """Return the rows of the page: a file and functions of it, in the order in which a call comes to them."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition("### The way of a forwarded send!\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| `([\w/.]+)` \| (.+?) \|", section, re.MULTILINE)
    return [(file, re.findall(r"`([\w.]+)`", functions)) for file, functions in rows]


def taken() -> list[tuple[str, str]]:
    """Return the files and functions of a real call, in the order in which it comes to them."""
    # Plain, or nothing of what is compiled would be seen.
    command = [sys.executable, "-m", "tests.plain", "tests.workers.mesh.forwarded_send"]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return [(file, function) for file, function in json.loads(ran.stdout)]


def test_the_way_of_a_forwarded_send_is_as_it_is_told() -> None:
    rows, way = told(), taken()
    files = [*dict.fromkeys(file for file, _ in way)]
    assert [file for file, _ in rows] == files
    for file, functions in rows:
        assert functions, file
        assert [function for at, function in way if at == file and function in functions] == functions
    assert len(files) <= MAX_FILES
