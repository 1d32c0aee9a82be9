"""Both ends' contexts, of one authority."""

from __future__ import annotations

import ssl

import pytest

from skywalker.tls.contexts import client_context, server_context
from tests.authority import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom both trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def contexts(authority: Authority) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a node at 127.0.0.1 that asks for certificates, and of a client that has one."""
    node = server_context(*authority.sign("127.0.0.1"), authority.ca)
    return node, client_context(authority.ca, *authority.sign("client.example", file="client"))
