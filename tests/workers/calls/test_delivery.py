"""Who gets a value: all who listen, one of each group of takers, the first who comes; and what a :cancel undoes."""

from __future__ import annotations

from tests.workers.wire_client import Clients, WireClient, packed, raw_call, refusal


class TestCancel:
    def test_a_waiting_call_is_answered_cancelled_and_the_cancel_true(self, connect: Clients, topic: str) -> None:
        client = connect()
        for id, call in enumerate([(":recv!",), (":send!", "value"), (":take!", "group")]):
            method, *rest = call
            client.call(method, id, 60_000, topic, *rest)
            client.call(":cancel", "c", id)
            first, second = client.replies(2)
            error = refusal(first)
            assert (error.method, error.id, error.code) == (method, id, "cancelled")
            assert second == [":cancel", "c", True]
            client.wait_until(topic, receivers=0, senders=0, takers={})

    def test_an_answered_call_is_not_cancelled(self, connect: Clients, topic: str) -> None:
        client = connect()
        assert client.ask(":cancel", 1, "never made") is False
        client.call(":recv!", 2, 60_000, topic)
        client.call(":send!", 3, 60_000, topic, "value")
        client.replies(2)
        assert client.ask(":cancel", 4, 2) is False
        assert client.ask(":cancel", 5, 3) is False

    def test_a_call_of_another_connection_is_not_cancelled(self, connect: Clients, topic: str) -> None:
        mine, theirs = connect(), connect()
        theirs.call(":recv!", 1, 60_000, topic)
        mine.wait_until(topic, receivers=1)
        assert mine.ask(":cancel", 1, 1) is False
        assert mine.ask(":send!", 2, 5000, topic, "still there") is True
        assert theirs.reply() == [":recv!", 1, "still there"]

    def test_of_two_calls_with_one_id_each_cancel_ends_one(self, connect: Clients, topic: str) -> None:
        client = connect()
        client.call(":recv!", 1, 60_000, topic)
        client.call(":recv!", 1, 60_000, topic)
        client.call(":cancel", 2, 1)
        client.call(":cancel", 3, 1)
        client.call(":cancel", 4, 1)
        answers = client.replies(5)
        assert sorted(result for method, _, result in answers if method == ":cancel") == [False, True, True]
        assert [refusal(each).code for each in answers if each[0] == ":recv!"] == ["cancelled", "cancelled"]


class TestTake:
    def test_takers_are_served_first_come_first_served(self, connect: Clients, topic: str) -> None:
        takers = [connect() for _ in range(4)]
        sender = connect()
        for count, taker in enumerate(takers, 1):
            taker.call(":take!", 1, 60_000, topic, "pool")
            sender.wait_until(topic, takers={"pool": count})
        for number, taker in enumerate(takers):
            assert sender.ask(":send!", number, 5000, topic, number) is True
            assert taker.reply() == [":take!", 1, number]

    def test_a_group_may_be_encoded_at_length(self, connect: Clients, topic: str) -> None:
        client, sender = connect(), connect()
        for group in ("a3726564", "d903726564"):
            client.write(raw_call(packed(":take!"), b"\x01", packed(60_000), packed(topic), bytes.fromhex(group)))
        sender.wait_until(topic, takers={"red": 2})


def test_the_largest_value_that_fits_passes_and_fills_the_frame(connect: Clients, topic: str) -> None:
    sender, receiver = connect(), connect()
    short = "t" + topic[-40:]
    overhead = (
        len(raw_call(packed(":send!"), b"\x01", packed(60_000), packed(short), packed(b"x" * 60_000))) - 60_000 - 2
    )
    value = b"x" * (65_535 - overhead)
    call = raw_call(packed(":send!"), b"\x01", packed(60_000), packed(short), packed(value))
    assert len(call) == 2 + 65_535
    receiver.call(":recv!", 2, 5000, short)
    sender.write(call)
    assert receiver.reply() == [":recv!", 2, value]
    assert sender.reply() == [":send!", 1, True]


def test_a_sender_whose_value_fits_no_reply_is_told_so_and_who_listens_goes_on(connect: Clients) -> None:
    # A send has less around its value than the reply to a receive with a long id.
    topic, long_id = "t", "i" * 31
    overhead = len(raw_call(packed(":send!"), b"\x01", b"\x00", packed(topic), packed(b"x" * 60_000))) - 60_000 - 2
    value = b"x" * (65_535 - overhead - 2)
    sender, listener = connect(), connect()
    sender.ask(":hello", 0, {})  # else it would hear that the time is over
    listener.call(":recv!", long_id, 60_000, topic)
    sender.wait_until(topic, receivers=1)
    sender.write(raw_call(packed(":send!"), b"\x01", packed(60_000), packed(topic), packed(value)))
    error = sender.refusal()
    assert (error.method, error.id, error.code) == (":send!", 1, "too-large")
    assert error.details["limit"] < error.details["size"] == len(packed(value))
    sender.wait_until(topic, receivers=1, senders=0)
    assert sender.ask(":send!", 2, 60_000, topic, value[: error.details["limit"] - 3]) is True
    assert listener.reply()[:2] == [":recv!", long_id]


def hold_back(client: WireClient, frame: bytes) -> None:
    client.write(frame[:-1])


def test_calls_before_an_unfinished_one_take_effect(connect: Clients, topic: str) -> None:
    sender, receiver = connect(), connect()
    last = raw_call(*map(packed, (":send!", 2, 5000, topic, "second")))
    hold_back(sender, raw_call(*map(packed, (":send!", 1, 5000, topic, "first"))) + last)
    assert receiver.ask(":recv!", 1, 5000, topic) == "first"
    assert sender.reply() == [":send!", 1, True]
    sender.write(last[-1:])
    assert receiver.ask(":recv!", 2, 5000, topic) == "second"
