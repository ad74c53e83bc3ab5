"""Corpora in S3, on a server of moto's."""

import io
from collections.abc import Iterator

import duckdb
import pytest

from dphh import Corpus, CorpusError, items
from dphh.reader.files import extension_file
from tests.engines.levels import expected, frame, histogram

ROWS = [(1, "a b"), (1, "b c"), (2, "b"), (3, "a"), (3, "a")]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server with a bucket, and what every reader takes from the environment."""
    moto = pytest.importorskip("moto.server", reason="needs moto[s3,server]")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    for name, value in {
        "AWS_ENDPOINT_URL": "http://{}:{}".format(*server.get_host_and_port()),
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "SECRET",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="corpora")
    written = io.BytesIO()
    frame(ROWS).write_parquet(written)
    client.put_object(Bucket="corpora", Key="reviews/a.parquet", Body=written.getvalue())
    yield
    server.stop()


NEEDS_HTTPFS = pytest.mark.skipif(
    extension_file("httpfs") is None,
    reason=f"no package has httpfs for DuckDB {duckdb.__version__}",
)


@NEEDS_HTTPFS
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_parquet_in_a_store_is_read(bucket, engine, no_noise):
    corpus = Corpus("s3://corpora/reviews/*.parquet", user="who", text="what")
    assert histogram(engine, corpus, no_noise, 3) == expected(ROWS)


def test_without_its_extension_duckdb_says_what_to_do(monkeypatch, ledger):
    def not_here(*_: object) -> None:
        raise duckdb.IOException("SECRET address")

    monkeypatch.setattr("dphh.reader.files.extension_file", not_here)
    corpus = Corpus("https://127.0.0.1:9/a.parquet", user="who", text="what")
    with pytest.raises(CorpusError, match=r"run INSTALL httpfs.*or download the files") as caught:
        items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger)
    assert "SECRET" not in str(caught.value)
    assert ledger.runs() == []
