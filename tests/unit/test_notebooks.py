"""The notebooks, executed as their readers do: with a kernel, and by marimo."""

import importlib
import json
from pathlib import Path

import pytest

from dphh import Ledger

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 250

pytestmark = pytest.mark.slow  # each starts a kernel


def executed(name, folder):
    """The outputs of a notebook as a kernel leaves them, run in a folder of its own."""
    nbclient = pytest.importorskip("nbclient", reason="needs dphh[notebook]")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="needs dphh[notebook]")
    pytest.importorskip("ipywidgets", reason="needs dphh[notebook]")
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells), "outputs are not kept in the repository"
    here = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=SECONDS, resources=here).execute()
    return [output for cell in cells for output in cell.outputs]


def streamed(outputs, name):
    return "".join(output.text for output in outputs if output.get("name") == name)


def test_the_quickstart_runs_with_a_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where it leaves its folder
    outputs = executed("quickstart.ipynb", tmp_path)
    # Which others are among the first depends on the noise.
    assert "soup today" in json.dumps(outputs)
    said = streamed(outputs, "stdout")
    assert "Refused" in said
    assert "nothing is spent" in said, "the second run of a cell says where its release is from"
    assert not streamed(outputs, "stderr"), "nothing is shown in red"
    assert "FloatProgress" not in json.dumps(outputs), "no bar tells how much of the data is read"


def test_the_study_goes_from_a_corpus_to_a_page(tmp_path):
    outputs = executed("study.ipynb", tmp_path)
    page = (tmp_path / "study" / "phrases.html").read_text(encoding="utf-8")
    assert "lentil soup" in page and "红烧 豆腐" in page
    said = json.dumps(outputs)
    assert "lentil soup" in said and "rose" in said and "fell" in said
    assert "<svg" in said, "a chart needs no network"
    assert "lentil soup" in (tmp_path / "study" / "phrases.csv").read_text(encoding="utf-8")
    ledger = Ledger(tmp_path / "study" / "ledger.sqlite")
    assert {entry.verb for entry in ledger.runs("guests")} == {"ngrams", "counts"}


@pytest.mark.filterwarnings("ignore")
def test_marimo_runs_its_cells(tmp_path, monkeypatch):
    pytest.importorskip("marimo", reason="needs marimo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    _, names = importlib.import_module("quickstart_marimo").app.run()
    assert {"lentil soup", "had miso soup"} <= {row["item"] for row in names["release"]}
