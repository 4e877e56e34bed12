"""optuna-dashboard on one of our storages: what is infeasible must look infeasible."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import IntDistribution

from autotune import Config, Metric, SearchSpace, StudySpec, objective, open_study

pytest.importorskip("optuna_dashboard", reason="needs the extra dashboard")

from autotune.dashboard import HOST, make_dashboard


@objective(
    metrics=[Metric(name="time_s", unit="s"), Metric(name="link_bytes_per_s", unit="byte/s")],
    constraints=["memory_over_bytes"],
)
def toy(config: Config) -> dict[str, float]:
    x = config["x"]
    return {"time_s": 10.0 - x, "link_bytes_per_s": float(x), "memory_over_bytes": x - 5.0}


def add_study(storage: str, name: str, *, values: range) -> None:
    spec = StudySpec(
        name=name,
        space=SearchSpace({"x": IntDistribution(0, 10)}),
        objective=toy,
        metrics=("time_s", "link_bytes_per_s"),
        baselines={f"x = {x}": {"x": x} for x in values},
        n_trials=len(values),
    )
    open_study(spec, storage).optimize()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    storage = str(tmp_path_factory.mktemp("dashboard") / "studies.db")
    add_study(storage, "one infeasible", values=range(3, 7))
    add_study(storage, "all feasible", values=range(2, 6))
    with make_dashboard(storage, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_port}"
        server.shutdown()


def legends(dom: str) -> list[str]:
    """The texts of all legends of the page's plots."""
    return re.findall(r'class="legendtext"[^>]*data-unformatted="([^"]*)"', dom)


def test_an_infeasible_trial_looks_infeasible(address: str, render: Callable[..., Any]) -> None:
    dom = render(f"{address}/dashboard/studies/1", milliseconds=8000).dom
    assert "one infeasible@toy" in dom
    assert {"Complete", "Infeasible"} <= set(legends(dom))


def test_an_infeasible_trial_is_not_praised(address: str, render: Callable[..., Any]) -> None:
    dom = render(f"{address}/dashboard/studies/1/trials?numbers=0", milliseconds=8000).dom
    items = re.findall(r"Trial (\d+)</span>(.*?)</li>", dom, re.DOTALL)
    assert {number: "Best Trial" in rest for number, rest in items} == {
        "0": True,
        "1": True,
        "2": True,
        "3": False,
    }


def test_feasible_trials_do_not(address: str, render: Callable[..., Any]) -> None:
    dom = render(f"{address}/dashboard/studies/2", milliseconds=8000).dom
    assert "all feasible@toy" in dom
    # The same plots are drawn; the timeline needs no legend where there is one kind of trial.
    assert "time_s" in legends(dom)
    assert "Infeasible" not in dom


def test_a_taken_port_is_said(address: str, tmp_path: Path) -> None:
    from autotune import InvalidInput

    storage = str(tmp_path / "other.db")
    add_study(storage, "other", values=range(2))
    with pytest.raises(InvalidInput, match="--port 0"):
        make_dashboard(storage, port=int(address.rpartition(":")[2]))
