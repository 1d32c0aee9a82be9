"""Nodes for asyncio: coming and going, telling, asking, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skywalker import silk
from skywalker.errors import (
    Closed,
    HandlerFailed,
    LocalProtocolError,
    NobodyHandles,
    NoReply,
    NoSuchNode,
    NotJoined,
    TooLarge,
    Unreachable,
)
from skywalker.silk.hub import Hub
from skywalker.wire.silk import MAX_MESSAGE, Message
from tests.silk.driving import cluster, hear_each_other, keepalive, met, new_node, simulate, soon

NOWHERE = "tcp://127.0.0.1:9"


async def stuck(data: Any) -> None:
    await asyncio.Event().wait()


def data_that_makes(size: int, node: silk.Node, to: silk.Node, type: str) -> str:
    """Return the text with which a message has so many bytes."""
    some_id = "0" * len(node.id)
    return "x" * (size - len(Message(node.id, to.id, some_id, type, "").encode()))


# Coming and going.


def test_a_node_may_join_itself_and_a_member_and_the_same_at_once() -> None:
    async def main() -> None:
        async with cluster(2) as (one, other):
            await one.join(one.info.router)
            await one.join(other.info.router)
            await asyncio.gather(*(one.join(other.info.router.removeprefix("tcp://")) for _ in range(5)))
            await met(one, other)
            assert other.dropped == 0

    simulate(main())


def test_joining_where_nobody_is_fails_in_time_and_leaves_the_node_as_it_was() -> None:
    async def main() -> None:
        async with cluster(2) as (one, other):
            began_at = asyncio.get_running_loop().time()
            why = "no node answered within 0.2 s, or those there have keys"
            with pytest.raises(Unreachable, match=f"{NOWHERE}: {why}$"):
                await one.join(NOWHERE, timeout=0.2)
            assert asyncio.get_running_loop().time() - began_at < 2
            await met(one, other)

    simulate(main())


def test_a_cancelled_join_is_given_up() -> None:
    async def main() -> None:
        async with new_node() as one, new_node() as other:
            joining = asyncio.create_task(one.join(NOWHERE))
            await asyncio.sleep(0.05)
            joining.cancel()
            await asyncio.wait([joining])
            assert joining.cancelled()
            await one.join(other.info.router)

    simulate(main())


def test_a_join_that_is_cancelled_as_it_is_done_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        seek = Hub.seek

        def seek_and_cancel(hub: Hub, endpoint: str) -> asyncio.Future[None]:
            sought = seek(hub, endpoint)
            sought.add_done_callback(lambda _: joining.cancel())
            return sought

        async with new_node(keepalive=keepalive()) as one, new_node(keepalive=keepalive()) as other:
            monkeypatch.setattr(Hub, "seek", seek_and_cancel)
            joining = asyncio.create_task(one.join(other.info.router))
            await asyncio.wait([joining])
            assert joining.cancelled()
            await met(one, other)

    simulate(main())


def test_who_has_left_can_say_nothing_until_it_joins_again() -> None:
    async def main() -> None:
        async with cluster(2) as (leaver, one):
            one.handle("echo", lambda data: data)
            await leaver.leave()
            assert leaver.members == {}
            sayings = [
                leaver.request(one.id, "echo"),
                leaver.request_any("echo"),
                anext(leaver.request_all("echo")),
                leaver.tell(one.id, "echo"),
                leaver.tell_any("echo"),
                leaver.broadcast("echo"),
                leaver.leave(),
            ]
            for saying in sayings:
                with pytest.raises(NotJoined, match="left its cluster"):
                    await saying
            await leaver.join(one.info.router)
            assert await leaver.request(one.id, "echo", 1) == 1

    simulate(main())


def test_a_node_closes_in_well_under_a_second_whatever_it_has_begun() -> None:
    async def main() -> None:
        async with new_node(keepalive=keepalive()) as other:
            node = new_node(keepalive=keepalive())
            await node.open()
            await node.join(other.info.router)
            node.seek(NOWHERE)
            other.handle("stuck", stuck)
            await soon(lambda: "stuck" in node.members[other.id].messages)
            asking = asyncio.create_task(node.request(other.id, "stuck"))
            await asyncio.sleep(0.02)
            began_at = asyncio.get_running_loop().time()
            await node.close()
            assert asyncio.get_running_loop().time() - began_at < 1
            with pytest.raises(Closed):
                await asking

    simulate(main())


def test_a_join_under_way_ends_when_the_node_leaves() -> None:
    async def main() -> None:
        async with new_node() as node:
            joining = asyncio.create_task(node.join(NOWHERE, timeout=60))
            await asyncio.sleep(0.05)
            await node.leave()
            with pytest.raises(NotJoined):
                await joining

    simulate(main())


def test_a_node_is_opened_once() -> None:
    async def main() -> None:
        node = new_node()
        async with node:
            with pytest.raises(Closed, match="once"):
                await node.open()
            assert node.info
        with pytest.raises(Closed, match="once"):
            await node.open()

    simulate(main())


@pytest.mark.parametrize(
    "settings",
    [
        {"keepalive": 0.001},
        {"keepalive": 4000},
        {"keepalive": float("nan")},
        {"name": "x" * 256},
        {"router": "udp://127.0.0.1:1"},
        {"router": "tcp://127.0.0.1"},
        {"pub": "tcp://127.0.0.1:65536"},
        {"pub": "inproc://a"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        silk.Node(**settings)


# Asking and telling.


def test_a_request_returns_what_the_handler_returned() -> None:
    async def main() -> None:
        async with cluster(2) as (one, other):

            @other.handle("plain")
            def plain(data: Any) -> Any:
                return {"got": data}

            @other.handle("coroutine", attempts=5, period=0.5)
            async def coroutine(data: Any) -> Any:
                await asyncio.sleep(0.01)
                return [data, data]

            await soon(lambda: len(one.members[other.id].messages) == 2)
            assert one.members[other.id].messages["coroutine"] == silk.Handling(5, 0.5)
            for data in (None, 0, "", "ü\U0001f600", [1, [2.5]], {"a": {"b": None}}, True):
                assert await one.request(other.id, "plain", data) == {"got": data}
                assert await one.request(other.id, "coroutine", data) == [data, data]
            assert plain(1) == {"got": 1}

    simulate(main())


def test_whom_to_ask_must_be_there_and_know_the_type() -> None:
    async def main() -> None:
        async with cluster(2) as (one, other):
            with pytest.raises(NoSuchNode, match="nobody-here"):
                await one.request("nobody-here", "echo")
            with pytest.raises(NoSuchNode):
                await one.request(one.id, "echo")
            with pytest.raises(NoSuchNode):
                await one.tell("nobody-here", "echo")
            with pytest.raises(NobodyHandles, match="nobody handles 'echo' here"):
                await one.request(other.id, "echo")
            for asking in (one.request_any("echo"), anext(one.request_all("echo")), one.tell_any("echo")):
                with pytest.raises(NobodyHandles, match="no member handles 'echo'"):
                    await asking
            await one.broadcast("echo")  # to all who handle it, and that is nobody

    simulate(main())


@pytest.mark.parametrize("type", ["", "_ka", "_mine", "x" * 256, "\ud800", "a\nb"])
def test_a_type_that_is_none_of_a_programs_own_is_refused(type: str) -> None:
    async def main() -> None:
        async with cluster(2) as (one, other):
            with pytest.raises(LocalProtocolError):
                one.handle(type, print)
            for saying in (
                one.request(other.id, type),
                one.request_any(type),
                anext(one.request_all(type)),
                one.tell(other.id, type),
                one.tell_any(type),
                one.broadcast(type),
            ):
                with pytest.raises(LocalProtocolError):
                    await saying

    simulate(main())


@pytest.mark.parametrize("handling", [{"attempts": 0}, {"attempts": 101}, {"period": 0.001}, {"period": 3601}])
def test_a_declaration_that_makes_no_sense_is_refused(handling: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        silk.Node().handle("resize", print, **handling)


def test_a_message_of_1_mib_is_sent_and_one_byte_more_is_not() -> None:
    async def main() -> None:
        async with cluster(2) as (one, other):
            other.handle("length", len)
            came: list[int] = []
            other.handle("note", lambda data: came.append(len(data)))
            await soon(lambda: len(one.members[other.id].messages) == 2)
            most = data_that_makes(MAX_MESSAGE, one, other, "length")
            assert await one.request(other.id, "length", most) == len(most)
            for saying in (
                one.request(other.id, "length", most + "x"),
                one.request_any("length", most + "x"),
                anext(one.request_all("length", most + "x")),
                one.tell(other.id, "length", most + "x"),
                one.tell_any("length", most + "x"),
                one.broadcast("length", most + "x" * 100),
            ):
                with pytest.raises(TooLarge, match="longer than 1048576"):
                    await saying
            # `silent` makes it longer, `_all` shorter.
            await one.tell(other.id, "note", most[:-20])
            await soon(lambda: came == [len(most) - 20])
            assert other.dropped == 0
            assert await one.request(other.id, "length", "") == 0

    simulate(main())


@pytest.mark.parametrize("data", [b"bytes", {1, 2}, float("nan"), float("inf"), object(), {(1, 2): 3}])
def test_data_that_json_cannot_say_is_refused_before_it_is_sent(data: Any) -> None:
    async def main() -> None:
        async with cluster(2) as (one, other):
            other.handle("echo", lambda data: data)
            await soon(lambda: one.members[other.id].messages)
            for saying in (
                one.request(other.id, "echo", data),
                one.request_any("echo", data),
                anext(one.request_all("echo", data)),
                one.tell(other.id, "echo", data),
                one.tell_any("echo", data),
                one.broadcast("echo", data),
            ):
                with pytest.raises(LocalProtocolError, match="cannot be said in JSON"):
                    await saying

    simulate(main())


def test_all_who_handle_a_type_are_asked_and_their_replies_come_as_they_are_ready() -> None:
    async def main() -> None:
        async with cluster(6) as (asker, quick, slow, failing, mute, bystander):
            quick.handle("state", lambda data: data)

            async def later(data: Any) -> str:
                await asyncio.sleep(0.1)
                return "slow"

            def fails(data: Any) -> None:
                raise OSError("no disk")

            slow.handle("state", later)
            failing.handle("state", fails)
            mute.handle("state", stuck, attempts=2, period=0.2)
            bystander.handle("other", print)
            await soon(lambda: sum("state" in info.messages for info in asker.members.values()) == 4)
            replies = [reply async for reply in asker.request_all("state", "quick")]
            told = {reply.node.id: (reply.data, type(reply.error), str(reply.error)) for reply in replies}
            assert {reply.node.id for reply in replies[:2]} == {quick.id, failing.id}
            assert [reply.node.id for reply in replies[2:]] == [slow.id, mute.id]
            assert told[quick.id] == ("quick", type(None), "None")
            assert told[slow.id] == ("slow", type(None), "None")
            assert told[failing.id] == (None, HandlerFailed, "n3: no disk")
            assert told[mute.id][:2] == (None, NoReply)

    simulate(main())


def test_who_looks_no_further_for_replies_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with cluster(3) as (asker, quick, mute):
            quick.handle("state", lambda data: "here")
            mute.handle("state", stuck, period=60)
            await soon(lambda: all(info.messages for info in asker.members.values()))
            replies = asker.request_all("state")
            async for reply in replies:
                assert reply.node.id == quick.id
                break
            await replies.aclose()
            # With nothing outstanding at either, they take turns.
            mute.handle("state", lambda data: "now")
            assert {await asker.request_any("state") for _ in range(2)} == {"here", "now"}

    simulate(main())


def test_a_request_that_is_cancelled_is_not_sent_again() -> None:
    async def main() -> None:
        async with cluster(2) as (asker, other):
            came: list[Any] = []

            async def never(data: Any) -> None:
                came.append(data)
                await asyncio.Event().wait()

            other.handle("never", never, attempts=5, period=0.05)
            await soon(lambda: asker.members[other.id].messages)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await asker.request(other.id, "never")
            other.handle("other", print)
            await asyncio.sleep(0.2)
            assert len(came) == 1

    simulate(main())


def test_a_broadcast_comes_to_those_who_handle_its_very_type() -> None:
    async def main() -> None:
        async with cluster(4) as (teller, re, resize, both):
            came: dict[str, list[str]] = {name: [] for name in ("re", "resize", "both re", "both resize")}
            re.handle("re", came["re"].append)
            resize.handle("resize", came["resize"].append)
            both.handle("re", came["both re"].append)
            both.handle("resize", came["both resize"].append)
            teller.handle("re", pytest.fail)  # not to itself
            await hear_each_other(teller, re, resize, both)
            for number in range(10):
                await teller.broadcast("re", f"re {number}")
                await teller.broadcast("resize", f"resize {number}")
                await teller.broadcast("resized", "?")
                await teller.broadcast("r", "?")
            await soon(lambda: sum(map(len, came.values())) == 40)
            res = [f"re {number}" for number in range(10)]
            resizes = [f"resize {number}" for number in range(10)]
            assert came == {"re": res, "resize": resizes, "both re": res, "both resize": resizes}
            assert re.dropped == resize.dropped == both.dropped == 0

    simulate(main())


def test_who_reads_no_events_is_told_in_the_end_that_it_missed_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skywalker.silk.stream.MAX_UNREAD", 5)

    async def main() -> None:
        async with cluster(2) as (node, restless):
            events = node.events()
            for _ in range(4):
                await asyncio.sleep(0.05)  # until it is listened to
                await restless.leave()
                await soon(lambda: not node.members)
                await restless.join(node.info.router)
            read = [await anext(events) for _ in range(5)]
            assert [type(event).__name__ for event in read] == ["Left", "Joined", "Left", "Joined", "Left"]
            with pytest.raises(Closed, match="more than 5 events were not read"):
                await anext(events)

    simulate(main())
