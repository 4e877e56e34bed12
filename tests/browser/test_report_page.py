"""The report in a real browser: drawn, quiet, and without a single request."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune import Evaluation, FailureKind, Metric, Origin, Trial, TrialState
from autotune.between import KnobChange
from autotune.explain import Change
from autotune.importance import Importances
from autotune.report.contents import Contents
from autotune.report.findings import find
from autotune.report.page import write

METRICS = (
    Metric(name="step_time_s", unit="s", label="step time"),
    Metric(name="link_bytes_per_s", unit="byte/s", label="long-link bandwidth"),
)
EVIL = "<script>document.title='hacked'</script>"


def trial(number: int, **changes: Any) -> Trial:
    time_s, link = 6.0 - number % 7 / 2, 1e12 * (1 + number % 5)
    evaluation = Evaluation(
        metrics={"step_time_s": time_s, "link_bytes_per_s": link},
        constraints={"memory": float(number % 3) - 1.0},
        breakdown={"compute_s": 0.8 * time_s, "bubble_s": 0.2 * time_s},
    )
    fields: dict[str, Any] = {
        "number": number,
        "slot": number,
        "state": TrialState.COMPLETE,
        "origin": Origin.SAMPLER,
        "config": {"schedule": "1F1B" if number % 2 else "ZBV", EVIL: number},
        "evaluation": evaluation,
    }
    return Trial(**{**fields, **changes})


def contents() -> Contents:
    failed = Evaluation.failure(FailureKind.OOM, f"no memory {EVIL}")
    trials = [
        trial(0, origin=Origin.BASELINE, label="production"),
        *(trial(i) for i in range(1, 30)),
        trial(30, state=TrialState.FAILED, evaluation=failed),
    ]
    change = Change(
        knobs=(KnobChange(name=EVIL, before=0, after=6),),
        without={"step_time_s": 5.0},
        effects={"step_time_s": -1.0},
    )
    shares = Importances(metric="step_time_s", shares={EVIL: 1.0}, quality=0.9, num_trials=30)
    return Contents(
        findings=find(trials, METRICS, study=EVIL, backend="analytical 1"),
        changes=[change],
        importances=[shares],
    )


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(contents(), tmp_path_factory.mktemp("page") / "page.html").as_uri()


@pytest.fixture(scope="module")
def page(url: str, render: Callable[..., Any]) -> Any:
    return render(url)


def test_every_plot_is_drawn(page: Any) -> None:
    plots = re.findall(r'<div id="[a-z0-9-]+" class="plot[^"]*"', page.dom)
    assert len(plots) == 5
    assert page.dom.count('class="main-svg"') >= len(plots)
    assert "long-link bandwidth (Tbit/s)" in page.dom
    assert re.search(r"class=\"point\"", page.dom)


def test_the_front_is_readable_as_text(page: Any) -> None:
    assert "Pareto front" in page.dom
    assert "faster than production" in page.dom
    assert "<b>3 s</b>" in page.dom


def test_no_script_fails(page: Any) -> None:
    assert page.console == ""


def test_what_users_named_stays_text(page: Any) -> None:
    assert "<title>&lt;script&gt;" in page.dom
    # Also where Plotly reads markup: the axis label of the importances.
    label = r"<text[^>]*>&lt;script&gt;document.title='hacked'&lt;/script&gt;[^<]*</text>"
    assert re.search(label, page.dom)


def test_the_page_could_not_ask_anybody(
    url: str, render: Callable[..., Any], tmp_path: Path
) -> None:
    """What the policy refuses is logged: so the quiet page above asked nobody."""
    page = Path(url.removeprefix("file://")).read_text(encoding="utf-8")
    asking = tmp_path / "asking.html"
    asking.write_text(page.replace("<main>", '<main><img src="http://127.0.0.1:9/x.png">'))
    assert "Content Security Policy" in render(asking.as_uri()).console


def test_it_looks_like_a_page(
    url: str, screenshot: Callable[[str, Path], bytes], tmp_path: Path
) -> None:
    picture = screenshot(url, tmp_path / "page.png")
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000
