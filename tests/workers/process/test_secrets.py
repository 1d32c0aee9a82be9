"""Secrets that a node is given are in nothing that it says: logs, figures, errors, titles of processes, files."""

from __future__ import annotations

import http.server
import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import skywalker
from skywalker.access.token import hash_of
from skywalker.access.token import new as new_token
from skywalker.config import SETTINGS, Config, load
from skywalker.discovery.consul import ConsulAccess
from skywalker.embedding import Node
from skywalker.errors import ConfigError, LocalProtocolError
from skywalker.tls.contexts import client_context
from tests.admin.asking import Asker
from tests.authority import Authority
from tests.cli.running import run
from tests.helpers import eventually
from tests.workers.setup.test_privileges import children
from workers.process.command import serve

PATHS = ["/", "/health", "/ready", "/metrics", "/nothing-there"]
PATHS += [f"/api/{name}" for name in ("state", "topics", "connections", "ring", "history")]

NAMES = [setting.key for setting in SETTINGS if setting.secret]


class Secrets:
    """Some, in all places where a node takes them."""

    def __init__(self, place: Path) -> None:
        self.consul, self.cluster, self.client, self.wrong = "consul-s3cret-0123456789", *(new_token() for _ in "123")
        _, key = Authority(place).sign("localhost", "127.0.0.1", file="node")
        ran = run("silk", "keygen", str(place / "silk.keys"))
        assert ran.returncode == 0
        curve = (place / "silk.keys").read_text().rpartition("secret-key = ")[2].split('"')[1]
        self.all = [self.consul, self.cluster, self.client, self.wrong, curve, Path(key).read_text().splitlines()[1]]
        assert all(len(secret) > 20 for secret in self.all)

    def assert_in_none_of(self, said: dict[str, str]) -> None:
        """Assert that no text holds one of them, or as much of one as would be of use."""
        for where, text in said.items():
            for secret in self.all:
                assert secret not in text, where
                assert secret[4:24] not in text, where


@contextmanager
def consul() -> Iterator[tuple[int, list[str]]]:
    """Yield the port of a Consul that lets nobody in, and the tokens that it was shown."""
    shown: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(f"{self.headers.get('X-Consul-Token')} {self.path}")
            body = b"rpc error: Permission denied"
            self.send_response(403)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port, shown
        finally:
            server.shutdown()
            thread.join()


def processes(node: Node) -> str:
    """Return all that any user of the machine sees of the processes of a node."""
    told = []
    for pid in (node.pid, *children(node.pid)):
        told += [Path(f"/proc/{pid}/{name}").read_bytes().decode() for name in ("cmdline", "comm", "status")]
        assert stat.S_IMODE(Path(f"/proc/{pid}/environ").stat().st_mode) == 0o400
    return "\n".join(told)


def test_a_node_says_none_of_the_secrets_that_it_knows(tmp_path: Path) -> None:
    secrets = Secrets(tmp_path)
    file = tmp_path / "node.toml"
    with consul() as (port, shown):
        settings = f"""
            tls_cert = "{tmp_path}/node.pem"
            tls_key = "{tmp_path}/node-key.pem"
            tls_ca = "{tmp_path}/ca.pem"
            [access.web]
            token = "{hash_of(secrets.client)}"
            admin = true
            send = ["*"]
            recv = ["*"]
            [access.nodes]
            token = "{hash_of(secrets.cluster)}"
            node = true
            [cluster]
            consul_token = "{secrets.consul}"
            consul_url = "http://127.0.0.1:{port}"
            silk = "ipc://{tmp_path}/silk"
            silk_keys = "{tmp_path}/silk.keys"
            register = true
        """
        file.write_text(settings)
        with skywalker.embedded(
            config_file=file,
            admin=True,
            secret=secrets.cluster,
            state_dir=str(tmp_path / "state"),
            journal=str(tmp_path / "journal"),
        ) as node:
            eventually(lambda: shown, within=15.0)
            said = asked(node, secrets, tmp_path)
            said["the processes"] = processes(node)
            spoil(file, settings, secrets, node)
            said["the log"] = node.log
        assert any(secrets.consul in each for each in shown), "Consul is asked with the token"
    said["a log to the end"] = node.log
    assert "Permission denied" in node.log, "and what it answers is logged"
    for path in [*(tmp_path / "state").rglob("*"), *(tmp_path / "journal").rglob("*")]:
        said[str(path)] = path.read_bytes().decode(errors="replace")
    said["check"] = run("check", "-v", str(file)).stdout.decode()
    ran = run("doctor", "--json", "--config", str(file), SKYWALKER_SECRET=secrets.cluster)
    said["doctor"] = (ran.stdout + ran.stderr).decode()
    assert "(not shown)" in said["check"]
    secrets.assert_in_none_of(said)


