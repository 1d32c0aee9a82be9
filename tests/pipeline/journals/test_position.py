"""How far a stream has read: every record once, in whatever steps, and what is missing is missed."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from typing import Any

import pytest

from skywalker.errors import ConfigError
from skywalker.pipeline.journals.position import Position, Seen, advanced, between, bounded

Losses = list[str]


def seen(opened: int, records: int, complete: bool = True, writer: str = "red-w0") -> Seen:
    return Seen(f"{writer}-{opened}.calls", writer, opened, records, complete)


def fail(loss: str) -> None:
    raise AssertionError(loss)


def as_kept(position: Position) -> Position:
    """The position as Spark hands it back: by way of JSON."""
    return Position.parse(json.loads(json.dumps(position.to_offset())))


def stretches(start: Position, end: Position, files: list[Seen]) -> list[tuple[str, int, int]]:
    return [(each.key, each.first, each.count) for each in between(start, end, files, fail)]


def test_nothing_new_moves_nothing_even_if_a_file_was_completed() -> None:
    growing = seen(10, 7, complete=False)
    end = advanced(Position(), [growing], None, fail)
    assert advanced(end, [growing], None, fail) is end
    assert advanced(end, [dataclasses.replace(growing, complete=True)], None, fail) is end
    assert advanced(end, [growing, seen(11, 0, complete=False)], None, fail) is end
    assert advanced(Position(), [], None, fail).to_offset() == Position().to_offset()


def test_an_offset_keeps_no_list_of_what_is_finished() -> None:
    files = [seen(at, 10) for at in range(1, 1001)] + [seen(1001, 3, complete=False)]
    end = advanced(Position(), files, None, fail)
    assert end.to_offset() == {
        "newest": 1001,
        "writers": {"red-w0": {"done": 1000, "records": 10_000, "files": {"red-w0-1001.calls": 3}}},
    }


def test_every_record_comes_once_however_a_journal_grows() -> None:
    """Writers begin, grow and complete files at random, old ones go once they are read; batches are planned twice."""
    chance = random.Random(5)
    for _ in range(300):
        files: dict[str, Seen] = {}
        due: Counter[tuple[str, int]] = Counter()
        got: Counter[tuple[str, int]] = Counter()
        position = Position()
        for clock in range(1, 61):
            writer = f"red-w{chance.randrange(3)}"
            growing = next((file for file in files.values() if file.writer == writer and not file.complete), None)
            if clock == 60:
                pass
            elif growing is None:
                made = seen(clock, 0, False, writer)
                files[made.key] = made
            elif chance.random() < 0.3:
                files[growing.key] = dataclasses.replace(growing, complete=True)
            else:
                more = chance.randrange(6)
                due.update((growing.key, growing.records + number) for number in range(more))
                files[growing.key] = dataclasses.replace(growing, records=growing.records + more)
            if clock == 60 or chance.random() < 0.5:
                most = None if clock == 60 or chance.random() < 0.5 else chance.randrange(1, 8)
                end = advanced(position, files.values(), most, fail)
                batch = stretches(position, as_kept(end), [*files.values()])
                # What comes meanwhile changes nothing about it.
                later = [
                    dataclasses.replace(file, records=file.records + (not file.complete)) for file in files.values()
                ]
                assert stretches(position, as_kept(end), [*later, seen(clock + 1, 9, writer="red-w9")]) == batch
                for key, first, count in batch:
                    got.update((key, number) for number in range(first, first + count))
                assert most is None or sum(count for _, _, count in batch) <= most
                position = as_kept(end)
                # The oldest go, but never what has not been finished with, nor all that the stream knows.
                reach = position.writers
                gone = [f for f in files.values() if f.writer in reach and f.opened < reach[f.writer].done]
                if gone and chance.random() < 0.3:
                    del files[min(gone, key=lambda file: file.age).key]
        assert got == due
        assert set(got.values()) <= {1}


def lost_in_advance(start: Position, files: list[Seen]) -> Losses:
    losses: Losses = []
    advanced(start, files, None, losses.append)
    return losses


def lost_between(start: Position, end: Position, files: list[Seen]) -> Losses:
    losses: Losses = []
    between(start, end, files, losses.append)
    return losses


def test_files_that_came_and_went_unseen_are_missed_where_nothing_known_is_left() -> None:
    end = advanced(Position(), [seen(10, 7), seen(11, 7)], None, fail)
    assert lost_in_advance(end, [seen(30, 1)])
    assert not lost_in_advance(end, [seen(11, 7), seen(30, 1)])
    # A writer that was silent for long has lost nothing as long as the others' files go back so far.
    both = advanced(Position(), [seen(10, 7), seen(25, 7, writer="red-w1")], None, fail)
    assert not lost_in_advance(both, [seen(25, 7, writer="red-w1"), seen(30, 1)])


def test_a_file_that_was_cut_is_missed() -> None:
    end = advanced(Position(), [seen(10, 7, complete=False)], None, fail)
    (loss,) = lost_in_advance(end, [seen(10, 3, complete=False)])
    assert "from 7 records" in loss
    assert "to 3" in loss


def test_a_file_that_is_begun_before_those_that_were_read_is_missed() -> None:
    end = advanced(Position(), [seen(10, 7)], None, fail)
    (loss,) = lost_in_advance(end, [seen(10, 7), seen(5, 1, complete=False)])
    assert "clock" in loss


@pytest.mark.parametrize("left", [[], [seen(10, 7)], [seen(10, 7), seen(11, 6), seen(12, 2, False)]])
def test_what_is_deleted_or_cut_between_planning_and_reading_is_missed(left: list[Seen]) -> None:
    files = [seen(10, 7), seen(11, 7), seen(12, 2, complete=False)]
    end = advanced(Position(), files, None, fail)
    assert lost_between(Position(), end, left)


def test_who_goes_on_without_what_is_lost_gets_the_rest() -> None:
    begun = advanced(Position(), [seen(10, 7, False), seen(11, 1, False, "red-w1")], None, fail)
    files = [seen(11, 4, writer="red-w1"), seen(12, 5)]
    losses: Losses = []
    end = advanced(begun, files, None, losses.append)
    found = between(begun, as_kept(end), files, losses.append)
    assert [(each.key, each.first, each.count) for each in found] == [
        ("red-w1-11.calls", 1, 3),
        ("red-w0-12.calls", 0, 5),
    ]
    assert len(losses) == 1


def test_files_can_be_seen_as_they_were() -> None:
    files = [seen(10, 7), seen(11, 9), seen(12, 1, complete=False), seen(13, 5)]
    assert bounded(files, {"red-w0-10.calls": 7, "red-w0-11.calls": 4, "red-w0-12.calls": 0}) == [
        seen(10, 7),
        seen(11, 4, complete=False),
        seen(12, 0, complete=False),
    ]


@pytest.mark.parametrize(
    "offset",
    [
        {"newest": -1},
        {"newest": "1"},
        {"writers": []},
        {"writers": {"red-w0": {"done": 1, "evil": 2}}},
        {"writers": {"red-w0": {"done": -1}}},
        {"writers": {"red-w0": {"records": 1.5}}},
        {"writers": {"red-w0": {"files": {"red-w0-1.calls": -5}}}},
        {"writers": {"red-w0": {"files": ["red-w0-1.calls"]}}},
    ],
)
def test_a_checkpoint_that_holds_something_else_is_named(offset: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="the checkpoint holds no offset of a journal"):
        Position.parse(offset)
