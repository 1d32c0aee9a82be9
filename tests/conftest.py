"""Rules for the whole suite: in CI a skipped test is a failure, and hypothesis sets no time limit of its own."""

import os
import signal
from collections.abc import Generator

import hypothesis
import pytest

# A machine that pauses for 200 ms says nothing about the code; pytest-timeout ends what really hangs.
hypothesis.settings.register_profile("unhurried", hypothesis.settings.get_profile("default"), deadline=None)
hypothesis.settings.register_profile("ci", hypothesis.settings.get_profile("ci"), deadline=None)


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


# Nodes of tests would meet at its port. Those that test it ask for one of their own.
os.environ.setdefault("SKYWALKER_ADMIN", "false")

# Those that run as root, as in CI, start nodes that stay that.
if os.geteuid() == 0:
    os.environ.setdefault("SKYWALKER_USER", "root")


def pytest_configure() -> None:
    # What a shell starts in the background ignores it, and so would all that tests start, and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.settings.load_profile("ci" if _in_ci() else "unhurried")


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """What CI does not run it does not know: turn a skip into a failure that tells the reason of the skip."""
    if _in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report
