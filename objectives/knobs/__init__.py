"""What may be tuned in this domain: the knobs, their values and which combinations are valid."""

from __future__ import annotations

from autotune import SearchSpace
from objectives.knobs.coverage import NOT_MODELLED
from objectives.knobs.domains import domains
from objectives.knobs.rules import conditions, constraints
from objectives.scenario import Scenario

__all__ = ["NOT_MODELLED", "search_space"]


def search_space(
    scenario: Scenario,
    *,
    same_mathematics: bool = True,
    precision: str = "bf16",
    negative_controls: bool = True,
) -> SearchSpace:
    """Every knob that the analytical backend models, for one scenario.

    All configs use all GPUs of the cluster and the workload's batch. Network knobs of the long
    link have one value each where there is one building, and offload where hosts are unknown.

    Args:
        scenario: The model, cluster and workload.
        same_mathematics: Keep what decides the numbers that training computes (number formats,
            compression, how often replicas synchronise), so that a faster config never hides
            another computation.
        precision: Of matrix products where the mathematics is kept.
        negative_controls: Whether context and tensor parallelism may cross between buildings.

    Raises:
        InvalidInput: If no combination is valid, naming the rules that contradict each other.
    """
    parameters = domains(
        scenario,
        same_mathematics=same_mathematics,
        precision=precision,
        negative_controls=negative_controls,
    )
    return SearchSpace(
        parameters,
        constraints=constraints(scenario, parameters),
        conditions=conditions(parameters),
    )
