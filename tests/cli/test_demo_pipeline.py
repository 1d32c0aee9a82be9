"""What the demo of the pipeline shows while Spark is at work."""

from __future__ import annotations

import pytest

from skywalker.cli.demo.screen import Page
from skywalker.cli.demo_pipeline.word_count import View


def test_as_long_as_no_word_is_counted_it_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    view = View(Page())
    view.now(100, {}, 1.5)
    assert "Spark is starting" in capfd.readouterr().out
    view.now(200, {"word": 3}, 3.0)
    shown = capfd.readouterr().out
    assert "3 words" in shown
    assert "Spark" not in shown
