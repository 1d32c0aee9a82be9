"""All whom a node knows, and how it knows them."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Final

from skywalker.access import token
from skywalker.access.principal import Principal
from skywalker.errors import ConfigError

ANYONE: Final = "anyone"
"""The name of the principal who is whoever shows nothing."""

MAX_NAME: Final = 64


def is_name(text: str) -> bool:
    """Whether a principal may be called that."""
    return 0 < len(text) <= MAX_NAME and text.isprintable()


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """Who may come in. Where two principals would fit, it is the one that the file names first."""

    principals: tuple[Principal, ...]

    @classmethod
    def parse(cls, tables: Any, where: str) -> Access:
        """Read the tables of `[access]` by their names. Raises ConfigError saying `where` what is wrong."""
        if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
            raise ConfigError(f"{where}: write [access.NAME] for each who may come in, and below it what they may do")
        for name in tables:
            if not is_name(name):
                raise ConfigError(f"{where}: {name!r} is not a name of 1 to {MAX_NAME} characters")
        access = cls(tuple(Principal.parse(name, table, f"{where}.{name}") for name, table in tables.items()))
        access._check(where)
        return access

    @property
    def anyone(self) -> Principal | None:
        """Whoever shows nothing, if they may do something."""
        return next((each for each in self.principals if each.name == ANYONE), None)

    def of(self, names: Iterable[str], uid: int | None, host: str) -> tuple[Principal | None, bool]:
        """Return who comes with these names in a certificate, as this user, or else from this numeric address.

        And whether that was shown, or only is where they come from, or nothing.
        """
        found = self.by_certificate(names)
        if found is None and uid is not None:
            found = self.by_user(uid)
        if found is not None:
            return found, True
        return (self.by_network(host) if host else None) or self.anyone, False

    def by_token(self, text: str) -> Principal | None:
        """Return whose token this is. How long that takes says nothing of those that there are."""
        hashed = token.hash_of(text)
        found = None
        for principal in reversed(self.principals):
            for known in principal.hashes:
                if token.matches(hashed, known):
                    found = principal
        return found

    def by_certificate(self, names: Iterable[str]) -> Principal | None:
        """Return who shows a certificate with these names."""
        shown = frozenset(names)
        return next((each for each in self.principals if each.certificates & shown), None)

    def by_user(self, uid: int) -> Principal | None:
        """Return who a user of this machine is."""
        return next((each for each in self.principals if uid in each.users), None)

    def by_network(self, host: str) -> Principal | None:
        """Return who comes from a numeric address."""
        address = ipaddress.ip_address(host.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return next((each for each in self.principals if any(address in network for network in each.networks)), None)

    def _check(self, where: str) -> None:
        known: dict[str, str] = {}
        for principal in self.principals:
            shows = [*principal.hashes, *principal.certificates, *principal.users, *principal.networks]
            if principal.name == ANYONE and shows:
                raise ConfigError(f"{where}.{ANYONE}: that is who shows nothing: give what they show another name")
            if principal.name == ANYONE and principal.node:
                raise ConfigError(f"{where}.{ANYONE}: a node is trusted with everything, so it has to show who it is")
            if principal.name != ANYONE and not shows:
                raise ConfigError(
                    f"{where}.{principal.name}: nothing shows who that is: give a token, certificate, user or network"
                )
            if principal.node and (principal.users or principal.networks):
                raise ConfigError(
                    f"{where}.{principal.name}: a network or a user does not prove that somebody is a node: give "
                    "certificate, or as token the hash of cluster.secret, and name who comes from there apart"
                )
            for hashed in principal.hashes:
                if hashed in known:
                    raise ConfigError(f"{where}.{principal.name}: its token is that of {known[hashed]}, too")
                known[hashed] = principal.name
