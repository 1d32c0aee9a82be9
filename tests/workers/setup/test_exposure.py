"""A node that strangers could do what they like at does not start, and does not become one."""

from __future__ import annotations

from pathlib import Path

import pytest

from skywalker.access.token import hash_of
from skywalker.config import Config, load
from skywalker.errors import ConfigError
from workers.setup.exposure import check


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_whoever_is_on_this_machine_may_do_everything(host: str) -> None:
    check(load({"bind": host, "admin_bind": host, "pubsub_bind": f"[{host}]:0" if ":" in host else f"{host}:0"}))


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "::", "fe80::1%eth0", "node.example", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("key", ["bind", "pubsub_bind", "admin_bind"])
def test_whoever_comes_from_elsewhere_has_to_be_let_in(tmp_path: Path, key: str, host: str) -> None:
    at = {key: f"[{host}]" if key == "pubsub_bind" else host}
    with pytest.raises(ConfigError, match=rf"{key}: whoever gets to .* could do everything .* --open"):
        check(load(at))
    check(load({**at, "open": "true"}))
    check(load({**at, "tls_cert": "node.pem", "tls_ca": "ca.pem"}))
    with pytest.raises(ConfigError, match="whoever gets"):
        check(load({**at, "tls_cert": "node.pem"}))
    file = tmp_path / "node.toml"
    file.write_text("[access.anyone]\nrecv = ['news']")
    check(load(at, file=file))


def test_a_door_that_is_not_opened_lets_nobody_in() -> None:
    check(load({"pubsub_bind": "0.0.0.0", "pubsub": "false", "admin_bind": "0.0.0.0", "admin": "false"}))


@pytest.mark.parametrize("key", ["tls_key", "tls_ca"])
def test_files_for_tls_are_of_no_use_without_a_certificate(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}: this node speaks no TLS: give tls_cert"):
        check(load({key: "file.pem"}))


def test_it_is_the_address_that_counts_and_not_what_the_settings_say_of_it() -> None:
    config = load({"admin": "false"})
    check(config, {"junction": ("127.0.0.1", 1), "pubsub": ("::1", 2)})
    with pytest.raises(ConfigError, match=r"pubsub_bind: whoever gets to 10\.0\.0\.5"):
        check(config, {"junction": ("127.0.0.1", 1), "pubsub": ("10.0.0.5", 2)})


def test_a_unix_socket_shows_no_certificate(tmp_path: Path) -> None:
    certified = {"unix": "node.sock", "tls_cert": "node.pem", "tls_ca": "ca.pem"}
    with pytest.raises(ConfigError, match="unix: nobody shows a certificate there"):
        check(load(certified))
    file = tmp_path / "node.toml"
    file.write_text("[access.me]\nuser = 0")
    check(load(certified, file=file))


@pytest.mark.parametrize("key", ["silk", "silk_pub"])
def test_nobody_becomes_a_node_by_silk_without_keys(key: str) -> None:
    settings = {"silk": "127.0.0.1:3444", key: "10.0.0.5:3444"}
    with pytest.raises(ConfigError, match=f"{key}: whoever gets to 10.0.0.5 could be a node"):
        check(load(settings))
    check(load({**settings, "silk_keys": "keys"}))
    check(load({"silk": "ipc:///tmp/silk", "silk_pub": "tcp://127.0.0.1:0"}))


ACCESS = """
[access.nodes]
token = "{hash}"
node = true
[access.web]
network = "10.0.0.0/8"
send = ["*"]
"""


def guarded(directory: Path, **settings: str) -> Config:
    """Return the settings of a node that limits access, and knows other nodes by a secret."""
    file = directory / "node.toml"
    file.write_text(ACCESS.format(hash=hash_of("the-secret")))
    return load(settings, environ={"SKYWALKER_SECRET": settings.pop("secret", "")}, file=file)


@pytest.mark.parametrize("opened", ["true", "false"])
@pytest.mark.parametrize("key", ["silk", "silk_pub"])
def test_where_access_is_limited_nobody_is_named_by_silk_without_keys(tmp_path: Path, key: str, opened: str) -> None:
    told = {"silk": "ipc:///tmp/silk", key: "127.0.0.1:3444", "open": opened, "secret": "the-secret"}
    with pytest.raises(ConfigError, match="silk: whoever gets to that port could name nodes there"):
        check(guarded(tmp_path, **told))
    check(guarded(tmp_path, **told, silk_keys="keys"))
    check(guarded(tmp_path, **{**told, key: "ipc:///tmp/other"}))


@pytest.mark.parametrize("way", [{"join": "127.0.0.1:3443"}, {"dns": "x.test"}, {"consul": "true"}])
def test_a_node_among_others_has_something_to_prove_itself_by(tmp_path: Path, way: dict[str, str]) -> None:
    runs = {"junction": ("127.0.0.1", 1)}
    with pytest.raises(ConfigError, match="access: no other node of the cluster could prove that it is one"):
        check(guarded(tmp_path, **way), runs)
    check(guarded(tmp_path, **way, secret="the-secret"), runs)
    check(guarded(tmp_path, **way))  # of a file alone it is not known: a secret is told apart
    check(guarded(tmp_path), runs)


def test_the_secret_is_that_of_a_principal_who_is_a_node(tmp_path: Path) -> None:
    for secret in ("another", "the-secret another"):
        with pytest.raises(ConfigError, match=r"cluster\.secret: whoever proves to know it is nobody here"):
            check(guarded(tmp_path, secret=secret))
    check(guarded(tmp_path, secret="the-secret"))


@pytest.mark.parametrize("secret", ["  ", "a b c d e"])
def test_a_secret_that_is_none_or_very_many_is_told(secret: str) -> None:
    with pytest.raises(ConfigError, match=r"cluster\.secret: it is \d words"):
        check(load({}, environ={"SKYWALKER_SECRET": secret}))
    check(load({}, environ={"SKYWALKER_SECRET": "new old"}))


def test_a_file_in_which_nobody_is_a_node_makes_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('[access.anyone]\nsend = ["*"]\n[cluster]\njoin = "127.0.0.1:3443"\n')
    with pytest.raises(ConfigError, match="access: no other node of the cluster could prove that it is one"):
        check(load(file=file))
