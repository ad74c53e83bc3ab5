"""dphh in marimo: `pip install marimo 'dphh[plot]'`, then `marimo edit quickstart_marimo.py`, or
`python quickstart_marimo.py`, a script.

marimo runs a cell again whenever what it uses changes. The corpus and the ledger lie in a folder of
their own beside this notebook, and the same request on the same data is paid for once: moving the
slider spends once for each place that it has not been in, and never more than the cap.
"""

import marimo

app = marimo.App()


@app.cell
def _():
    import os
    import random
    from pathlib import Path

    import marimo as mo
    import polars as pl

    import dphh

    return Path, dphh, mo, os, pl, random


@app.cell
def _(mo):
    mo.md("""
    # dphh in marimo
    Four thousand people write two messages each. Every message has a number that nobody else has.
    """)


@app.cell
def _(Path, dphh, os, pl, random):
    folder = Path("quickstart-marimo")
    folder.mkdir(exist_ok=True)
    messages = folder / "messages.parquet"
    if not messages.exists():
        made_up = random.Random(1)
        dishes = ["lentil soup", "apple pie", "green curry", "miso soup"]
        pl.DataFrame(
            {
                "author": [person for person in range(4_000) for _ in range(2)],
                "body": [
                    f"had {made_up.choice(dishes)} today pin {place * 7919}"
                    for place in range(8_000)
                ],
            }
        ).write_parquet(messages)
    corpus = dphh.Corpus(messages, user="author", text="body", account="messages")
    os.environ["DPHH_LEDGER"] = str(folder / "ledger.sqlite")
    ledger = dphh.Ledger()
    ledger.add("messages", corpus, epsilon=2.0, delta=1e-7, if_missing=True)
    return corpus, ledger


@app.cell
def _(mo):
    epsilon = mo.ui.slider(0.25, 1.0, 0.25, value=0.5, label="epsilon", show_value=True)
    epsilon
    return (epsilon,)


@app.cell
def _(corpus, dphh, epsilon):
    plan = dphh.ngrams(corpus, max_n=5, epsilon=epsilon.value, delta=1e-9, max_items=20)
    plan
    return (plan,)


@app.cell
def _(plan):
    release = plan.run()
    release
    return (release,)


@app.cell
def _(release):
    release.plot(top=8)


@app.cell
def _(ledger, release):
    release.run_id  # so that this cell comes after the run
    account = ledger.status("messages")
    account
    return (account,)


if __name__ == "__main__":
    app.run()
