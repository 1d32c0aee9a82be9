"""How people write where a cluster is: a list of addresses, or a URL of what knows them."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from skywalker.address import UNIX, Address, is_numeric
from skywalker.discovery.source import Source, StaticSource
from skywalker.errors import LocalProtocolError
from skywalker.limits import DEFAULT_PORT

FORMS: Final = (
    "host:3443,host:3443",
    "skywalkers://host:3443,host:3443",
    "unix:///path",
    "silk://host:3444,host:3444",
    "dns://name:3443",
    "dns://_service._tcp.name",
    "consul://host:8500/service",
)

TLS: Final = "skywalkers://"

_DNS_PORT: Final = 53


def source_of(text: str) -> Source:
    """Return the source that a text names. Nothing is asked yet.

    host:3443,host:3443           these addresses
    skywalkers://host:3443,...    the same, where TLS is spoken: see asks_for_tls()
    unix:///path                  the Unix socket of a node on this machine
    silk://host:3444,host:3444    what any of these members of a Silk cluster tells; option: keys=FILE
    dns://name:3443               the A and AAAA records of a name; options: server=127.0.0.1:53
    dns://_service._tcp.name      SRV records, which tell ports of their own; the same options
    consul://host:8500/service    what passes its health checks; options: token, tls=true, and the files ca, cert, key

    Raises LocalProtocolError naming what is allowed, DiscoveryError if a library is missing.
    """
    if asks_for_tls(text):
        return StaticSource.parse(without_tls(text))
    if text.lower().startswith(UNIX):
        return StaticSource(frozenset({Address.parse_unix(text)}))
    if "://" not in text:
        return StaticSource.parse(text)
    scheme, _, rest = text.partition("://")
    if scheme.lower() == "silk":
        return _silk(rest)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # No more of the text, here and below, than what surely is no token.
        raise LocalProtocolError(f"host and port of a {scheme}:// URL are not readable: {_allowed()}") from None
    if parts.username or parts.password or parts.fragment or not parts.hostname or port == 0:
        raise LocalProtocolError(f"{_shown(parts)} lacks a host, or has more than its form allows: {_allowed()}")
    if parts.scheme == "dns":
        return _dns(parts, parts.hostname, port)
    if parts.scheme == "consul":
        return _consul(parts, parts.hostname, port)
    raise LocalProtocolError(
        f"{_shown(parts)} is not a source of addresses; the node there is {parts.netloc}, "
        f"or with TLS {TLS}{parts.netloc}: {_allowed()}"
    )


def asks_for_tls(text: str) -> bool:
    """Whether a text names nodes that are to be spoken with by TLS, and by nothing else."""
    return text.lstrip().lower().startswith(TLS)


def without_tls(text: str) -> str:
    """Return the addresses behind skywalkers://, all of them if there is none. Raises LocalProtocolError."""
    if not asks_for_tls(text):
        return text
    hosts = text.strip()[len(TLS) :].removesuffix("/")
    if not hosts or {"@", "#", "?", "/"} & {*hosts}:
        raise LocalProtocolError(f"a {TLS} URL lacks a host, or has more than its form allows: {_allowed()}")
    return hosts


def _silk(text: str) -> Source:
    from skywalker.discovery.silk import SilkAccess, SilkSource

    members, _, query = text.partition("?")
    members = members.removesuffix("/")
    options = _options(SplitResult("silk", "", "", query, ""), {"keys"})
    if not members or {"@", "#"} & {*text}:
        raise LocalProtocolError(f"a silk:// URL lacks a host, or has more than its form allows: {_allowed()}")
    return SilkSource(SilkAccess.parse(members, options.get("keys", "")))


def _dns(parts: SplitResult, name: str, port: int | None) -> Source:
    from skywalker.discovery.dns import DnsSource

    options = _options(parts, {"server"})
    if parts.path not in ("", "/"):
        raise LocalProtocolError(f"{_shown(parts)} has a path, and DNS knows none: {_allowed()}")
    if is_numeric(name):
        raise LocalProtocolError(f"{_shown(parts)} is an address already: write it without dns://")
    server = dns_server(options["server"]) if "server" in options else None
    if name.startswith("_"):
        if port is not None:
            raise LocalProtocolError(f"{_shown(parts)} has a port, and its SRV records have ports of their own")
        return DnsSource(name, None, server)
    return DnsSource(name, port or DEFAULT_PORT, server)


def dns_server(text: str) -> Address:
    """Read "127.0.0.1:53", the numeric address of a DNS server. Raises LocalProtocolError."""
    server = Address(text, _DNS_PORT) if is_numeric(text) else Address.parse(text)
    if not is_numeric(server.host):
        raise LocalProtocolError(f"{text} is not a numeric address of a DNS server, such as 127.0.0.1:{_DNS_PORT}")
    return server


def _consul(parts: SplitResult, host: str, port: int | None) -> Source:
    from skywalker.discovery.consul import DEFAULT_PORT as CONSUL_PORT
    from skywalker.discovery.consul import DEFAULT_TLS_PORT, ConsulAccess, ConsulSource

    options = _options(parts, {"token", "tls", "ca", "cert", "key"})
    service = unquote(parts.path.removeprefix("/"))
    if not service or "/" in service:
        raise LocalProtocolError(f"{_shown(parts)} must name one service: {_allowed()}")
    tls = options.get("tls", "false")
    if tls not in ("true", "false"):
        raise LocalProtocolError(f"tls={tls} is neither true nor false")
    files = {f"{key}_file": options[key] for key in ("ca", "cert", "key") if key in options}
    if files and tls == "false":
        raise LocalProtocolError(f"{_shown(parts)} names files for TLS: add tls=true")
    if "key" in options and "cert" not in options:
        raise LocalProtocolError(f"{_shown(parts)} names a key without its certificate: add cert=FILE")
    port = port or (DEFAULT_TLS_PORT if tls == "true" else CONSUL_PORT)
    return ConsulSource(ConsulAccess(Address(host, port), tls == "true", options.get("token", ""), **files), service)


def _options(parts: SplitResult, known: set[str]) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(pairs)
    wrong = sorted(options.keys() - known) or sorted(key for key, value in options.items() if not value)
    if wrong or len(pairs) != len(options):
        raise LocalProtocolError(
            f"{_shown(parts)} has options that are unknown, empty or said twice"
            f"{': ' + ', '.join(wrong) if wrong else ''}; there are {', '.join(sorted(known))}"
        )
    return options


def _shown(parts: SplitResult) -> str:
    host = parts.hostname or ""
    # Not as it was written: before it there may be a password.
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{parts.port}' if parts.port else ''}"


def _allowed() -> str:
    return f"write {', '.join(FORMS[:-1])} or {FORMS[-1]}"
