"""The settings of a node. Each is one field of a class here or of Limits; everything else is made from these.

SETTINGS is the table: for every setting its key in the TOML file, its SKYWALKER_* variable,
its flag, what is allowed and one line of help. load() reads them: a flag outdoes a variable,
a variable the file, the file the default. Anything unknown or not allowed is a ConfigError
that names where it stands. The environment is read only when it is passed in.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from skywalker.access.access import Access
from skywalker.errors import ConfigError
from skywalker.journal.settings import JournalSettings
from skywalker.limits import DEFAULT_ADMIN_PORT, DEFAULT_HOST, DEFAULT_PORT, DEFAULT_PUBSUB_PORT, MIB, Limits, setting
from skywalker.ring import TOKENS_PER_NODE
from skywalker.setting import MAX_PORT, Setting, Value


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """How one node finds others, and is found."""

    advertise: str = setting("", "host:port at which others reach this node; empty means where it listens")
    silk: str = setting("", "listen for Silk here, and find other nodes by it: 10.0.0.1, :3444 (at bind), ipc:///path")
    silk_pub: str = setting("", "send Silk broadcasts from here; empty means the same host and any free port")
    silk_join: str = setting("", "Silk members to join, host:3444,host:3444; one that answers is enough")
    silk_keys: str = setting("", "file with the key pair of the Silk members; nobody can join without it")
    join: str = setting("", "nodes of the cluster, host:port,host:port; one that answers is enough")
    dns: str = setting("", "name whose A, AAAA or, if it begins with _, SRV records are the cluster's nodes")
    dns_server: str = setting("", "host:port of the name server to ask; empty means the system's")
    consul: bool = setting(False, "find the cluster's nodes in Consul")
    register: bool = setting(False, "register this node in Consul")
    service: str = setting("skywalker", "name of the cluster in Consul")
    consul_url: str = setting("http://127.0.0.1:8500", "URL of Consul, http or https")
    consul_token: str = setting("", "ACL token for Consul", secret=True)
    consul_ca: str = setting("", "file with the authorities to trust for Consul; empty means the system's")
    consul_cert: str = setting("", "file with this node's certificate for Consul, and its key unless consul_key has it")
    consul_key: str = setting("", "file with the key of that certificate")
    health_bind: str = setting("", "address of the health check's HTTP server; empty means that of bind")
    health_port: int = setting(0, "HTTP port of the health check; 0 means none, or with --register any free one")
    secret: str = setting(
        "",
        "secret that all nodes of the cluster know; to replace it, the new and the old one with a space between",
        secret=True,
    )
    secret_in_clear: bool = setting(
        False, "during an upgrade, also send the secret itself, to nodes of the version before"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """How one node runs. Made by load(), every value is within its range."""

    bind: str = setting(DEFAULT_HOST, "address to listen on, at all doors that are given no other")
    port: int = setting(DEFAULT_PORT, "TCP port to listen on; 0 takes any free one")
    pubsub: bool = setting(False, "speak pub/sub too, at a port of its own; either of the next two turns it on as well")
    pubsub_bind: str = setting("", "address for pub/sub, perhaps with its port, as :61626; empty means that of bind")
    pubsub_port: int = setting(DEFAULT_PUBSUB_PORT, "TCP port for pub/sub; 0 takes any free one")
    unix: str = setting("", "path of a Unix socket to listen on too; its clients are known by their user")
    open: bool = setting(False, "let everybody who can reach an address that is not loopback do everything")
    tls_cert: str = setting(
        "", "file with this node's certificate chain; turns on TLS at every door but health and Silk"
    )
    tls_key: str = setting("", "file with the key of that certificate, unless the same file has it")
    tls_ca: str = setting("", "file with the authorities that sign clients' and other nodes' certificates")
    tls_minimum: str = setting("1.3", "oldest version of TLS that is accepted, 1.3 or 1.2")
    user: str = setting(
        "", "user to become once it listens, if root starts it; root to stay root; on loopback, nobody if possible"
    )
    workers: int = setting(0, "worker processes; 0 means one for each core")
    state_dir: str = setting(
        "", "directory for what outlives the node, such as its tokens; empty means the usual place"
    )
    backlog: int = setting(1024, "connections that may wait to be accepted, at each worker")
    name: str = setting("", "name of this node; empty means the host name")
    drain_timeout_s: float = setting(10.0, "time that waiting calls get when the node is told to stop")
    watchdog_s: float = setting(10.0, "time after which a worker whose loop does not turn is replaced")
    log_level: str = setting("info", "lowest level that is logged: info, warning or error")
    log_format: str = setting("logfmt", "format of a log line: logfmt, or json for a JSON object")
    admin: bool = setting(True, "run the admin server: figures and a console over HTTP, at a port of its own")
    admin_bind: str = setting("", "address of the admin server; empty means that of bind")
    admin_port: int = setting(DEFAULT_ADMIN_PORT, "TCP port of the admin server; 0 takes any free one")
    tokens: int = setting(TOKENS_PER_NODE, "tokens of a new node; more of them distribute topics more evenly")
    journal: str = setting("", "directory for a journal of all calls; empty means no journal")
    journal_sample: str = setting("1/1", "fraction of the calls that is recorded: 1/16 is one in 16")
    journal_rotate: str = setting("64MiB/60s", "size and time after which a worker begins another file")
    journal_keep: int = setting(10 * 1024 * MIB, "bytes that the journal may take; its oldest files are deleted first")
    cluster: Cluster = dataclasses.field(default_factory=Cluster)
    limits: Limits = dataclasses.field(default_factory=Limits)
    access: Access | None = None
    """Who may do what; None if everybody may do everything. Only a file can say this."""

    @property
    def certifies(self) -> bool:
        """Whether nobody comes in without a certificate that an authority of `tls_ca` has signed."""
        return bool(self.tls_cert and self.tls_ca) and self.access is None

    @property
    def bares_tokens(self) -> bool:
        """Whether tokens cross a network where others may read them."""
        doors = [self.bind, *([self.admin_host] if self.admin else [])]
        if self.tls_cert or all(is_loopback(host) for host in doors):
            return False
        principals = self.access.principals if self.access is not None else ()
        return self.cluster.secret_in_clear or any(each.hashes and not each.node for each in principals)

    @property
    def admin_host(self) -> str:
        """Where the admin server listens."""
        return self.admin_bind or self.bind

    @property
    def health_host(self) -> str:
        """Where the health check is answered."""
        return self.cluster.health_bind or self.bind

    @property
    def pubsub_address(self) -> tuple[str, int]:
        """Where pub/sub is spoken. Raises ConfigError."""
        host, port = self._own_pubsub_address
        return host or self.bind, port

    @property
    def pubsub_follows_bind(self) -> bool:
        """Whether pub/sub was given no host of its own. Raises ConfigError."""
        return not self._own_pubsub_address[0]

    @property
    def _own_pubsub_address(self) -> tuple[str, int]:
        """The address that `pubsub_bind` and `pubsub_port` give; the former may hold the port, as in ":61626"."""
        bind = self.pubsub_bind
        is_bare_ipv6 = bind.count(":") > 1 and not bind.startswith("[")
        if ":" not in bind or is_bare_ipv6 or bind.endswith("]"):
            return bind.strip("[]"), self.pubsub_port
        host, _, port = bind.rpartition(":")
        if not (port.isascii() and port.isdecimal() and int(port) <= MAX_PORT):
            raise ConfigError(f"pubsub_bind: {bind!r} is not a host, host:port or :port")
        return host.strip("[]"), int(port)

    @property
    def journal_settings(self) -> JournalSettings | None:
        """How the journal is kept, None if none is. Raises ConfigError on a machine where none can be."""
        if not self.journal:
            return None
        return JournalSettings.parse(self.journal, self.journal_sample, self.journal_rotate, self.journal_keep)


def _settings(defaults: Config | Cluster | Limits, table: str) -> Iterator[Setting]:
    for field in dataclasses.fields(defaults):
        if "help" in field.metadata:
            yield Setting(table, field.name, getattr(defaults, field.name), **field.metadata)


SETTINGS: Final[tuple[Setting, ...]] = (
    *_settings(Config(), ""),
    *_settings(Cluster(), "cluster"),
    *_settings(Limits(), "limits"),
)
"""Every setting in the order of the fields, those of Config first."""

TABLES: Final = ("cluster", "limits")

MAX_FILE: Final = MIB
"""Bytes of a config file."""

BY_KEY: Final[Mapping[str, Setting]] = {each.key: each for each in SETTINGS}
"""No key is in two tables, so that one name is enough for a flag, a variable or a keyword argument."""


def load(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Config:
    """Return the settings of `file`, outdone by those of `environ`, outdone by `flags` (text by key).

    Secrets may be files of their own, too, which systemd passes: those outdo `file`, and a variable outdoes them.
    Raises ConfigError for a file that cannot be read and for every key or value that is not allowed.
    """
    values: dict[str, Value] = {}
    access = None
    if file is not None:
        values, access = _from_document(document_of(text_of(file), file), file)
    for known in SETTINGS:
        if environ and (passed := known.credential(environ)) is not None:
            values[known.key] = known.parse(passed, f"the credential {known.path}")
        if environ and known.variable in environ:
            values[known.key] = known.parse(environ[known.variable], known.variable)
    for key, text in (flags or {}).items():
        values[key] = BY_KEY[key].parse(text, BY_KEY[key].flag)
    return _config(values, access)


def checked(settings: Mapping[str, object]) -> dict[str, Value]:
    """Return keyword arguments of a program as values by key. Raises ConfigError for an unknown key or a bad value."""
    for key in settings:
        if key not in BY_KEY:
            raise ConfigError(f"unknown setting {key!r}{_instead(key, list(BY_KEY))}")
    return {key: BY_KEY[key].accept(value, key) for key, value in settings.items()}


def _config(values: Mapping[str, Value], access: Access | None) -> Config:
    tables: dict[str, dict[str, Any]] = {table: {} for table in ("", *TABLES)}
    if values.keys() & {"pubsub_bind", "pubsub_port"}:
        values = {"pubsub": True, **values}  # who says where wants it
    for key, value in _silk_at_bind(values).items():
        tables[BY_KEY[key].table][key] = value
    config = Config(
        **tables[""], cluster=Cluster(**tables["cluster"]), limits=Limits(**tables["limits"]), access=access
    )
    _check_pubsub(config, "pubsub_port" in values)
    return config


def _silk_at_bind(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values with those addresses for Silk that are a port only at the host of `bind`."""
    host = str(values.get("bind", DEFAULT_HOST))
    in_brackets = f"[{host}]" if ":" in host else host
    at = DEFAULT_HOST if host == "localhost" else in_brackets  # Silk takes no names
    ports = {key: str(values[key]) for key in ("silk", "silk_pub") if key in values}
    return {**values, **{key: at + text for key, text in ports.items() if re.fullmatch(r":\d+", text, re.ASCII)}}


