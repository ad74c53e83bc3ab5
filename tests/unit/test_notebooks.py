"""The notebooks, executed as their readers do: with a kernel, and by marimo."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from dphh import Ledger

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 250

pytestmark = pytest.mark.slow  # each starts a kernel


def executed(name: str, folder: Path) -> list[Any]:
    """The code cells of a notebook as a kernel leaves them, run in a folder of its own."""
    nbclient = pytest.importorskip("nbclient", reason="needs dphh[notebook]")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="needs dphh[notebook]")
    pytest.importorskip("ipywidgets", reason="needs dphh[notebook]")
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    for cell in notebook.cells:
        assert not cell.get("outputs"), "outputs are not kept in the repository"
    here = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=SECONDS, resources=here).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells: list[Any], kind: str = "text/html") -> str:
    return "\n".join(
        "".join(output["data"].get(kind, "")) for cell in cells for output in cell.outputs
        if "data" in output
    )  # fmt: skip


def streamed(cells: list[Any], name: str) -> str:
    outputs = (output for cell in cells for output in cell.outputs)
    return "".join(output["text"] for output in outputs if output.get("name") == name)


def test_the_quickstart_runs_with_a_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where it leaves its folder
    cells = executed("quickstart.ipynb", tmp_path)
    assert "Refused" in streamed(cells, "stdout")
    assert "soup today" in shown(cells)  # which others are among the first depends on the noise
    said = streamed(cells, "stdout")
    assert "nothing is spent" in said, "the second run of a cell says where its release is from"
    assert not streamed(cells, "stderr"), "nothing is shown in red"
    assert "FloatProgress" not in json.dumps(cells), "no bar tells how much of the data is read"


def test_the_study_goes_from_a_corpus_to_a_page(tmp_path):
    cells = executed("study.ipynb", tmp_path)
    page = (tmp_path / "study" / "phrases.html").read_text(encoding="utf-8")
    assert "lentil soup" in page and "红烧 豆腐" in page
    assert "lentil soup" in shown(cells)
    ledger = Ledger(tmp_path / "study" / "ledger.sqlite")
    assert {entry.verb for entry in ledger.runs("guests")} == {"ngrams", "counts"}


@pytest.mark.filterwarnings("ignore")
def test_marimo_runs_its_cells(tmp_path, monkeypatch):
    pytest.importorskip("marimo", reason="needs marimo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    _, names = importlib.import_module("quickstart_marimo").app.run()
    assert {"lentil soup", "had miso soup"} <= {row["item"] for row in names["release"]}
