"""A kernel that takes nothing now is no other end that is dead: what is unsent to a worker that lives would be lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.workers.core.test_storm import CHECKS, CORE


def test_what_the_kernel_has_no_room_for_waits_and_a_descriptor_is_lost_alone(tmp_path: Path) -> None:
    program, source = tmp_path / "refusing", Path(__file__).with_name("refusing.c")
    subprocess.run(["cc", "-std=gnu11", *CHECKS, f"-I{CORE}", CORE / "base.c", source, "-o", program], check=True)
    assert subprocess.run([program], check=False).returncode == 0
