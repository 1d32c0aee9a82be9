"""Two nodes that prove to each other that they know the secret of their cluster, and whoever tries to without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.access.proof import NONCE, Challenge, Elsewhere, NotProven, Response, Secrets, named
from skywalker.address import Address
from skywalker.wire import values

SECRET = "skw_the-secret-of-a-cluster"
A_AT, B_AT = Address("10.0.0.1", 3443), Address("10.0.0.2", 3443)
OURS, THEIRS = b"o" * NONCE, b"t" * NONCE


def challenge(keys: Secrets | None = None, *, at: Address = B_AT, nonce: bytes = OURS) -> Challenge:
    """Return that of node a."""
    return Challenge(keys or Secrets(SECRET), "a", A_AT, at, nonce)


def response(
    question: Mapping[str, Any], keys: Secrets | None = None, *, reached: Address = B_AT, nonce: bytes = THEIRS
) -> Response:
    """Return that of node b."""
    return Response(keys or Secrets(SECRET), "b", B_AT, reached, crossed(question), nonce)


def crossed(said: Any) -> Any:
    """Return what is said as the other end has it."""
    return values.unpack(values.pack(said), text_keys=True)


def test_both_prove_themselves() -> None:
    asks = challenge()
    answers = response(asks.question)
    node, proof = asks.judge(crossed(answers.answer))
    assert node == "b"
    assert answers.accepts(proof)
    assert answers.secret == SECRET


def test_nothing_that_is_said_holds_the_secret() -> None:
    asks = challenge()
    answers = response(asks.question)
    _, proof = asks.judge(answers.answer)
    said = values.pack([dict(asks.question), dict(answers.answer), proof])
    assert SECRET.encode() not in said
    assert SECRET[4:].encode() not in said


@pytest.mark.parametrize(
    ("ours", "theirs", "shared"),
    [("old", "new old", "old"), ("new old", "old", "old"), ("new old", "old new", "old"), ("new", "new old", "new")],
)
def test_a_secret_is_replaced_while_nodes_know_the_old_one_the_new_one_or_both(
    ours: str, theirs: str, shared: str
) -> None:
    asks = challenge(Secrets(ours))
    answers = response(asks.question, Secrets(theirs))
    assert answers.secret == shared
    assert answers.accepts(asks.judge(answers.answer)[1])


def test_without_a_secret_in_common_nothing_is_answered() -> None:
    with pytest.raises(NotProven, match=r"give both the same cluster\.secret"):
        response(challenge(Secrets("another")).question)


@pytest.mark.parametrize("lie", ["node", "address", "nonce", "proof"])
def test_an_answer_that_was_altered_is_no_proof(lie: str) -> None:
    asks = challenge()
    answer = dict(response(asks.question).answer)
    before = answer[lie]
    answer[lie] = before[:-1] + (b"x" if isinstance(before, bytes) else "x")
    with pytest.raises(NotProven, match="its proof is wrong"):
        asks.judge(answer)


@pytest.mark.parametrize("lie", ["from", "address", "nonce"])
def test_a_question_that_was_altered_makes_both_proofs_wrong(lie: str) -> None:
    asks = challenge()
    question = dict(asks.question)
    question[lie] = question[lie][:-1] + (b"x" if isinstance(question[lie], bytes) else "x")
    answers = response(question)
    with pytest.raises(NotProven, match="its proof is wrong"):
        asks.judge(answers.answer)
    _, proof = asks.judge(response(asks.question).answer)
    assert not answers.accepts(proof)


def test_whoever_passes_on_what_two_nodes_say_to_each_other_proves_nothing() -> None:
    between = Address("10.0.0.2", 9999)
    asks = challenge(at=between)
    # b is reached at its own address, whatever it is told that a has dialled.
    answers = response(asks.question)
    with pytest.raises(Elsewhere) as caught:
        asks.judge(answers.answer)
    assert caught.value.address == B_AT
    lies = response({**asks.question, "at": named(B_AT)})
    with pytest.raises(Elsewhere):
        asks.judge(lies.answer)
    with pytest.raises(NotProven, match="its proof is wrong"):
        asks.judge({**lies.answer, "address": named(between)})


def test_a_node_of_several_addresses_is_reached_at_each() -> None:
    for at in (B_AT, Address("192.168.0.2", 3443), Address("::1", 3443)):
        asks = challenge(at=at)
        answers = response(asks.question, reached=at)
        assert answers.accepts(asks.judge(answers.answer)[1])


def test_the_form_in_which_a_socket_tells_an_address_does_not_matter() -> None:
    assert named(Address("::ffff:10.0.0.2", 1)) == "10.0.0.2:1"
    assert named(Address("fe80::1%eth0", 1)) == named(Address("FE80:0::1", 1)) == "[fe80::1]:1"
    assert named(Address("node.example", 1)) == "node.example:1"
    asks = challenge(at=B_AT)
    answers = response(asks.question, reached=Address("::ffff:10.0.0.2", 3443))
    assert answers.accepts(asks.judge(answers.answer)[1])


def test_no_proof_is_worth_anything_a_second_time() -> None:
    asks = challenge()
    answers = response(asks.question)
    _, proof = asks.judge(answers.answer)
    assert not response(asks.question, nonce=b"n" * NONCE).accepts(proof)
    with pytest.raises(NotProven, match="its proof is wrong"):
        challenge(nonce=b"n" * NONCE).judge(answers.answer)


def test_what_one_has_said_as_the_dialled_is_no_proof_of_the_dialler() -> None:
    asks = challenge()
    answers = response(asks.question)
    assert not answers.accepts(answers.answer["proof"])
    # Somebody without the secret who has a challenge of b's answered by a, and gives b that for their own proof.
    mirrored = Response(
        Secrets(SECRET), "a", A_AT, A_AT, {**answers.answer, "from": "b", "keys": [*Secrets(SECRET).ids]}, OURS
    )
    assert not answers.accepts(mirrored.answer["proof"])
    assert not answers.accepts(b"")


@pytest.mark.parametrize(
    "answer",
    [None, True, 7, "yes", [], {}, {"node": 7}, {"node": "b", "address": "10.0.0.2:3443", "nonce": b"short"}],
)
def test_an_answer_of_another_kind_is_none(answer: Any) -> None:
    with pytest.raises(NotProven, match="makes no sense"):
        challenge().judge(answer)


@pytest.mark.parametrize("missing", ["from", "address", "nonce"])
def test_a_question_of_another_kind_is_told_what_it_lacks(missing: str) -> None:
    question = {key: value for key, value in challenge().question.items() if key != missing}
    with pytest.raises(ValueError, match="the options of :challenge are"):
        response(question)


def test_where_a_node_says_that_it_is_may_be_no_address() -> None:
    asks = challenge()
    answers = Response(Secrets(SECRET), "b", Address("nowhere", 0), A_AT, asks.question, THEIRS)
    with pytest.raises(NotProven, match="elsewhere"):
        asks.judge(answers.answer)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8) | st.binary(max_size=40),
    lambda of: st.lists(of, max_size=4),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["node", "address", "nonce", "key", "proof"]), plain))
def test_nobody_without_the_secret_makes_up_an_answer(answer: dict[str, Any]) -> None:
    with pytest.raises(NotProven):
        challenge().judge(answer)


@given(st.dictionaries(st.sampled_from(["from", "address", "at", "nonce", "keys"]), plain), st.binary(max_size=40))
def test_nobody_without_the_secret_makes_up_a_proof(question: dict[str, Any], proof: bytes) -> None:
    asked = {"from": "x", "address": "x", "nonce": OURS, "keys": [*Secrets(SECRET).ids], **question}
    try:
        answers = response(asked)
    except (NotProven, ValueError):
        return
    assert not answers.accepts(proof)


def test_secrets_said_in_clear_are_found_and_no_others() -> None:
    keys = Secrets("new old")
    assert [keys.find(said) for said in ("new", b"old", "", "newold", "new old")] == ["new", "old", "", "", ""]
    assert not Secrets("  ")


def test_sides_are_told_apart_however_their_parts_are_cut() -> None:
    """What is signed is MessagePack: nothing moves from one field to the next."""
    asks = Challenge(Secrets(SECRET), "ab", Address("c", 1), B_AT, OURS)
    other = Challenge(Secrets(SECRET), "a", Address("bc", 1), B_AT, OURS)
    assert response(asks.question).answer["proof"] != response(other.question).answer["proof"]
