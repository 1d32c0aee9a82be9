"""`skywalker check`: what it says of good files and of bad ones, and that it touches no socket."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.config import SETTINGS, TABLES
from skywalker.errors import ConfigError
from skywalker.setting import Setting
from skywalker.tls.authority import Authority
from tests.cli.running import END_S, environment, run, started_anew
from tests.helpers import time_factor
from workers.setup.faults import faults


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "node.toml"


def test_a_certificate_that_no_client_takes_is_told_of(file: Path, tmp_path: Path) -> None:
    pair = Authority.new(9).for_node(["localhost"], 0)
    (tmp_path / "node.pem").write_bytes(pair.certificate + pair.key)
    file.write_text(f'tls_cert = "{tmp_path}/node.pem"')
    ran = run("check", str(file))
    assert (ran.returncode, ran.stdout) == (0, f"{file}: ok\n".encode())
    assert ran.stderr.startswith(f"{file}: but the certificate in {tmp_path}/node.pem expired on 20".encode())


def test_a_full_standard_output_is_told_in_one_line(file: Path) -> None:
    file.write_text("port = 4000")
    with Path("/dev/full").open("wb") as full, started_anew("check", str(file), pipes={"stdout": full}) as checking:
        said = checking.communicate(timeout=END_S * time_factor())[1]
    assert (checking.returncode, said) == (1, b"skywalker: cannot write to standard output: No space left on device\n")


def test_no_more_is_read_than_a_config_file_may_have(file: Path) -> None:
    file.write_text("#" * 2**20)
    assert run("check", str(file)).returncode == 0
    file.write_text("#" * (2**20 + 1))
    for endless in (str(file), "/dev/zero"):
        ran = run("check", endless)
        assert (ran.returncode, ran.stdout) == (2, b"")
        assert ran.stderr == f"skywalker: {endless}: is larger than 1 MiB, so it is not a config file\n".encode()


def test_what_differs_from_the_defaults_is_shown_if_asked_for_but_no_token(file: Path) -> None:
    file.write_text(
        'port = 3443\nname = "red"\ndrain_timeout_s = "2m"\nadmin = false\n'
        '[cluster]\nconsul_token = "secret"\n[limits]\nmax_calls = 7\n'
    )
    shown = run("check", "-v", str(file)).stdout.decode()
    assert shown.splitlines() == [
        f"{file}: ok",
        "name = red",
        "drain_timeout_s = 120s",
        "admin = false",
        "cluster.consul_token = (not shown)",
        "limits.max_calls = 7",
    ]
    assert run("check", "--verbose", str(file)).stdout.decode() == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "unknown key 'prot'; did you mean 'port'?"),
        ('[acces.web]\nuser = "root"', "unknown key 'acces'; did you mean 'access'?"),
        ('tls_cert = "/nowhere/node.pem"', "/nowhere/node.pem, which holds a certificate, cannot be read"),
        (
            '[access.web]\ncertificate = "web"',
            "access.web: nobody can show that they are that: give tls_cert and tls_ca",
        ),
        ('[access.web]\nuser = "root"', "access.web: nobody can show that they are that: give unix"),
        ('user = "no-such-user"', "user: there is no user 'no-such-user' on this machine"),
        ("pubsub_port = 3443", "pubsub_port: 3443 is the port of the MessagePack dialect; pub/sub needs its own"),
        ("admin_port = 3443", "admin_port: 3443 is the port of the MessagePack dialect"),
        ("[cluster]\nhealth_port = 3443", "health_port: 3443 is the port of the MessagePack dialect"),
        ('[cluster]\njoin = "a:b:c"', "--join: 'a:b:c' is not an address"),
        ('[cluster]\nsilk = "here"', "--silk: here is not a numeric address"),
        ('[cluster]\nadvertise = "a:b"', "--advertise: "),
    ],
)
def test_a_bad_file_is_one_line_with_its_name_and_status_2(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    ran = run("check", str(file))
    assert ran.returncode == 2
    assert ran.stdout == b""
    assert re.match(rf"skywalker: {re.escape(str(file))}:\d+: ", ran.stderr.decode())
    assert said in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1


def faults_in(file: Path, text: str) -> list[str]:
    """Return what is said of a file, each without the program's name and the file's."""
    file.write_text(text)
    ran = run("check", str(file))
    assert (ran.returncode, ran.stdout) == (2, b"")
    return [line.removeprefix(f"skywalker: {file}:") for line in ran.stderr.decode().splitlines()]


WRONG = """# a comment
prot = 1
port = 70000
drain_timeout_s = '''
long'''
tls_key = "node.key"
journal = "j"
journal_sample = "2/1"

[limits]
max_calls = 0
max_conections = [
  1,
]

[cluster]
join = "a"
dns = "b"
silk_join = "c"

[access.web]
user = "no-such-user"
sned = 1
token = "x"