def asked(node: Node, secrets: Secrets, place: Path) -> dict[str, str]:
    """Ask a node for all that it tells those who may see it, and those who may not."""
    said = {}
    context = client_context(str(place / "ca.pem"))
    with skywalker.connect(node.address, token=secrets.client, tls=context) as client:
        assert client.send("topic", 1, timeout=0.01, default=False) is False
        said["hello"] = str(client.hello())
        for secret in (secrets.client, secrets.wrong):
            asker = Asker(node.admin_address, context, {"Authorization": f"Bearer {secret}"})
            for path in PATHS:
                _, headers, body = asker.ask(path)
                said[f"{path} by {secret[:6]}..."] = f"{headers}{body.decode()}"
    assert '"door":"junction"' in said[f"/api/connections by {secrets.client[:6]}..."].replace(" ", "")
    with pytest.raises(skywalker.SkywalkerError) as refused:
        skywalker.connect(node.address, token=secrets.wrong, tls=context, connect_timeout=5).close()
    said["a wrong token"] = str(refused.value)
    (place / "token").write_text(secrets.client)
    who = ["--token-file", str(place / "token"), "--tls-ca", str(place / "ca.pem")]
    for arguments in (["report", node.admin_address], ["report", "--json", node.admin_address]):
        ran = run(*arguments, *who)
        assert ran.returncode == 0, ran.stderr
        said[" ".join(arguments)] = (ran.stdout + ran.stderr).decode()
    return said


def spoil(file: Path, settings: str, secrets: Secrets, node: Node) -> None:
    """Have a node read a file in which the secrets are wrong, and then the one from before."""
    wrong = settings.replace(f'"{secrets.consul}"', f'"{secrets.consul}\\n"')
    assert wrong != settings
    file.write_text(wrong)
    os.kill(node.pid, signal.SIGHUP)
    eventually(lambda: "event=reload-refused" in node.log)
    file.write_text(settings)


# Wrong settings.


def wrong_files(secret: str) -> list[str]:
    """Return config files in which a secret is not where, or as, it should be."""
    return [
        *(f'[cluster]\n{key} = "{secret}\\n"' for key in NAMES),
        *(f'[cluster]\n{key} = ["{secret}"]' for key in NAMES),
        *(f'[cluster]\n{key} = "{secret}' for key in NAMES),
        f'cluster = "{secret}"',
        f'access = "{secret}"',
        f'[access]\nweb = "{secret}"',
        f'[access.web]\ntoken = "{secret}"',
        f'[access.web]\ntoken = ["{secret}"]',
        f'[access.web]\ntoken = {{is = "{secret}"}}',
        f'[access.web]\ntokn = "{secret}"',
        f'[cluster]\nregister = true\nconsul_url = "http://user:{secret}@127.0.0.1:8500"',
    ]


@pytest.mark.parametrize("text", wrong_files("SECRET"), ids=lambda text: text.replace("\n", " "))
def test_no_error_about_a_config_repeats_a_secret(tmp_path: Path, text: str) -> None:
    secret = new_token()
    (tmp_path / "node.toml").write_text(text.replace("SECRET", secret))
    with pytest.raises((ConfigError, LocalProtocolError)) as refused:
        ConsulAccess.parse(load(file=tmp_path / "node.toml").cluster.consul_url)
    assert secret[4:24] not in str(refused.value)
    assert secret[4:24] not in repr(refused.value)


