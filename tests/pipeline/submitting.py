"""spark-submit, with the package as a zip: what a user does whose cluster knows nothing of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import skywalker
from tests.helpers import time_factor

SUBMIT_S = 120.0
"""It takes 30 s of a core, and so of the clock where nothing else runs; but something may."""

FROM_THE_ZIP = "import skywalker\nassert '.zip' in skywalker.__file__, skywalker.__file__\n"


def submit(directory: Path, program: str, *arguments: object, master: str = "local[1]", **conf: str) -> str:
    """Run a program by spark-submit, in a directory of which it sees nothing but the package's zip; what it printed.

    `conf` has _ where Spark's own names have a dot.
    """
    package = Path(skywalker.__file__).parent
    with zipfile.ZipFile(directory / "skywalker.zip", "w") as archive:
        for file in package.rglob("*.py"):
            archive.write(file, Path("skywalker") / file.relative_to(package))
    script = directory / "main.py"
    script.write_text(FROM_THE_ZIP + program)
    # The package may be installed here by a .pth, which -S leaves out; what it needs is found without.
    python = directory / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    python.chmod(0o755)
    packages = os.pathsep.join(path for path in sys.path if path.endswith("-packages"))
    settings = {"spark.ui.enabled": "false"} | {name.replace("_", "."): text for name, text in conf.items()}
    command = [
        str(Path(sys.executable).with_name("spark-submit")),
        *("--master", master),
        *(word for name, text in settings.items() for word in ("--conf", f"{name}={text}")),
        *("--py-files", str(directory / "skywalker.zip")),
        str(script),
        *map(str, arguments),
    ]
    env = os.environ | {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": packages}
    limit_s = SUBMIT_S * time_factor()
    said, log = directory / "said", directory / "log"
    # A pipe would be waited for until all that have it are gone.
    with said.open("w") as output, log.open("w") as errors:
        try:
            ran = subprocess.run(
                command, env=env, cwd=directory, stdout=output, stderr=errors, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.fail(f"it takes longer than {limit_s:g} s: {_end(log)}", pytrace=False)
    assert ran.returncode == 0, _end(log)
    return said.read_text()


def _end(log: Path) -> str:
    """Return what was said last: what matters is behind thousands of lines that tell how all went well."""
    return log.read_text()[-8000:]
