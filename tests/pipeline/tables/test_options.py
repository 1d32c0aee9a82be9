"""Options: in any case, each as its type, and whatever is wrong named together with what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from skywalker.errors import ConfigError
from skywalker.pipeline.options import Options
from skywalker.pipeline.tables.reading import Reading

KNOWN = ("address", "rowsPerBatch", "failOnDataLoss")


def test_names_and_words_are_found_in_any_case() -> None:
    options = Options.parse({"ROWSperbatch": " 7 ", "failondataloss": "FALSE"}, KNOWN)
    assert options.whole("rowsPerBatch", 1, 1, 10) == 7
    assert options.truth("failOnDataLoss", True) is False
    assert not options.has("address")
    assert options.text("address", "here") == "here"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rowsPerBach", "did you mean 'rowsPerBatch'?"),
        ("FAILondatalos", "did you mean 'failOnDataLoss'?"),
        ("xyz", "known are address, rowsPerBatch, failOnDataLoss"),
    ],
)
def test_an_unknown_option_is_named_with_the_nearest_known_one(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Options.parse({"address": "a", name: "1"}, KNOWN)
    assert str(caught.value) == f"unknown option {name!r}; {hint}"


def test_what_spark_adds_for_itself_is_no_mistake() -> None:
    Options.parse({"checkpointLocation": "/tmp/x", "queryName": "q"}, KNOWN)


@pytest.mark.parametrize("text", ["0", "11", "x", "1.0", "-1", "1e1", "١", "99999999999999999999"])  # noqa: RUF001
def test_a_number_out_of_its_range_is_named_with_the_range(text: str) -> None:
    options = Options.parse({"rowsPerBatch": text}, KNOWN)
    with pytest.raises(ConfigError, match=r"option 'rowsPerBatch' is .*; it must be a whole number from 1 to 10"):
        options.whole("rowsPerBatch", 1, 1, 10)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "give one of the options 'topic'"),
        ({"topic": "a", "topics": "b"}, "give one of the options 'topic'"),
        ({"topics": "a,,b"}, "option 'topics' is 'a,,b'"),
        ({"topics": "a, a"}, "each once"),
        ({"topic": "x" * 5000}, "topic of 5003 bytes, limit is 4096"),
        ({"topic": "a", "group": "x" * 5000}, "limit is 4096"),
        ({"topic": "a", "method": "grab"}, "one of recv, take, subscribe"),
        ({"topic": "a", "method": "recv", "partitions": "2"}, "option 'partitions' is '2'; it must be 1 for recv"),
        ({"topic": "a", "method": "recv", "group": "g"}, "'group' goes with method take"),
        ({"topic": "a", "waitMs": "86400001"}, "option 'waitMs'"),
        ({"topic": "a", "waitMs": "0"}, "it must be a whole number from 1 to 86400000"),
        ({"topic": "a", "mode": "DROPMALFORMED"}, "one of PERMISSIVE, FAILFAST"),
        ({"topic": "a", "spool": "/tmp/x"}, "option 'spool' is for readStream"),
        ({"topic": "a", "failOnDataLoss": "false"}, "option 'failOnDataLoss' is for readStream"),
        ({"topic": "a", "address": "host:port"}, "option 'address': 'host:port' is not an address of the form"),
        ({"topic": "a", "address": "ftp://x/y"}, "option 'address'"),
        ({"topic": "a", "address": " "}, "option 'address' is ' '; it must be the address"),
        ({"topic": "a", "tls": "true"}, "unknown option 'tls'"),
        ({"topic": "a", "token": "skw_a", "tokenFile": "/x"}, "options 'token' and 'tokenFile' exclude each other"),
        ({"topic": "a", "token": ""}, "option 'token' is empty"),
        ({"topic": "a", "tokenFile": "/no/such/file"}, "option 'tokenFile': /no/such/file cannot be read"),
        ({"topic": "a", "tls_key": "/x"}, "give 'tls_cert' too"),
        ({"topic": "a", "tls_ca": "/no/such/file"}, "'tls_ca', 'tls_cert' and 'tls_key': /no/such/file"),
    ],
)
def test_a_wrong_option_of_a_read_is_named(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Reading.parse(given, streams=False)
    assert problem in str(caught.value)


def test_a_stream_may_decode_in_many_tasks_whatever_its_method() -> None:
    given = {"topics": "a, b", "method": "SUBSCRIBE", "partitions": "4", "spool": "/x", "failOnDataLoss": "false"}
    reading = Reading.parse(given, streams=True)
    assert (reading.topics, reading.method, reading.partitions) == (("a", "b"), "subscribe", 4)
    assert (reading.spool, reading.fails_on_loss) == (Path("/x"), False)


@pytest.mark.parametrize("spool", ["hdfs://x/y", "file:///x/y", "x/y", "./x", "~/x"])
def test_a_spool_that_is_no_absolute_path_is_refused(spool: str) -> None:
    with pytest.raises(ConfigError, match=r"option 'spool' is '.*'; it must be an absolute path, no URL"):
        Reading.parse({"topic": "a", "spool": spool}, streams=True)


def test_a_topic_with_a_comma_is_one_topic_where_it_is_the_only_one() -> None:
    assert Reading.parse({"topic": "a,b"}, streams=False).topics == ("a,b",)
