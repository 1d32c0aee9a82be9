"""Redialling comes soon, then less and less often, and never in step."""

from hypothesis import given
from hypothesis import strategies as st

from skywalker.backoff import BASE_S, CAP_S, delay


@given(st.integers(0, 10**9), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_within_its_window_whatever_the_luck(failures: int, luck: float) -> None:
    assert 0 <= delay(failures, luck) < CAP_S


def test_the_window_doubles_up_to_the_cap() -> None:
    windows = [delay(failures, 0.5) * 2 for failures in range(20)]
    assert windows[0] == BASE_S
    assert windows[1] == 2 * BASE_S
    assert windows == sorted(windows)
    assert windows[-1] == CAP_S


def test_whoever_has_longer_outages_may_have_a_longer_cap() -> None:
    assert delay(0, 0.5, cap_s=60.0) == delay(0, 0.5)
    assert delay(10**9, 0.5, cap_s=60.0) == 30.0
