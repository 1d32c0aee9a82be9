"""The files for systemd: that those in systemd/ are what the code makes, that systemd takes them, and how safe it finds
a service."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from skywalker.access.principal import Principal
from skywalker.cli.systemd.files import FILES, File
from skywalker.cli.systemd.plan import NOTIFY_RELOAD, Plan, manager_version
from skywalker.config import SETTINGS, Config, load
from skywalker.journal.record import DOORS
from tests.cli.running import SKYWALKER
from tests.helpers import time_factor
from workers.stats.metrics import UNKNOWN

ROOT = Path(__file__).parent.parent.parent
MOST_EXPOSED = 2.0

PORTABLE = Plan(executable=SKYWALKER)
PLANS = {
    "portable": PORTABLE,
    "notify-reload": dataclasses.replace(PORTABLE, notifies_reload=True),
    "below-home": dataclasses.replace(PORTABLE, is_in_home=True),
    "as-another-user": dataclasses.replace(PORTABLE, user="sky_walker-1"),
    "many-workers-at-ipv6": dataclasses.replace(PORTABLE, junction="[::]:3443", pubsub="[::1]:61626", workers=64),
    "drains-for-an-hour": dataclasses.replace(PORTABLE, stop_s=3610, watchdog_s=3000),
}


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]


@pytest.fixture
def units(plan: Plan, tmp_path: Path) -> list[Path]:
    """The units of a plan, written."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze: make tools")
    paths = []
    for file in FILES:
        path = tmp_path / file.name
        path.write_text(file.text(plan))
        if path.suffix in (".service", ".socket"):
            paths.append(path)
    assert len(paths) == 4
    return paths


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60 * time_factor(), check=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_in_the_directory_is_what_the_code_makes(file: File) -> None:
    assert (ROOT / "systemd" / file.name).read_text() == file.text(Plan())


def test_systemd_finds_nothing_to_say_of_any_unit(plan: Plan, units: list[Path]) -> None:
    ran = analyze("verify", *units)
    said = ran.stdout + ran.stderr
    if plan.notifies_reload and (manager_version() or 0) < NOTIFY_RELOAD:
        # It does not know that yet. What else it may find wrong is not kept back by this.
        said = "".join(line for line in said.splitlines(True) if "service type, ignoring: notify-reload" not in line)
    assert said == ""
    assert ran.returncode == 0


def test_a_service_is_hardly_exposed(units: list[Path]) -> None:
    for unit in (each for each in units if each.suffix == ".service"):
        ran = analyze("security", "--offline=true", "--threshold=19", "--no-pager", unit)
        level = re.search(r"exposure level for \S+: (\d+\.\d)", ran.stdout)
        assert level, ran.stderr
        assert float(level[1]) < MOST_EXPOSED
        assert ran.returncode == 0, "above its threshold"


def test_the_page_on_operations_says_how_exposed() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze: make tools")
    ran = analyze("security", "--offline=true", "--no-pager", ROOT / "systemd/skywalker.service")
    level = re.search(r"exposure level for \S+: (\d+\.\d)", ran.stdout)
    assert level
    assert f"gives it {level[1]}, where 10 is worst" in " ".join((ROOT / "docs/operations.md").read_text().split())


def test_each_door_has_a_listener_for_each_worker_at_the_address_of_the_settings() -> None:
    doors = {door for door in DOORS if door != UNKNOWN}
    sockets = [file.text(PLANS["many-workers-at-ipv6"]) for file in FILES if file.name.endswith(".socket")]
    found = {}
    for text in sockets:
        name = re.search(r"^FileDescriptorName=(\w+)$", text, re.MULTILINE)
        assert name
        found[name[1]] = re.findall(r"^ListenStream=(.*)$", text, re.MULTILINE)
        assert "\nReusePort=yes\n" in text
        assert "\nService=skywalker.service\n" in text
    assert found == {"junction": ["[::]:3443"] * 64, "pubsub": ["[::1]:61626"] * 64}
    assert found.keys() == doors
    plain = Config()
    assert (Plan().junction, Plan().pubsub) == (f"{plain.bind}:{plain.port}", "{}:{}".format(*plain.pubsub_address))


def test_the_example_config_has_every_key_with_its_default_and_its_unit(tmp_path: Path) -> None:
    text = next(file.text(Plan()) for file in FILES if file.name == "skywalker.toml")
    file = tmp_path / "node.toml"
    file.write_text(text)
    assert load(file=file) == Config(), "something in it is not commented out"
    text, begin, access = text.partition("\n# Who may come in")
    file.write_text(re.sub(r"(?m)^#(?! )", "", text))
    assert load(file=file) == Config()
    file.write_text(re.sub(r"(?m)^#(?! )", "", (begin + access).replace("www-data", "root")))
    shown = load(file=file).access
    assert shown is not None
    [principal] = shown.principals
    for field in dataclasses.fields(Principal):
        if field.type != "bool":
            assert getattr(principal, field.name), f"nothing shows how to say {field.name}"
    entries = re.findall(r"(?ms)^((?:# [^\n]*\n)+)#(\w+) = ", text)
    assert [key for _, key in entries] == [setting.key for setting in SETTINGS]
    for setting, (comment, _) in zip(SETTINGS, entries, strict=True):
        words = " ".join(comment.replace("\n# ", " ").split())
        assert setting.help[1:] in words
        assert setting.allowed in words
        if setting.metavar == "SIZE":
            assert "in bytes" in words
    assert all(len(line) <= 120 for line in (text + access).splitlines())


def test_the_example_of_the_environment_has_every_variable_with_its_default(tmp_path: Path) -> None:
    text = next(file.text(Plan()) for file in FILES if file.name == "skywalker.env")
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    assert all(line.startswith("#") for line in lines)
    variables = dict(line[1:].split("=", 1) for line in lines)
    assert [*variables] == [setting.variable for setting in SETTINGS]
    assert load(environ=variables) == Config()


def test_systemd_takes_the_user_and_the_directories(tmp_path: Path) -> None:
    if shutil.which("systemd-sysusers") is None:
        pytest.skip("there is no systemd-sysusers: make tools")
    root = tmp_path / "root"
    (root / "etc/skywalker").mkdir(parents=True)
    (root / "etc/skywalker/skywalker.toml").touch(0o644)
    for name, command in (
        ("skywalker.sysusers", ["systemd-sysusers"]),
        ("skywalker.tmpfiles", ["systemd-tmpfiles", "--create"]),
    ):
        file = tmp_path / name
        file.write_text(next(each.text(Plan()) for each in FILES if each.name == name))
        ran = subprocess.run([*command, f"--root={root}", str(file)], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (0, "")
    passwd = (root / "etc/passwd").read_text()
    assert re.search(r"^skywalker:x:\d+:\d+:skywalker nodes:/var/lib/skywalker:\S*/nologin$", passwd, re.MULTILINE)
    assert (root / "etc/skywalker").stat().st_mode & 0o777 == 0o750
    assert (root / "etc/skywalker/skywalker.toml").stat().st_mode & 0o777 == 0o640
