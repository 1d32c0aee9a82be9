"""What happens within one turn of a worker's loop: much at once, and at once what rules each other out."""

from __future__ import annotations

import os
import signal
import time

import msgpack

from tests.workers.processes import TIMED_OUT, node

FLOODS = 40


def test_a_call_that_arrives_in_the_middle_of_a_long_turn_gets_its_whole_time() -> None:
    ping = msgpack.packb([":ping", 0])
    flood = (len(ping).to_bytes(2, "big") + ping) * (65536 // (len(ping) + 2))
    with node(workers=1) as running:
        floods = [running.connect() for _ in range(FLOODS)]
        client = running.connect()
        for each in (*floods, client):
            each.call(":ping")
        [worker] = running.workers()
        os.kill(worker, signal.SIGSTOP)
        for each in floods:
            each.socket.sendall(flood)
        # It is the last that becomes ready, so it is read at the end of the turn that begins now.
        pinged = client.begin(":ping")
        os.kill(worker, signal.SIGCONT)
        # Nothing tells when that turn is under way: calls that are spread over its time are sure to come in its middle.
        began: dict[int, float] = {}
        for _ in range(60):
            now = time.monotonic()
            began[client.begin(":recv!", 500, "topic")] = now
            time.sleep(0.005)
        assert client.result(pinged) is True
        for call, started in began.items():
            assert client.result(call) == TIMED_OUT
            assert time.monotonic() - started >= 0.5


def test_a_send_that_is_cancelled_in_the_turn_in_which_it_is_taken_is_taken() -> None:
    with node(workers=1) as running, running.connect() as client:
        send = client.begin(":send!", 60_000, "topic", "value")
        with client.in_one_write():
            receive = client.begin(":recv!", 60_000, "topic")
            cancel = client.begin(":cancel", send)
        assert client.result(receive) == "value"
        assert client.result(send) is True
        assert client.result(cancel) is False
