"""What a run tells while it works: rate and time left on a terminal, failures with their settings everywhere."""

import io
import time

from rich.console import Console

from memcap.study.cell import Cell
from memcap.study.progress import Bar, Silent, observer
from memcap.study.record import Outcome, State


def told(terminal):
    text = io.StringIO()
    bar = Bar(Console(file=text, force_terminal=terminal, width=120, soft_wrap=True, highlight=False))
    bar.begin(30, already_done=10)
    for x in range(12):
        cell = Cell("toy", 1, {"x": x, "mode": "raise"}, 7)
        time.sleep(0.03)
        failed = Outcome(State.FAILED, error_type="ValueError", error="no room")
        bar.cell(cell, failed if x == 3 else Outcome(State.DONE, {"recall": 1.0}))
    time.sleep(0.6)  # two refreshes
    bar.end()
    return text.getvalue()


def test_a_terminal_sees_count_rate_and_time_left_and_failures_with_their_settings():
    text = told(terminal=True)
    assert "22/30" in text
    assert "cells/s" in text
    assert "0:00:0" in text
    assert "cells (1 failed, 0 lost)" in text
    assert "failed: toy x=3 mode=raise seed=7: ValueError: no room" in text


def test_without_a_terminal_only_failures_are_written():
    assert told(terminal=False) == "failed: toy x=3 mode=raise seed=7: ValueError: no room\n"


def test_libraries_are_quiet_by_default():
    assert isinstance(observer(None), Silent)  # standard error is no terminal here
    assert isinstance(observer(False), Silent)
    assert isinstance(observer(True), Bar)
