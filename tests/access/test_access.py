"""Who is known by what, what that allows, and what is wrong with tables that cannot be read."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.access import token
from skywalker.access.access import Access
from skywalker.access.principal import ACTIONS, Patterns
from skywalker.errors import ConfigError
from skywalker.wire import values

SECRET = token.new()
HASH = token.hash_of(SECRET)

topics = st.one_of(st.text(max_size=40), st.integers(-(2**63), 2**64 - 1), st.booleans(), st.floats(), st.binary())


def name_of(topic: Any) -> bytes:
    return values.topic_bytes(values.pack(topic))


def access(**tables: Any) -> Access:
    return Access.parse(tables, "access")


class TestPatterns:
    @given(topics, topics)
    def test_one_that_is_no_prefix_is_that_topic_and_no_other(self, written: Any, other: Any) -> None:
        patterns = Patterns.parse([{"topic": written}])
        assert patterns.match(name_of(written))
        assert patterns.match(name_of(other)) == (name_of(other) == name_of(written))

    @given(st.text(min_size=1, max_size=60), st.text(max_size=300), topics)
    def test_a_prefix_is_every_string_that_begins_so(self, prefix: str, rest: str, other: Any) -> None:
        patterns = Patterns.parse([prefix + "*"])
        assert patterns.match(name_of(prefix + rest))
        assert patterns.match(name_of(other)) == (isinstance(other, str) and other.startswith(prefix))

    @given(topics)
    def test_a_star_is_every_topic_and_no_pattern_is_none(self, topic: Any) -> None:
        assert Patterns.parse(["*"]).match(name_of(topic))
        assert not Patterns.parse([]).match(name_of(topic))

    def test_numbers_that_python_takes_for_the_same_are_three_topics(self) -> None:
        patterns = Patterns.parse([1])
        assert [patterns.match(name_of(topic)) for topic in (1, 1.0, True)] == [True, False, False]

    def test_a_long_prefix_fits_long_names_however_their_length_is_written(self) -> None:
        for length in (31, 32, 255, 256, 4000):
            assert Patterns.parse(["x" * 20 + "*"]).match(name_of("x" * length))


class TestWho:
    def test_each_is_known_by_any_of_what_it_shows(self) -> None:
        known = access(
            web={"token": [token.hash_of("old"), HASH], "network": ["10.0.0.0/8", "fd00::/8"]},
            jobs={"certificate": "jobs.example", "user": [0, 4711]},
            anyone={"recv": ["*"]},
        )
        web, jobs, anyone = known.principals
        assert known.by_token(SECRET) is web
        assert known.by_token("old") is web
        assert known.by_token(SECRET + " ") is None
        assert known.by_token(HASH) is None
        assert known.by_certificate(["other", "jobs.example"]) is jobs
        assert known.by_certificate(["JOBS", ""]) is None
        assert [known.by_user(uid) for uid in (0, 4711, 1)] == [jobs, jobs, None]
        for host, who in {
            "10.1.2.3": web,
            "::ffff:10.1.2.3": web,
            "fd00::1%eth0": web,
            "11.0.0.1": None,
            "::1": None,
        }.items():
            assert known.by_network(host) is who
        assert known.anyone is anyone

    def test_the_first_of_two_counts(self) -> None:
        known = access(a={"network": "10.0.0.0/8"}, b={"network": "10.0.0.0/16"})
        assert known.by_network("10.0.0.1") is known.principals[0]

    def test_a_principal_may_what_it_is_given_and_nothing_else(self) -> None:
        (web,) = access(web={"token": HASH, "send": ["jobs/*"], "admin": True}).principals
        assert web.may("send", name_of("jobs/1"))
        assert not web.may("send", name_of("job"))
        assert not any(web.may(action, name_of("jobs/1")) for action in ACTIONS if action != "send")
        assert (web.admin, web.node, web.rate) == (True, False, 0)

    @pytest.mark.parametrize(
        ("tables", "words"),
        [
            (7, r"write \[access.NAME\]"),
            ({"web": 7}, r"write \[access.NAME\]"),
            ({"web": {}}, "nothing shows who that is"),
            ({"web": {"token": HASH, "sned": []}}, "unknown key 'sned'; known are token"),
            ({"web": {"token": "skw_geheim"}}, "token: it is not sha256"),
            ({"web": {"token": HASH.upper()}}, "token: it is not sha256"),
            ({"web": {"token": 7}}, "token: it is the hash of a token, or a list of them"),
            ({"web": {"network": "10.0.0.1/8"}}, "network: 10.0.0.1/8 has host bits set"),
            ({"web": {"network": "everywhere"}}, "network: 'everywhere' does not appear"),
            ({"web": {"user": "no-such-user"}}, "user: there is no user no-such-user"),
            ({"web": {"user": True}}, "user: it is the name or the number"),
            ({"web": {"token": HASH, "send": "jobs"}}, "send: it is a list"),
            ({"web": {"token": HASH, "send": [{"topics": 1}]}}, "send: .* is not a topic"),
            ({"web": {"token": HASH, "send": ["jobs/*/x"]}}, "send: 'jobs/\\*/x' is not a topic"),
            ({"web": {"token": HASH, "send": ["x" * 5000]}}, "send: .* is not a topic"),
            ({"web": {"token": HASH, "admin": 1}}, "admin: 1 is not true or false"),
            ({"web": {"token": HASH, "rate": 0}}, "rate: 0 is not a whole number"),
            ({"web": {"token": HASH, "rate": 1.5}}, "rate: 1.5 is not a whole number"),
            ({"anyone": {"token": HASH}}, "anyone: that is who shows nothing"),
            ({"anyone": {"node": True}}, "anyone: a node is trusted with everything"),
            ({"n": {"node": True, "network": "10.0.0.0/8"}}, "n: a network or a user does not prove"),
            ({"n": {"node": True, "token": HASH, "user": 0}}, "n: a network or a user does not prove"),
            ({"a": {"token": HASH}, "b": {"token": [HASH]}}, "b: its token is that of a, too"),
            ({"": {"token": HASH}}, "'' is not a name"),
            ({"x" * 65: {"token": HASH}}, "is not a name"),
        ],
    )
    def test_what_is_wrong_is_said_with_its_place(self, tables: Any, words: str) -> None:
        with pytest.raises(ConfigError, match=words) as error:
            Access.parse(tables, "node.toml: access")
        assert str(error.value).startswith("node.toml: access")
        assert "geheim" not in str(error.value)

    def test_a_user_is_known_by_name(self) -> None:
        import pwd

        name = pwd.getpwuid(os.geteuid()).pw_name
        assert access(me={"user": name}).by_user(os.geteuid()) is not None


def test_a_token_is_compared_with_all_there_are_and_in_a_time_that_tells_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []

    def compare(one: str, other: str) -> bool:
        compared.append({one, other})
        return one == other

    monkeypatch.setattr("skywalker.access.token.hmac.compare_digest", compare)
    known = [token.new() for _ in range(5)]
    found = access(**{f"p{number}": {"token": token.hash_of(each)} for number, each in enumerate(known)})
    for text in (*known, token.new()):
        compared.clear()
        principal = found.by_token(text)
        assert (principal.name if principal else None) == (f"p{known.index(text)}" if text in known else None)
        assert len(compared) == len(known)
        assert all({token.hash_of(text), token.hash_of(each)} in compared for each in known)


def test_a_token_that_is_in_the_wrong_place_is_not_repeated() -> None:
    assert token.masked(f"unknown key {SECRET!r}, {SECRET}") == "unknown key 'skw_...', skw_..."
    assert token.masked("skywalker skw") == "skywalker skw"


def test_what_was_written_down_is_read_back_with_any_space_around_it() -> None:
    assert token.parse(f"\n {SECRET}\r\n".encode()) == SECRET
    assert token.parse(b"x" * token.MAX_BYTES) == "x" * token.MAX_BYTES


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"skw_a b", b"skw_a\nskw_b", b"skw_a\0", b"skw_\x7f", "skw_ü".encode(), b"\xff", b"x" * 4096 + b"\n"],
)
def test_what_is_no_one_word_is_no_token_and_not_repeated(data: bytes) -> None:
    with pytest.raises(ValueError, match="not one word") as caught:
        token.parse(data)
    assert "skw_" not in str(caught.value)


def test_tokens_are_new_and_long_and_known_for_what_they_are() -> None:
    tokens = {token.new() for _ in range(100)}
    assert len(tokens) == 100
    assert all(each.startswith("skw_") and len(each) == 47 for each in tokens)
    assert token.is_hash(HASH)
    assert not token.is_hash(HASH + "\n")
