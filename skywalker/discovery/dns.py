"""Addresses from DNS: the A and AAAA records of a name, or those of the targets of its SRV records.

A name that does not exist, or has no such record, is an error and not an empty cluster: DNS says
the same of a name with a slip of the pen and of a zone that is being reloaded, and nobody who runs
should be forgotten for that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Final

from skywalker import extras
from skywalker.address import Address
from skywalker.discovery.source import Finding, Source
from skywalker.errors import DiscoveryError

ANSWER_S: Final = 5.0
"""Seconds for the answer to one question: enough for a resolver to try each of two servers twice."""

MIN_PAUSE_S: Final = 1.0
"""Seconds between looks at least: a TTL of 0 forbids caches, and asks for no busy loop."""

MAX_PAUSE_S: Final = 60.0
"""Seconds between looks at most: a TTL of a day must not keep a node that joins unknown for a day."""


class DnsSource(Source):
    """The hosts of a name, all at one port; or the targets of its SRV records, at theirs, whatever their priority.

    The TTL of the records says when to look again. A target that has no address is left out as long as
    another has one: a record may outlive its host.
    """

    def __init__(self, name: str, port: int | None, server: Address | None = None) -> None:
        """`port` None asks for SRV records; `server`, its host numeric, is asked instead of the machine's own."""
        self._name = name
        self._port = port
        self._server = server
        self._closed = threading.Event()

    def look(self) -> Finding:
        look = _Look(self, self._server, self._closed)
        if self._port is None:
            addresses = {Address(host, port) for name, port in look.targets(self._name) for host in look.hosts(name)}
        else:
            addresses = {Address(host, self._port) for host in look.hosts(self._name)}
        if not addresses:
            kind = "SRV record that leads to an address" if self._port is None else "A or AAAA record"
            raise DiscoveryError(f"{self} has no {kind}")
        return Finding(frozenset(addresses), min(max(look.ttl_s, MIN_PAUSE_S), MAX_PAUSE_S))

    def close(self) -> None:
        self._closed.set()

    def __str__(self) -> str:
        return f"DNS name {self._name}{f' of {self._server}' if self._server else ''}"


class _Look:
    """The questions of one look, and the shortest TTL of their answers."""

    def __init__(self, source: DnsSource, server: Address | None, closed: threading.Event) -> None:
        try:
            import dns.resolver
        except ImportError as error:
            raise DiscoveryError(f"finding nodes by DNS needs dnspython: {extras.command_for('dns')}") from error
        self.ttl_s = MAX_PAUSE_S
        self._source = source
        self._closed = closed
        try:
            # Made anew for each look: the machine's own servers may be others by then.
            self._resolver = dns.resolver.Resolver(configure=server is None)
        except (dns.exception.DNSException, ValueError) as error:  # the latter for what is no address of a server
            raise DiscoveryError(f"{source}: {error}") from error
        if server is not None:
            self._resolver.nameservers = [server.host]
            self._resolver.port = server.port

    def hosts(self, name: str) -> set[str]:
        """Return the addresses of a name, none if it does not exist."""
        return {record.address for kind in ("A", "AAAA") for record in self._records(name, kind)}

    def targets(self, name: str) -> set[tuple[str, int]]:
        """Return the names and ports that SRV records tell."""
        return {(str(record.target), record.port) for record in self._records(name, "SRV")}

    def _records(self, name: str, kind: str) -> Iterable[Any]:
        import dns.exception
        import dns.resolver

        if self._closed.is_set():
            raise DiscoveryError(f"{self._source}: closed")
        try:
            answer = self._resolver.resolve(name, kind, raise_on_no_answer=False, lifetime=ANSWER_S, search=True)
        except dns.resolver.NXDOMAIN:
            return ()
        except (dns.exception.DNSException, OSError) as error:
            raise DiscoveryError(f"{self._source}: {error}") from error
        self.ttl_s = min(self.ttl_s, answer.chaining_result.minimum_ttl)
        return answer
