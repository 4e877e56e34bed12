"""What a study found, in sentences, figures and one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autotune.study import Study

__all__ = ["write_report"]


def write_report(study: Study, path: str | Path) -> Path:
    """Write a study's page: front, history, importances, breakdown, what made the difference.

    Args:
        study: An open study.
        path: Of the HTML file; its folder must exist.

    Returns:
        The absolute path.

    Raises:
        InvalidInput: If the file cannot be written.
    """
    from autotune.report.page import write
    from autotune.report.stored import contents_of, findings_of

    findings = findings_of(study.record, study.trials, str(study.storage))
    contents = contents_of(findings, space=study.spec.space, objective=study.objective)
    return write(contents, Path(path))
