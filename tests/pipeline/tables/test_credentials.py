"""Tables of a node that speaks TLS and wants to know who asks: the options say so, and nothing says them again."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import skywalker
from skywalker.access import token
from skywalker.clients.blocking.client import Client
from skywalker.errors import ConfigError, Forbidden, Unauthorized, Unreachable
from skywalker.pipeline.tables.reading import Reading
from skywalker.pipeline.tables.receiving import Receiver
from tests.authority import Authority
from tests.helpers import time_factor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET, OTHER = token.new(), token.new()
CONFIG = f"""
[access.spark]
token = "{token.hash_of(SECRET)}"
certificate = "spark.example"
send = ["*"]
recv = ["*"]

[access.other]
token = "{token.hash_of(OTHER)}"
send = ["mine"]
"""


class Place:
    """A node, and what it takes to talk to it."""

    def __init__(self, address: str, authority: Authority) -> None:
        self.authority = authority
        self.file = authority.directory / "token"
        self.file.write_text(f"{SECRET}\n")
        self.bare = {"address": f"skywalkers://{address}", "tls_ca": authority.ca}
        self.options = {**self.bare, "tokenFile": str(self.file)}

    def client(self) -> Client:
        return skywalker.connect(self.bare["address"], token=SECRET, tls=self.authority.context())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    authority = Authority(tmp_path_factory.mktemp("tables"))
    cert, key = authority.sign("127.0.0.1")
    (authority.directory / "skywalker.toml").write_text(CONFIG)
    settings: dict[str, Any] = {"tls_cert": cert, "tls_key": key, "tls_ca": authority.ca}
    with skywalker.embedded(workers=2, config_file=authority.directory / "skywalker.toml", **settings) as node:
        yield Place(node.address, authority)
        assert "skw_" not in node.log


def reading(**options: Any) -> Reading:
    return Reading.parse({"topic": "jobs", **options}, streams=True)


def test_any_credential_will_do_and_none_will_not(place: Place) -> None:
    cert, key = place.authority.sign("spark.example")
    for options in ({"token": SECRET}, {"tls_cert": cert, "tls_key": key}):
        with Receiver(reading(**place.bare, **options)):
            pass
    for wrong in ({}, {"token": token.new()}):
        with pytest.raises(Unauthorized), Receiver(reading(**place.bare, **wrong)):
            pass
    with pytest.raises(Forbidden), Receiver(reading(**place.bare, token=OTHER)) as receiver:
        receiver.receive(5.0 * time_factor(), 1)
    with (
        pytest.raises(Unreachable, match="no authority that is trusted"),
        Receiver(reading(address=place.bare["address"], token=SECRET)),
    ):
        pass


def test_a_token_is_in_no_text(place: Place, tmp_path: Path) -> None:
    given = reading(**place.bare, token=SECRET)
    assert SECRET not in repr(given) + repr(given.nodes) + repr(given.settings())
    by_file = reading(**place.options)
    assert SECRET.encode() not in pickle.dumps(by_file)  # as it goes to tasks
    with pytest.raises(ConfigError) as caught:
        reading(**place.bare, token=SECRET, tokenfile="x")
    assert SECRET not in str(caught.value)
    for content in (b"", b"two words", b"\xff", b"x" * 5000):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ConfigError, match="bad holds no token"):
            reading(**place.bare, tokenFile=str(tmp_path / "bad"))


def test_spark_reads_and_writes_and_its_plans_and_errors_have_no_secret(
    place: Place, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = []
    with place.client() as client:
        sent = [client.begin("send", "plans", {"id": number}, timeout=600) for number in range(20)]
        for options in (place.options, {**place.bare, "token": SECRET}):
            read = spark.read.format("skywalker").options(topic="plans", rowsPerBatch=10, **options)
            frame = read.schema("id BIGINT").load()
            frame.explain(True)
            texts += [str(frame), frame._jdf.queryExecution().toString()]
            assert len(frame.collect()) == 10
        assert all(call.result() for call in sent)
        rows = spark.createDataFrame([(1,)], "id BIGINT")
        taken = client.begin("recv", "plans", timeout=600)
        rows.write.format("skywalker").options(topic="plans", **place.options).mode("append").save()
        assert taken.result() == {"id": 1}
        for wrong in ({"token": OTHER, "topic": "plans"}, {"token": SECRET, "topic": "plans", "waitMs": "soon"}):
            with pytest.raises(Exception) as caught:  # noqa: PT011
                spark.read.format("skywalker").options(**place.bare, **wrong).load().collect()
            texts.append(str(caught.value))
        with pytest.raises(Exception, match=r"(?s)may not") as caught:
            rows.write.format("skywalker").options(**place.bare, token=OTHER, topic="plans").mode("append").save()
        texts.append(str(caught.value))
    shown = capfd.readouterr()
    everything = "\n".join([*texts, shown.out, shown.err])
    assert "skywalker" in everything
    assert SECRET not in everything
    assert OTHER not in everything
