"""A job for `spark-submit`: n-grams of a table that a cluster holds, released with privacy.

    spark-submit --master yarn --deploy-mode client \\
        --conf spark.eventLog.enabled=false --conf spark.ui.enabled=false \\
        --conf spark.log.level=ERROR \\
        --conf spark.pyspark.python=./environment/bin/python \\
        --archives dphh-environment.tar.gz#environment \\
        examples/spark_submit_job.py reviews.messages author body --out release

The archive is a packed Python environment with `dphh[spark]` in it (for example by venv-pack):
noise is drawn on the executors, so they need dphh as well. docs/engines.md says what the settings
are for. To try it on one machine, with the environment active that dphh is in:

    spark-submit --master 'local[2]' --conf spark.log.level=ERROR --conf spark.ui.enabled=false \\
        examples/spark_submit_job.py 'parquet:reviews/*.parquet' author body --out release
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

import dphh


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="a table of the catalog, or parquet:PATH")
    parser.add_argument("user", help="the column that says whose row it is")
    parser.add_argument("text", help="the column of text")
    parser.add_argument("--max-n", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--ledger", help="the ledger's file, on the machine of the driver")
    parser.add_argument("--account", help="the ledger's account that pays besides the files' own")
    parser.add_argument("--run-id", help="the same name gives the same release, and spends once")
    parser.add_argument("--out", required=True, help="a folder on the machine of the driver")
    asked = parser.parse_args()

    spark = SparkSession.builder.appName("dphh").getOrCreate()
    if asked.table.startswith("parquet:"):
        source = spark.read.parquet(asked.table.removeprefix("parquet:"))
        corpus = dphh.Corpus(source, user=asked.user, text=asked.text, account=asked.account)
    else:
        corpus = dphh.Corpus(
            asked.table, connection=spark, user=asked.user, text=asked.text, account=asked.account
        )
    plan = dphh.ngrams(corpus, max_n=asked.max_n, epsilon=asked.epsilon, delta=asked.delta)
    print(plan)
    release = plan.run(ledger=asked.ledger, run_id=asked.run_id, out=asked.out)
    print(release)
    spark.stop()


if __name__ == "__main__":
    main()
