"""The first commands of the README, pasted as they stand there: by a user and then by root of one machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.docs.pages import README, ROOT, blocks
from tests.docs.running import Ports, taken_apart
from tests.helpers import time_factor
from tests.workers.setup.test_privileges import is_roots, place, reachable

__all__ = ["place"]


@is_roots
def test_the_first_commands_work_for_a_user_and_then_for_root(place: Path) -> None:
    [block] = [each for each in blocks(README) if each.text.startswith("$ skywalker serve &")]
    commands, shown = taken_apart(block.text)
    ports = Ports()
    variables = {
        "SKYWALKER_USER": "",
        "SKYWALKER_ADMIN": "true",
        "SKYWALKER_PORT": str(ports.node),
        "SKYWALKER_ADMIN_PORT": str(ports.admin),
        "SKYWALKER_NODE": f"127.0.0.1:{ports.node}",
        "HOME": str(place),
    }
    named = 'export PATH="$PWD/.venv/bin:$PATH"'
    assert named in README.read_text()
    pasted = ports.into("\n".join([named, *(command for command, _ in commands)]))
    as_both = 'setpriv --reuid=nobody --regid=nogroup --clear-groups bash -c "$0"; HOME=/root; bash -c "$0"'
    ran = subprocess.run(
        [*reachable(), "bash", "-c", as_both, pasted],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60 * time_factor(),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = [line for line in shown if not line.startswith("skywalker: ")]
    assert sorted(ports.back(ran.stdout).splitlines()) == sorted(said * 2), ran.stderr
    assert ran.stderr.count("event=leaves-root") == 1
    assert ran.stderr.count("skywalker: nobody came to topic 'jobs'") == 2