def _check_pubsub(config: Config, names_port: bool) -> None:
    """Raise ConfigError if the door for pub/sub has two ports."""
    _, port = config.pubsub_address
    if names_port and config.pubsub_port not in (0, port):
        raise ConfigError(f"pubsub_bind: {config.pubsub_bind!r} names a port, and pubsub_port {config.pubsub_port}")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on a host: a numeric address, or "localhost"."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def of_document(document: Mapping[str, Any], file: Path) -> Config:
    """Return the settings that a TOML document holds, which is that of `file`. Raises ConfigError."""
    return _config(*_from_document(document, file))


def text_of(file: Path) -> str:
    """Return what is in a config file. Raises ConfigError."""
    try:
        if stat.S_ISFIFO(file.stat().st_mode):
            # To open one is to wait for who writes, and a node that reads its file again has other things to do.
            raise ConfigError(f"{file}: is a pipe, and a config file is read more than once")
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise ConfigError(f"{file}: is larger than {MAX_FILE // MIB} MiB, so it is not a config file")
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        byte = content[error.start]
        raise ConfigError(f"{file}: Byte 0x{byte:02x} is not UTF-8 (at line {line}, column {column})") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # the path may be none
        raise ConfigError(f"{file}: {error}") from error


def document_of(text: str, file: Path) -> dict[str, Any]:
    """Return the TOML document that is the text of `file`. Raises ConfigError."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise too_deep(file) from None
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from error


def too_deep(file: Path) -> ConfigError:
    """Return the error about a file that cannot be read, or whose mistakes cannot be shown, for lack of stack."""
    return ConfigError(f"{file}: has tables or arrays in each other that are too many to be read")


def _from_document(document: Mapping[str, Any], file: Path) -> tuple[dict[str, Value], Access | None]:
    try:
        access = Access.parse(document["access"], f"{file}: access") if "access" in document else None
        by_path = {each.path: each for each in SETTINGS}
        values: dict[str, Value] = {}
        for path, value in _flattened(document, file):
            if path not in by_path:
                tables = (*TABLES, "access") if isinstance(value, dict) else ()
                raise ConfigError(f"{file}: unknown key {path!r}{_instead(path, [*by_path, *tables])}")
            found = by_path[path]
            values[found.key] = found.accept(value, f"{file}: {path}")
    except RecursionError:
        raise too_deep(file) from None
    return values, access


def _flattened(document: Mapping[str, object], file: Path) -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        if key == "access":
            continue
        if key not in TABLES:
            yield key, value
        elif isinstance(value, dict):
            yield from ((f"{key}.{inner}", of) for inner, of in value.items())
        else:
            raise ConfigError(f"{file}: {key} is not a table; write [{key}] and its keys below it")


def _instead(unknown: str, known: list[str]) -> str:
    """Return the hint that ends an error about an unknown key: the nearest one, whatever table it is in."""
    bare = {path.rpartition(".")[2]: path for path in known}
    near = difflib.get_close_matches(unknown.rpartition(".")[2], bare, n=1, cutoff=0.6)
    return f"; did you mean {bare[near[0]]!r}?" if near else f"; known are {', '.join(known)}"