[access."a b"]
rate = 0
"""


def test_all_that_is_wrong_is_told_with_its_line(file: Path) -> None:
    told = [
        (2, "unknown key 'prot'; did you mean 'port'?"),
        (3, "port: 70000 is not"),
        (4, "drain_timeout_s: 'long' is not"),
        (6, "tls_key: this node speaks no TLS"),
        (8, "journal_sample: '2/1' is not"),
        (11, "limits.max_calls: 0 is not"),
        (12, "unknown key 'limits.max_conections'"),
        (17, "--join and --dns: a cluster is found in one way"),
        (19, "--silk-join: this node says nothing by Silk"),
        (22, "access.web: user: there is no user no-such-user"),
        (23, "access.web: unknown key 'sned'"),
        (24, "access.web: token: it is not sha256:"),
        (27, "access.a b: rate: 0 is not"),
    ]
    for (line, text), said in zip(told, faults_in(file, WRONG), strict=True):
        assert said.startswith(f"{line}: {text}")


@pytest.mark.parametrize("key", ["tls_cert", "tls_key", "tls_ca"])
def test_a_file_that_is_missing_is_told_once_at_its_own_key(file: Path, tmp_path: Path, key: str) -> None:
    pair = Authority.new(9).for_node(["localhost"], 9)
    (tmp_path / "n").write_bytes(pair.certificate)
    (tmp_path / "n.key").write_bytes(pair.key)
    (tmp_path / "n.ca").write_bytes(pair.certificate)
    tls = {"tls_ca": "n.ca", "tls_key": "n.key", "tls_cert": "n"}
    (tmp_path / tls[key]).unlink()
    files = [f'{each} = "{tmp_path / name}"' for each, name in tls.items()]
    lines = ['name = "n"', f'state_dir = "{tmp_path}"', *files, "[cluster]", 'service = "cannot be read"']
    [said] = faults_in(file, "\n".join(lines))
    assert said.startswith(f"{3 + [*tls].index(key)}: {tmp_path / tls[key]}, which holds ")


def test_faults_are_told_in_the_order_of_lines_even_if_they_are_too_many(file: Path) -> None:
    lines = [f"wrong_{number} = 1" for number in range(150)]  # those in [access] are found before them
    found = [int(said.partition(":")[0]) for said in faults_in(file, "\n".join([*lines, "[access.web]", "sned = 1"]))]
    assert found == [*range(1, 101), 152]


def test_what_only_follows_from_a_fault_is_not_told(file: Path) -> None:
    assert len(faults_in(file, "tls_cert = 5\ntls_key = 'node.key'\n")) == 1
    assert len(faults_in(file, "bind = '10.0.0.5'\n[access.web]\nuser = 0\nsned = []\nunix = 1\n")) == 2
    assert len(faults_in(file, "open = 1\nbind = '10.0.0.5'\n")) == 1


@given(st.lists(st.sampled_from(SETTINGS), max_size=8, unique=True), st.integers(0, 3))
def test_each_bad_value_is_told_once_at_its_line(
    tmp_path_factory: pytest.TempPathFactory, wrong: list[Setting], between: int
) -> None:
    file = tmp_path_factory.mktemp("config") / "node.toml"
    text, expected = [], []
    for table in ("", *TABLES):
        text += [f"[{table}]"] if table else []
        for setting in (each for each in wrong if each.table == table):
            text += ["#"] * between
            text.append(f"{setting.key} = []")
            expected.append((len(text), setting.path))
    file.write_text("\n".join(text))
    _, found = faults(file)
    assert [(fault.line, fault.text.partition(": ")[0]) for fault in found] == expected


@given(st.text())
def test_any_text_has_faults_or_none(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("config") / "node.toml"
    file.write_bytes(text.encode(errors="surrogatepass"))
    with contextlib.suppress(ConfigError):
        faults(file)


def test_flags_and_variables_do_not_count(file: Path) -> None:
    file.write_text("workers = 3")
    ran = run("check", "-v", str(file), SKYWALKER_PORT="no port", SKYWALKER_CONFIG="/no/such/file")
    assert ran.stdout.decode() == f"{file}: ok\nworkers = 3\n"


def test_no_socket_is_opened_whatever_the_file_says(file: Path) -> None:
    """Also of addresses that are not this machine's: the file may be meant for another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file.write_text(
            f'open = true\nbind = "203.0.113.9"\nport = {port}\npubsub = true\n'
            '[cluster]\nsilk = "203.0.113.9:3444"\nsilk_join = "nowhere.invalid"\nadvertise = "nowhere.invalid:1"\n'
            'register = true\nhealth_bind = "203.0.113.9"\n'
        )
        program = f"""
import sys
def hook(event, arguments):
    assert not event.startswith("socket."), (event, arguments)
sys.addaudithook(hook)
sys.argv = ["skywalker", "check", {str(file)!r}]
from skywalker.cli import main
main()
"""
        ran = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=20 * time_factor(),
            check=False,
        )
    assert (ran.returncode, ran.stdout) == (0, f"{file}: ok\n"), ran.stderr
    assert os.listdir(file.parent) == [file.name]
