"""Files that a parser gives up on with something else than a syntax error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autotune import InvalidInput
from objectives.cluster import load_cluster
from objectives.command import read_definition
from objectives.model import load_model

DEEP, LONG = "[" * 100_000, "9" * 5_000


@pytest.mark.parametrize("content", [DEEP, LONG], ids=["nesting", "number"])
@pytest.mark.parametrize(
    ("load", "name", "form"),
    [
        (load_model, "config.json", '{{"hidden_size": {}}}'),
        (load_cluster, "cluster.toml", "name = {}"),
        (read_definition, "command.toml", "argv = {}"),
    ],
)
def test_they_are_refused(load: Any, name: str, form: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(form.format(content))
    with pytest.raises(InvalidInput, match="must be"):
        load(path)
