"""Every notebook runs from top to bottom and says what it is meant to say."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))

SAID = {
    "01_first_study.ipynb": (
        "equal load: cores = 4 must divide streams = 2",
        "done: 60 new trials, 60 of 60 in all",
        "done: 0 new trials, 60 of 60 in all",
        "done: 10 new trials, 70 of 70 in all",
        "a step in TorchTitan",
        "[parallelism]\ntensor_parallel_degree = ",
        "NCCL_IB_QPS_PER_CONNECTION=",
    ),
}
"""Texts that must be among a notebook's output."""


def texts(notebook: nbformat.NotebookNode) -> str:
    """What the notebook printed and showed as plain text."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            found.append(output.get("text", "") or output.get("data", {}).get("text/plain", ""))
    return "\n".join(found)


def test_every_notebook_is_listed() -> None:
    assert list(SAID) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(FOLDER / name, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources)
    client.execute()
    said = texts(notebook)
    for text in SAID[name]:
        assert text in said


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_is_kept_without_output(name: str) -> None:
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
