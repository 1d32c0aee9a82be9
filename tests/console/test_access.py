"""The console of a node that limits access, in a browser that shows a token, with TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error

import skywalker
from skywalker.access import token
from tests.admin.asking import Asker
from tests.authority import Authority
from tests.console.browser import console
from tests.helpers import eventually


def test_who_gives_a_token_as_the_password_sees_all_of_it(browser: Browser, tmp_path: Path) -> None:
    secret = token.new()
    (tmp_path / "skywalker.toml").write_text(f'[access.me]\ntoken = "{token.hash_of(secret)}"\nadmin = true\n')
    authority = Authority(tmp_path)
    cert, key = authority.sign("127.0.0.1")
    file = tmp_path / "skywalker.toml"
    with skywalker.embedded(2, admin=True, name="red", config_file=file, tls_cert=cert, tls_key=key) as node:
        eventually(lambda: Asker(node.admin_address, authority.context()).ask("/ready")[0] == 200, within=15)
        url = f"https://{node.admin_address}/"
        with console(
            browser, url, http_credentials={"username": "me", "password": secret}, ignore_https_errors=True
        ) as shown:
            shown.sees("#headline", "All well")
            shown.sees("#name", "red")
            before = shown.page.evaluate("() => performance.getEntriesByType('resource').length")
            # It is told of each second by events, and asks for lists besides.
            shown.page.wait_for_function(
                "before => performance.getEntriesByType('resource').length > before + 2", arg=before
            )
            assert {asked.rpartition("api/")[2].partition("?")[0] for asked in shown.requests if "api/" in asked} >= {
                *("events", "history", "topics", "connections", "ring")
            }
        stranger = browser.new_context(ignore_https_errors=True)
        with pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"):  # it was asked for a password
            stranger.new_page().goto(url)
        stranger.close()
        assert "skw_" not in node.log