@pytest.mark.parametrize("key", NAMES)
def test_no_error_about_a_variable_a_credential_or_an_argument_repeats_a_secret(tmp_path: Path, key: str) -> None:
    setting = next(each for each in SETTINGS if each.key == key)
    secret = new_token()
    (tmp_path / setting.path).write_text(f"{secret}\ttwo\n")
    for source in ({setting.variable: f"{secret}\t"}, {"CREDENTIALS_DIRECTORY": str(tmp_path)}):
        with pytest.raises(ConfigError, match="one line of text") as refused:
            load(environ=source)
        assert secret not in str(refused.value)
    with pytest.raises(ConfigError, match=f"^{key}: ") as refused:
        skywalker.embedding.start(**{key: [secret]})
    assert secret not in str(refused.value)


def test_what_is_shown_of_settings_in_a_trace_is_without_secrets() -> None:
    settings = load(environ={f"SKYWALKER_{key.upper()}": f"s3cret-{key}" for key in NAMES})
    assert {setting.of(settings) for setting in SETTINGS if setting.secret} == {f"s3cret-{key}" for key in NAMES}
    assert "s3cret" not in repr(settings)
    assert "s3cret" not in repr(settings.cluster)


# Where secrets come from.


def test_a_secret_has_no_flag() -> None:
    assert NAMES == ["consul_token", "secret"]
    runner = CliRunner()
    assert "consul-token" not in runner.invoke(serve, ["--help"]).output
    for flag in ("--consul-token=x", "--secret=x"):
        ran = runner.invoke(serve, [flag])
        assert ran.exit_code == 2
        assert "No such option" in ran.output


def test_a_credential_outdoes_the_file_and_a_variable_outdoes_it(tmp_path: Path) -> None:
    file, passed = tmp_path / "node.toml", tmp_path / "passed"
    file.write_text('[cluster]\nsecret = "of the file"\nconsul_token = "of the file"\n')
    passed.mkdir()
    (passed / "cluster.secret").write_text("passed\n")
    (passed / "name").write_text("no secret, so it is nobody's business")
    environ = {"CREDENTIALS_DIRECTORY": str(passed)}
    loaded = load(environ=environ, file=file)
    assert (loaded.cluster.secret, loaded.cluster.consul_token, loaded.name) == ("passed", "of the file", "")
    assert load(environ=environ | {"SKYWALKER_SECRET": "said"}, file=file).cluster.secret == "said"
    assert load(environ={"CREDENTIALS_DIRECTORY": str(tmp_path / "none")}) == Config()


def test_a_credential_that_cannot_be_read_keeps_the_node_from_starting(tmp_path: Path) -> None:
    (tmp_path / "cluster.secret").mkdir()
    with pytest.raises(ConfigError, match=r"cluster\.secret: cannot be read: Is a directory"):
        load(environ={"CREDENTIALS_DIRECTORY": str(tmp_path)})
    (tmp_path / "cluster.consul_token").write_bytes(b"\xff")
    (tmp_path / "cluster.secret").rmdir()
    with pytest.raises(ConfigError, match=r"cluster\.consul_token: cannot be read: it is not text"):
        load(environ={"CREDENTIALS_DIRECTORY": str(tmp_path)})


def test_a_node_of_a_program_gets_secrets_but_not_those_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster.consul_token").write_text("of-the-program")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("SKYWALKER_CONSUL_TOKEN", "of-the-program")
    with skywalker.embedded(secret="for-the-node") as node:
        environ = Path(f"/proc/{node.pid}/environ").read_text().split("\0")
        assert "SKYWALKER_SECRET=for-the-node" in environ
        assert not [each for each in environ if each.startswith(("CREDENTIALS_DIRECTORY", "SKYWALKER_CONSUL_TOKEN"))]
        assert "for-the-node" not in Path(f"/proc/{node.pid}/cmdline").read_text()
