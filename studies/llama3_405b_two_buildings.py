"""Llama 3 405B on 16,384 H100 in two buildings: what trains faster than today's configuration?

The job is the published one: the model's ``config.json``, 16 M tokens per step in sequences of
8,192 (Llama 3 report, arXiv 2407.21783, table 4), on as many H100 as there. Everything about two
buildings is an assumption: the GPUs in halves, 10 km apart, joined by 12.8 Tbit/s per direction
in all. Meta ran it inside one building, with zones of 3,072 GPUs and 1:7 oversubscription between
them; here a zone has 2,048, so that zones divide a building. The latencies, the loss on the cut
and the hosts are assumptions too, named in the cluster preset.

The space keeps the mathematics of the baseline (BF16, FP32 gradients, every step synchronised,
the same batch), so that a faster config trains the same model.
"""

from __future__ import annotations

from autotune import StudySpec
from objectives.baselines import llama3_production
from objectives.cluster import read_cluster
from objectives.knobs import search_space
from objectives.scenario import Workload, design_point, scenario

CUTS_TBIT_PER_S = (3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 205.0)
"""From a quarter of the study's cut to one that makes the placement nearly irrelevant."""

METRICS = ("step_time_s", "long_link_bandwidth_bytes_per_s")

WORKLOAD = Workload(global_batch_tokens=2048 * 8192, sequence_length=8192)


def study() -> StudySpec:
    """Step time against the bandwidth that a config needs between the buildings."""
    return _study(
        "llama3-405b-two-buildings",
        point="llama3-405b-16k-h100-two-buildings",
        capacity=None,
        n_trials=1000,
    )


def cut_sweep() -> tuple[StudySpec, ...]:
    """The same job with cuts of 3.2 to 205 Tbit/s per direction, one study each."""
    return tuple(
        _study(
            f"llama3-405b-cut-sweep/{terabits:g}-Tbit-s",
            point=f"llama3-405b-16k-h100-two-buildings/{terabits:g}-Tbit-s",
            capacity=f"{terabits:g} Tbit/s",
            n_trials=200,
        )
        for terabits in CUTS_TBIT_PER_S
    )


def _study(name: str, *, point: str, capacity: str | None, n_trials: int) -> StudySpec:
    cluster = read_cluster("two-buildings-16k-h100")
    if capacity is not None:
        cluster["link"]["between_buildings"]["capacity"] = capacity
    made = design_point(point, model="llama3.1-405b", cluster=cluster, workload=WORKLOAD)
    parsed = scenario(made)
    return StudySpec(
        name=name,
        description=(
            "Llama 3 405B on 16,384 H100 in two buildings 10 km apart, joined by "
            f"{cluster['link']['between_buildings']['capacity']} per direction."
        ),
        space=search_space(parsed),
        objective="analytical",
        metrics=METRICS,
        design_point=made,
        baselines={"llama3-production": llama3_production(parsed)},
        sampler="nsga2",
        n_trials=n_trials,
        n_startup_trials=60,
        tags=("llm", "dense", "two buildings"),
    )
