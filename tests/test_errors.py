"""An error keeps its code on its way over the wire, whether this version knows it or not."""

from __future__ import annotations

import pytest

from skywalker import errors
from skywalker.errors import BY_CODE, RequestError


def test_a_code_of_another_version_is_kept_and_is_no_error_that_we_know() -> None:
    error = RequestError.from_wire("moved", "ask another node", {"port": 7})
    assert type(error) is RequestError
    assert error.code == "moved"
    assert str(error) == "ask another node"
    assert error.details == {"port": 7}
    assert not error.retryable


def test_a_code_that_is_kept_is_that_of_one_error_and_no_other() -> None:
    RequestError.from_wire("moved", "", {})
    assert RequestError.code == "internal"
    assert RequestError("later").code == "internal"


@pytest.mark.parametrize("code", BY_CODE)
def test_a_known_code_becomes_its_own_error_with_the_same_code(code: str) -> None:
    error = RequestError.from_wire(code, "what happened", {"limit": 5})
    assert type(error) is BY_CODE[code]
    assert error.code == type(error).code == code
    assert isinstance(error, errors.SkywalkerError)
