"""Node objects: what is written is read again, both ways of the dialect's page are read, and nonsense is None."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.silk.claims import MAX_MEMBERS
from skywalker.silk.endpoints import is_somewhere
from skywalker.silk.info import MAX_ATTEMPTS, MAX_PERIOD_S, MAX_TYPES, MIN_PERIOD_S, Handling, NodeInfo
from skywalker.wire.silk import MAX_MESSAGE, MAX_NAME, REPLY, Message

ENDPOINTS = {"router": "tcp://10.0.0.1:3444", "pub": "ipc:///run/pub"}
LEAST: dict[str, Any] = {"id": "a", "endpoints": ENDPOINTS}

names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
types = names.filter(lambda name: not name.startswith("_"))
periods = st.integers(round(MIN_PERIOD_S * 1000), round(MAX_PERIOD_S * 1000)).map(lambda ms: ms / 1000)
hosts = names.filter(lambda name: is_somewhere(f"tcp://{name}:1")) | st.just("[::1]")
endpoints = st.builds("tcp://{}:{}".format, hosts, st.integers(1, 65_535)) | st.builds("ipc://{}".format, names)
infos = st.builds(
    NodeInfo,
    types,
    st.just("") | names,
    endpoints,
    endpoints,
    periods,
    st.dictionaries(types, st.builds(Handling, st.integers(1, MAX_ATTEMPTS), periods), max_size=4),
    st.none() | st.fixed_dictionaries({"address": names, "port": st.integers(1, 65535), "tokens": st.just([1, 2])}),
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(infos)
def test_what_a_node_says_of_itself_is_what_others_read(info: NodeInfo) -> None:
    assert NodeInfo.parse(json.loads(json.dumps(info.as_map()))) == info


@given(infos)
def test_what_is_told_in_a_list_is_as_much_as_it_takes_to_ask_for_the_rest(info: NodeInfo) -> None:
    brief = NodeInfo.parse(json.loads(json.dumps(info.brief())))
    assert brief is not None
    assert (brief.id, brief.name, brief.router, brief.pub) == (info.id, info.name, info.router, info.pub)
    assert (brief.keepalive_s, brief.messages) == (1.0, {})
    if info.junction is None:
        assert brief.junction is None
    else:
        assert brief.junction == {key: info.junction[key] for key in ("address", "port")}


def test_the_least_that_makes_a_node() -> None:
    assert NodeInfo.parse(LEAST) == NodeInfo("a", "", "tcp://10.0.0.1:3444", "ipc:///run/pub", 1.0, {}, None)


def test_the_node_object_of_the_dialects_page() -> None:
    told = {
        **LEAST,
        "keepalive": {"period": 500},
        "messages": {"message_type_a": {"reply": {"period": 1500}}, "a": {"attempts": 4, "period": 250}, "b": {}},
    }
    info = NodeInfo.parse(told)
    assert info is not None
    assert info.keepalive_s == 0.5
    assert info.messages == {"message_type_a": Handling(1, 1.5), "a": Handling(4, 0.25), "b": Handling(1, 1.0)}


@pytest.mark.parametrize(
    "changes",
    [
        *({"id": id} for id in (None, 5, "", "a" * (MAX_NAME + 1), ["a"], "\ud800", "a\nb")),
        *({"name": name} for name in (5, ["a"], {"a": 1}, "a" * (MAX_NAME + 1))),
        *({"endpoints": each} for each in (None, [], "tcp://a:1", {}, {"router": "tcp://a:1"}, {"pub": "tcp://a:1"})),
        *(
            {"endpoints": {**ENDPOINTS, which: endpoint}}
            for which in ("router", "pub")
            for endpoint in (
                *(None, 5, "", "a:1", "http://a:1", "inproc://a", "pgm://a:1", "TCP://a:1", " tcp://a:1"),
                *("tcp://a:1\n", "tcp://a\x00:1", "ipc://\ud800", "tcp://" + "a" * (MAX_NAME - 7) + ":1"),
                *("tcp://nohost", "tcp://:1", "tcp://a:", "tcp://a:b", "tcp://a:65536", "tcp://a:-1", "tcp://a:\u0661"),
                *("tcp://::1:1", "tcp://[::1]", "tcp://[]:1", "tcp://[a:1", "tcp://a:1;b:2", "ipc://", "tcp://"),
            )
        ),
        *(
            {"keepalive": keepalive}
            for keepalive in (
                *(5, "1000", [], {"period": None}, {"period": "1000"}, {"period": 0}, {"period": -1000}),
                *(
                    {"period": True},
                    {"period": 9.9},
                    {"period": 3_600_001},
                    {"period": 10**400},
                    {"period": -(10**400)},
                ),
                *({"period": -(10**400)}, {"period": float("inf")}, {"period": float("nan")}, {"period": [1000]}),
            )
        ),
        *(
            {"messages": messages}
            for messages in (
                *(5, ["a"], "a", {"a": None}, {"a": 5}, {"a": []}, {"": {}}, {"_ka": {}}, {"a\n": {}}, {"\ud800": {}}),
                *({"a" * (MAX_NAME + 1): {}}, {"a": {"period": 0}}, {"a": {"period": 10**400}}, {"a": {"reply": 5}}),
                *(
                    {"a": {"attempts": 0}},
                    {"a": {"attempts": True}},
                    {"a": {"attempts": 1.0}},
                    {"a": {"attempts": "3"}},
                ),
                *({"a": {"attempts": MAX_ATTEMPTS + 1}}, {"a": {"attempts": 10**400}}),
                {str(number): {} for number in range(MAX_TYPES + 1)},
            )
        ),
    ],
    ids=lambda changes: ascii(changes)[:60],
)
def test_what_makes_no_sense_is_no_node(changes: dict[str, Any]) -> None:
    assert NodeInfo.parse(LEAST | changes) is None


@given(anything)
def test_anything_at_all_is_a_node_or_none(data: Any) -> None:
    assert NodeInfo.parse(data) is None


@given(st.sampled_from(["id", "name", "endpoints", "keepalive", "messages", "junction"]), anything)
def test_any_field_may_be_anything(field: str, data: Any) -> None:
    info = NodeInfo.parse(LEAST | {field: data})
    assert info is None or NodeInfo.parse(info.as_map()) == info


def test_limits_are_inclusive() -> None:
    name = "a" * MAX_NAME
    endpoint = "tcp://" + "a" * (MAX_NAME - 8) + ":1"
    told = {
        "id": name,
        "name": name,
        "endpoints": {"router": endpoint, "pub": endpoint},
        "keepalive": {"period": MAX_PERIOD_S * 1000},
        "messages": {
            f"{number:0{MAX_NAME}}": {"attempts": MAX_ATTEMPTS, "period": MIN_PERIOD_S * 1000}
            for number in range(MAX_TYPES)
        },
    }
    assert NodeInfo.parse(told) is not None


@pytest.mark.parametrize("junction", [None, 5, "a", [1]])
def test_a_junction_that_is_no_map_is_none(junction: Any) -> None:
    info = NodeInfo.parse(LEAST | {"junction": junction})
    assert info is not None
    assert info.junction is None


@pytest.mark.parametrize(
    ("junction", "served"),
    [
        ({"address": "10.0.0.1", "port": 3443, "id": "a"}, Address("10.0.0.1", 3443)),
        ({"address": "::1", "port": 65_535}, Address("::1", 65_535)),
        *((told, None) for told in ({}, {"address": "a"}, {"port": 1}, {"address": 1, "port": 1})),
        *(({"address": "a", "port": port}, None) for port in (True, 0, -1, 65_536, 1.0, "1", None, 10**400)),
        *(({"address": address, "port": 1}, None) for address in ("", "a\x1b[31m", "a" * (MAX_NAME + 1), "\ud800")),
    ],
    ids=lambda each: ascii(each)[:60],
)
def test_where_a_node_serves_is_told_in_brief_too(junction: dict[str, Any], served: Address | None) -> None:
    info = NodeInfo.parse(LEAST | {"junction": junction})
    assert info is not None
    assert info.serves == served
    brief = NodeInfo.parse(info.brief())
    assert brief is not None
    assert (brief.serves, brief.junction is None) == (served, served is None)


def test_a_full_clusters_list_fits_in_a_message() -> None:
    uuid = "01234567-89ab-4def-8123-456789abcdef"
    junction = {"address": "host-1234.eu-central.example.com", "port": 65432, "tokens": [2**62] * 128}
    info = NodeInfo(uuid, uuid, "tcp://255.255.255.255:65432", "tcp://255.255.255.255:65432", junction=junction)
    cluster = {f"{uuid[:-4]}{number:04}": info.brief() for number in range(MAX_MEMBERS)}
    assert len(Message(uuid, uuid, uuid, REPLY, {"cluster": cluster, "me": info.as_map()}, uuid).encode()) < MAX_MESSAGE


def test_a_node_is_called_by_its_name_and_its_endpoint() -> None:
    assert str(NodeInfo("a", "kuiper", "tcp://h:1", "tcp://h:2")) == "kuiper (tcp://h:1)"
    assert str(NodeInfo("a", "", "tcp://h:1", "tcp://h:2")) == "a (tcp://h:1)"
