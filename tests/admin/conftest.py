"""A node that shows what it does, for tests that change nothing."""

from collections.abc import Iterator

import pytest

from tests.admin.asking import Asker, node


@pytest.fixture(scope="session")
def admin() -> Iterator[Asker]:
    with node() as (_, asker):
        yield asker
