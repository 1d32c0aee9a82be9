"""One Chromium for all that look at the console."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.console.browser import chromium


# Not for the whole session: what drives it has an event loop that runs, beside which no other test can have its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
