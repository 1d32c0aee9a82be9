"""The table of settings, and where values come from."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker import config
from skywalker.config import SETTINGS, Cluster, Config, load
from skywalker.errors import ConfigError
from skywalker.limits import DEFAULT_PUBSUB_PORT, Limits
from skywalker.setting import LOG_FORMATS, LOG_LEVELS, Setting, Value

DOCS = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"


def allowed_values(setting: Setting) -> st.SearchStrategy[Value]:
    if setting.is_switch:
        return st.booleans()
    if setting.key == "journal_sample":
        return st.integers(1, 10**9 - 1).map(lambda every: f"1/{every}")
    if setting.key == "journal_rotate":
        return st.builds("{}MiB/{}s".format, st.integers(1, 10**9), st.integers(1, 10**9))
    if setting.key == "tls_minimum":
        return st.sampled_from(["1.2", "1.3"])
    if setting.key in ("log_level", "log_format"):
        return st.sampled_from(LOG_LEVELS if setting.key == "log_level" else LOG_FORMATS)
    if isinstance(setting.default, str):
        # A colon in an address begins a port.
        without = ":" if setting.key in ("bind", "pubsub_bind", "silk", "silk_pub") else ""
        return st.text(st.characters(categories=["L", "N", "P"], exclude_characters=without), min_size=1)
    least, most = setting._range
    if isinstance(setting.default, float):
        return st.floats(least, most).map(lambda value: round(value, 6))
    return st.integers(int(least), int(most))


settings_and_values = st.sampled_from(SETTINGS).flatmap(
    lambda setting: st.tuples(st.just(setting), allowed_values(setting))
)


def toml(setting: Setting, value: Value) -> str:
    # repr() of a number is TOML, and JSON's strings and truths are TOML's.
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
    return f"{setting.path} = {text}"


def test_without_anything_the_defaults_hold() -> None:
    assert load() == Config() == load({}, {"PATH": "/bin"})


def test_every_field_is_one_setting_with_help() -> None:
    fields = {field.name for field in dataclasses.fields(Config)} - {"cluster", "limits", "access"}
    fields |= {field.name for table in (Cluster, Limits) for field in dataclasses.fields(table)}
    assert {setting.key for setting in SETTINGS} == fields
    assert len(SETTINGS) == len(fields), "a key is in two tables"
    assert all(setting.help for setting in SETTINGS)
    flags = [setting.flag for setting in SETTINGS if not setting.secret]
    assert len(set(flags)) == len(flags)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_a_default_is_allowed_and_reads_as_it_is_shown(setting: Setting) -> None:
    assert setting.accept(setting.default, "default") == setting.default or setting.key == "bind"
    assert setting.parse(setting.shown(setting.default), "shown") == setting.default


@given(settings_and_values)
def test_a_value_is_the_same_whether_it_comes_by_file_variable_or_flag(
    tmp_path_factory: pytest.TempPathFactory, chosen: tuple[Setting, Value]
) -> None:
    setting, value = chosen
    file = tmp_path_factory.mktemp("config") / "node.toml"
    file.write_text(toml(setting, value))
    for loaded in (
        load(file=file),
        load(environ={setting.variable: setting.shown(value)}),
        load(flags={setting.key: setting.shown(value)}),
    ):
        assert setting.of(loaded) == value
        assert type(setting.of(loaded)) is type(setting.default)


@given(st.tuples(*[st.lists(settings_and_values, max_size=4)] * 3))
def test_of_any_mixture_of_sources_the_strongest_decides_each_setting(
    tmp_path_factory: pytest.TempPathFactory, sources: tuple[list[tuple[Setting, Value]], ...]
) -> None:
    in_file, in_environ, in_flags = ({setting.key: (setting, value) for setting, value in source} for source in sources)
    expected = {key: value for key, (_, value) in (in_file | in_environ | in_flags).items()}
    file = tmp_path_factory.mktemp("config") / "node.toml"
    file.write_text("\n".join(toml(setting, value) for setting, value in in_file.values()))
    loaded = load(
        {key: setting.shown(value) for key, (setting, value) in in_flags.items()},
        {setting.variable: setting.shown(value) for setting, value in in_environ.values()},
        file,
    )
    if expected.keys() & {"pubsub_bind", "pubsub_port"}:
        expected = {"pubsub": True} | expected
    for setting in SETTINGS:
        assert setting.of(loaded) == expected.get(setting.key, setting.default)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("prot = 1", ["'prot'", "did you mean 'port'"]),
        ("drain_timeout = 1", ["'drain_timeout'", "'drain_timeout_s'"]),
        ("max_connections = 1", ["'max_connections'", "'limits.max_connections'"]),
        ("[limits]\nmax_conections = 1", ["'limits.max_conections'", "'limits.max_connections'"]),
        ("[limits]\nport = 1", ["'limits.port'", "did you mean 'port'"]),
        ("parent_fd = 1", ["'parent_fd'"]),
        ("xyzzy = 1", ["'xyzzy'", "known are bind, port"]),
        ("port = '3443'", ["port: '3443' is not a whole number from 0 to 65535"]),
        ("port = -1", ["port: -1 is not"]),
        ("bind = ['::']", ["bind: ['::'] is not one line of text"]),
        ("drain_timeout_s = nan", ["drain_timeout_s: nan is not"]),
        ("[limits]\nmax_calls = 0", ["limits.max_calls: 0 is not"]),
        ("[limits.max_calls]\nx = 1", ["limits.max_calls: {'x': 1} is not"]),
        ("port = ", ["Invalid value"]),
        ("port = " + "[" * 600 + "]" * 600, ["too many"]),
        # Whether these can be shown depends on the Python.
        ("port = {" + "a." * 3000 + "a = 1}", []),
        ("[limits]\nmax_calls" + ".a" * 5000 + " = 1", []),
        ("[access.a]\nsend = [{topic = {" + "a." * 5000 + "a = 1}}]", []),
    ],
)
def test_what_a_file_must_not_say_is_told_with_file_and_key(tmp_path: Path, text: str, named: list[str]) -> None:
    file = tmp_path / "node.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(file=file)
    assert str(raised.value).startswith(f"{file}: ")
    for part in named:
        assert part in str(raised.value)


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    os.mkfifo(tmp_path / "pipe.toml")  # to open it would be to wait
    for file in (tmp_path, *(tmp_path / f"{name}.toml" for name in ("missing", "latin", "pipe"))):
        with pytest.raises(ConfigError, match=file.name):
            load(file=file)


@given(st.text())
def test_any_text_in_a_file_is_read_or_refused_in_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("config") / "node.toml"
    file.write_bytes(text.encode(errors="surrogatepass"))
    # Nothing else is raised.
    with contextlib.suppress(ConfigError):
        load(file=file)


@given(st.sampled_from(SETTINGS), st.text())
def test_any_text_in_a_variable_is_read_or_refused_with_its_name(setting: Setting, text: str) -> None:
    try:
        loaded = load(environ={setting.variable: text})
    except ConfigError as error:
        told = str(error)
    else:
        assert type(setting.of(loaded)) is type(setting.default)
        return
    # What is wrong with an address for pub/sub shows only together with its port.
    assert told.startswith((f"{setting.variable}: ", f"{setting.key}: "))


def test_keyword_arguments_are_checked_like_a_file() -> None:
    assert config.checked({"port": 0, "drain_timeout_s": 1, "max_calls": 5}) == {
        "port": 0,
        "drain_timeout_s": 1.0,
        "max_calls": 5,
    }
    for wrong in ({"prot": 1}, {"port": "1"}, {"parent_fd": 3}, {"limits": Limits()}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            config.checked(wrong)


def test_the_documentation_has_every_setting_with_its_default() -> None:
    text = DOCS.read_text()
    for setting in SETTINGS:
        flag = f"`{setting.flag}`" if setting.flag else ""
        row = f"| `{setting.path}` | {flag} | `{setting.variable}` | {shown(setting)} | {setting.help} |"
        assert row in text, row
    assert "parent-fd" not in text


def shown(setting: Setting) -> str:
    return f"`{setting.shown(setting.default)}`" if setting.default != "" else ""


def test_to_give_a_setting_the_default_that_is_shown_changes_nothing_whatever_bind_is() -> None:
    shown = {each.key: each.shown(each.default) for each in SETTINGS if each.key not in ("bind", "pubsub_port")}
    assert load({**shown, "bind": "10.0.0.5", "pubsub": "false"}) == load({"bind": "10.0.0.5"})


def test_who_may_do_what_stands_in_the_file_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text("port = 1\n[access.web]\nnetwork = '10.0.0.0/8'\nsend = ['jobs/*']\n")
    config = load(file=file)
    assert config.access is not None
    assert [each.name for each in config.access.principals] == ["web"]
    file.write_text("[access.web]\nnetwork = '10.0.0.0/8'\nsned = []\n")
    with pytest.raises(ConfigError, match=rf"{file}: access.web: unknown key 'sned'"):
        load(file=file)


@pytest.mark.parametrize(
    ("bind", "port", "address"),
    [
        ("127.0.0.1", None, ("127.0.0.1", 61_626)),
        (":61700", None, ("127.0.0.1", 61_700)),
        ("10.0.0.5:7000", 7000, ("10.0.0.5", 7000)),
        ("0.0.0.0:0", None, ("0.0.0.0", 0)),
        ("::1", 0, ("::1", 0)),
        ("[::1]", 5, ("::1", 5)),
        ("[::1]:5", 0, ("::1", 5)),
    ],
)
def test_the_address_of_pubsub_may_hold_its_port(bind: str, port: int | None, address: tuple[str, int]) -> None:
    flags = {"pubsub_bind": bind} if port is None else {"pubsub_bind": bind, "pubsub_port": str(port)}
    assert load(flags).pubsub_address == address


@pytest.mark.parametrize(
    "flags",
    [
        {"pubsub_bind": ":http"},
        {"pubsub_bind": "a:70000"},
        {"pubsub_bind": ":7000", "pubsub_port": "7001"},
    ],
)
def test_an_address_of_pubsub_that_cannot_be_is_refused(flags: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"^pubsub_"):
        load(flags)


def test_silk_is_on_loopback_where_bind_is_localhost() -> None:
    found = load({"bind": "localhost", "silk": ":3444", "pubsub": "true"})
    assert found.cluster.silk == "127.0.0.1:3444"
    assert found.pubsub_address[0] == "localhost"


@pytest.mark.parametrize(("bind", "host"), [("10.0.0.5", "10.0.0.5"), ("::1", "[::1]"), (None, "127.0.0.1")])
def test_all_doors_are_at_the_host_of_bind_unless_they_have_one_of_their_own(bind: str | None, host: str) -> None:
    at = {} if bind is None else {"bind": bind}
    found = load({**at, "pubsub_bind": ":7000", "silk": ":3444", "silk_pub": ":0"})
    assert found.admin_host == found.health_host == found.pubsub_address[0] == host.strip("[]")
    assert found.pubsub_address[1] == 7000
    assert (found.cluster.silk, found.cluster.silk_pub) == (f"{host}:3444", f"{host}:0")
    assert load({**at, "pubsub": "true"}).pubsub_address == (host.strip("[]"), DEFAULT_PUBSUB_PORT)
    assert load({**at, "silk": "10.9.9.9"}).cluster.silk == "10.9.9.9"
    own = {"pubsub_bind": "10.1.1.1", "admin_bind": "10.2.2.2", "health_bind": "10.3.3.3"}
    found = load({**at, **own})
    assert (found.pubsub_address[0], found.admin_host, found.health_host) == tuple(own.values())
