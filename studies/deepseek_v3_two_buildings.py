"""DeepSeek-V3 on 2,048 H800 in two buildings: a mixture of experts over a long link.

The job is the published one: the model's ``config.json``, 15,360 sequences of 4,096 tokens per
step after the batch has grown (DeepSeek-V3 report, arXiv 2412.19437, section 4.2), on 2,048 H800
with FP8 matrix products. Everything about two buildings is an assumption: the GPUs in halves,
10 km apart, joined by 1.6 Tbit/s per direction in all. Latencies, loss and hosts are assumptions
too, named in the cluster preset.

The space keeps the mathematics of the baseline (FP8 products, FP32 gradients, every step
synchronised, the same batch), so that a faster config trains the same model. Orders that put
context or tensor parallelism across are left out: with experts they take hours a step.
"""

from __future__ import annotations

from autotune import StudySpec
from objectives.baselines import deepseek_v3_production
from objectives.knobs import search_space
from objectives.scenario import Workload, design_point, scenario

WORKLOAD = Workload(global_batch_tokens=15360 * 4096, sequence_length=4096)


def study() -> StudySpec:
    """Step time against the bandwidth that a config needs between the buildings."""
    made = design_point(
        "deepseek-v3-2k-h800-two-buildings",
        model="deepseek-v3",
        cluster="two-buildings-2k-h800",
        workload=WORKLOAD,
    )
    parsed = scenario(made)
    return StudySpec(
        name="deepseek-v3-two-buildings",
        description=(
            "DeepSeek-V3 on 2,048 H800 in two buildings 10 km apart, joined by 1.6 Tbit/s per "
            "direction."
        ),
        space=search_space(parsed, precision="fp8", negative_controls=False),
        objective="analytical",
        metrics=("step_time_s", "long_link_bandwidth_bytes_per_s"),
        design_point=made,
        baselines={"deepseek-v3-production": deepseek_v3_production(parsed)},
        sampler="nsga2",
        n_trials=1000,
        n_startup_trials=60,
        tags=("llm", "mixture of experts", "two buildings"),
    )
