from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from autotune import SearchSpace
from objectives.knobs import NOT_MODELLED, search_space
from objectives.knobs.coverage import KNOB_OF_OPTION
from objectives.physics.layout import DIMENSIONS, split_order
from objectives.scenario import Workload

# The published design space, option by option (arXiv 2605.24326 and the systems it draws on).
OPTIONS = {
    "placement": [
        "which dimension crosses the building",
        "DP, FSDP or PP across",
        "CP, EP, TP across as negative controls",
        "sharded inside a building and replicated across",
        "PP across with FSDP inside one building only",
        "order of dimensions",
        "which stage cut sits on the long link",
        "uneven GPU counts and types per building",
    ],
    "scheduling": [
        "GPipe",
        "1F1B",
        "interleaved 1F1B",
        "breadth-first",
        "depth-first with N contiguous microbatches",
        "ZB-H1",
        "ZB-2p",
        "ZB-V",
        "V-Half",
        "V-Min",
        "DualPipe",
        "latency-aware greedy or solver order",
        "time-sharing of the long link between DP groups",
    ],
    "microbatching": ["microbatch size", "microbatch count", "count below the stage count"],
    "chunking": [
        "chunks per rank",
        "layers per chunk",
        "one layer fewer on the first and last stage",
        "uneven split of layers beyond the first and last stage",
        "V placement",
        "embedding and head placement",
    ],
    "overlap": [
        "FSDP prefetch depth",
        "reduce-scatter overlap",
        "all-gather overlap",
        "asynchronous P2P",
        "no reshard after forward",
        "asynchronous TP",
        "optimizer-state sync bypass",
    ],
    "transport": [
        "RoCE go-back-N",
        "selective repeat",
        "erasure coded",
        "n TCP connections",
        "QPs per pair",
        "bytes in flight",
    ],
    "load balancing": [
        "ECMP",
        "E-ECMP with QP scaling",
        "flowlet or adaptive",
        "packet spraying",
        "path pinning",
    ],
    "congestion control": [
        "DCQCN",
        "receiver-driven admission",
        "near-source signalling",
        "distance-aware",
    ],
    "link": ["optical circuit switching"],
    "collectives": [
        "ring",
        "tree",
        "hierarchical",
        "in-network reduction",
        "chunked across sites",
        "quantised collectives",
        "compressed gradients",
        "low-frequency synchronisation",
    ],
    "memory and formats": [
        "recompute",
        "recompute and offload per block",
        "activation offload",
        "optimizer offload",
        "parameter offload",
        "optimizer sharding inside the building only",
        "precision",
        "gradient dtype",
        "reduction once per step or per microbatch",
        "P2P scatter-gather",
    ],
}


def make_scenario(**changes):
    building = SimpleNamespace(
        gpus=8192,
        gpus_per_node=8,
        accelerator=SimpleNamespace(peak_flops_per_s={"bf16": 989e12, "fp8": 1979e12}),
    )
    values = {
        "num_layers": 126,
        "num_heads": 128,
        "num_kv_heads": 8,
        "experts": None,
        "buildings": (building, building),
        "host": SimpleNamespace(),
        "sequences": 2048,
        "sequence_length": 8192,
    } | changes
    moe = None if values["experts"] is None else SimpleNamespace(num_experts=values["experts"])
    return SimpleNamespace(
        model=SimpleNamespace(
            num_layers=values["num_layers"],
            num_heads=values["num_heads"],
            num_kv_heads=values["num_kv_heads"],
            moe=moe,
        ),
        cluster=SimpleNamespace(
            buildings=values["buildings"],
            gpus=sum(building.gpus for building in values["buildings"]),
            host=values["host"],
        ),
        workload=Workload(
            global_batch_tokens=values["sequences"] * values["sequence_length"],
            sequence_length=values["sequence_length"],
        ),
    )


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return search_space(make_scenario())


@pytest.fixture(scope="module")
def columns(space):
    return space.sample_columns(4000, seed=1)


def test_every_published_option_is_a_knob_or_named_as_missing(space):
    options = {option for listed in OPTIONS.values() for option in listed}
    assert set(KNOB_OF_OPTION).isdisjoint(NOT_MODELLED)
    assert set(KNOB_OF_OPTION) | set(NOT_MODELLED) == options
    assert set(KNOB_OF_OPTION.values()) <= set(space.names)
    assert all(NOT_MODELLED.values())


def test_every_knob_sets_a_published_option(space):
    degrees = {name for name in space.names if name.endswith("_degree")}
    assert set(space.names) - set(KNOB_OF_OPTION.values()) - degrees == {
        "pipeline_parallel_first_stage_less_layers"
    }


def test_the_space_is_rich_and_its_mathematics_fixed(space):
    assert space.count() > 10**7
    fixed = [name for name in space.names if len(space.parameters[name].choices) == 1]
    assert fixed == ["expert_parallel_degree", "precision", "gradient_dtype"]


def test_samples_use_every_gpu_and_the_whole_batch(columns):
    world = np.prod(
        [
            columns[name]
            for name in (
                "tensor_parallel_degree",
                "context_parallel_degree",
                "pipeline_parallel_degree",
                "data_parallel_shard_degree",
                "data_parallel_replicate_degree",
            )
        ],
        axis=0,
    )
    data = columns["data_parallel_shard_degree"] * columns["data_parallel_replicate_degree"]
    assert set(world.tolist()) == {16384}
    assert not np.any(2048 % (data * columns["microbatch_size"]))


def test_samples_split_layers_evenly(columns):
    slots = (
        126
        + columns["pipeline_parallel_first_stage_less_layers"]
        + columns["pipeline_parallel_last_stage_less_layers"]
    )
    stages = columns["pipeline_parallel_degree"] * columns["virtual_stages_per_rank"]
    assert not np.any(slots % stages)


def test_inactive_knobs_stand_at_one_value(columns):
    alone = columns["pipeline_parallel_degree"] == 1
    assert alone.any()
    assert set(columns["pipeline_parallel_schedule"][alone].tolist()) == {"none"}
    assert not columns["p2p_scatter_gather"][alone].any()
    kept = columns["fsdp_reshard_after_forward"] == "never"
    assert set(columns["fsdp_prefetch_depth"][kept].tolist()) == {1}
    flat = columns["collective_algorithm"] != "hierarchical"
    assert set(columns["cross_site_chunks"][flat].tolist()) == {1}
    tcp = columns["transport"] == "tcp"
    assert set(columns["congestion_control"][tcp].tolist()) == {"none"}


def test_every_value_of_every_knob_is_reachable(space):
    columns = space.sample_columns(60_000, seed=2)
    missing = {
        name: set(space.parameters[name].choices) - set(columns[name].tolist())
        for name in space.names
    }
    # Long pipelines and odd chunk counts are legal and rare.
    rare = {
        "virtual_stages_per_rank",
        "data_parallel_shard_degree",
        "data_parallel_replicate_degree",
    }
    assert {name for name, values in missing.items() if values} <= rare


def test_rules_say_what_is_wrong(space):
    config = space.sample(1, seed=3)[0]
    wrong = config | {"transport": "tcp", "load_balancing": "spray"}
    assert any("spraying" in str(problem) for problem in space.explain(wrong))
    wrong = config | {"pipeline_parallel_schedule": "none", "pipeline_parallel_degree": 16}
    assert any("schedule fits the stages" in str(problem) for problem in space.explain(wrong))


def test_interleaving_takes_whole_rounds_of_microbatches(columns):
    data = columns["data_parallel_shard_degree"] * columns["data_parallel_replicate_degree"]
    microbatches = 2048 // (data * columns["microbatch_size"])
    rounds = columns["pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert not np.any((microbatches % columns["pipeline_parallel_degree"])[rounds])
    dual = columns["pipeline_parallel_schedule"] == "DualPipeV"
    assert np.all((microbatches >= 2 * columns["pipeline_parallel_degree"])[dual])


def test_orders_name_every_dimension_and_each_can_be_outermost(space):
    orders = [split_order(order) for order in space.parameters["dimension_order"].choices]
    assert {order[-1] for order in orders} == set(DIMENSIONS)


def test_no_two_configs_name_the_same_placement(columns, space):
    wide = {
        "tp": columns["tensor_parallel_degree"] > 1,
        "cp": columns["context_parallel_degree"] > 1,
    }
    order = columns["dimension_order"]
    assert np.all(wide["cp"][order == "tp-pp-shard-replicate-cp"])
    assert np.all(wide["tp"][order == "cp-pp-shard-replicate-tp"])
    replicated = columns["data_parallel_replicate_degree"] > 1
    assert np.all(replicated[order == "tp-cp-pp-replicate-shard"])
    assert set(order.tolist()) == set(space.parameters["dimension_order"].choices)


def test_experts_share_the_shard_ranks():
    columns = search_space(
        make_scenario(num_layers=61, num_kv_heads=128, experts=256, sequences=15360)
    ).sample_columns(2000, seed=4)
    ranks = columns["data_parallel_shard_degree"] * columns["context_parallel_degree"]
    assert not np.any(ranks % columns["expert_parallel_degree"])
    assert columns["expert_parallel_degree"].max() > 16


def test_four_gpus_a_node_bound_tensor_parallelism():
    small = SimpleNamespace(
        gpus=64, gpus_per_node=4, accelerator=SimpleNamespace(peak_flops_per_s={"bf16": 1e15})
    )
    space = search_space(make_scenario(buildings=(small,), host=None))
    assert max(space.parameters["tensor_parallel_degree"].choices) == 4
    assert space.parameters["activation_offload_fraction"].choices == (0.0,)
    assert space.parameters["transport"].choices == ("roce_go_back_n",)


def test_a_hundred_and_twenty_gpus_and_forty_layers():
    building = SimpleNamespace(
        gpus=60, gpus_per_node=6, accelerator=SimpleNamespace(peak_flops_per_s={"bf16": 1e15})
    )
    space = search_space(
        make_scenario(buildings=(building, building), num_layers=40, num_kv_heads=8, sequences=240)
    )
    columns = space.sample_columns(500, seed=5)
    assert set(columns["tensor_parallel_degree"].tolist()) <= {1, 2, 4, 8}
    assert 5 in columns["pipeline_parallel_degree"]


def test_other_mathematics_opens_number_formats():
    space = search_space(make_scenario(), same_mathematics=False)
    assert space.parameters["precision"].choices == ("bf16", "fp8")
    assert space.parameters["gradient_dtype"].choices == ("fp32", "bf16")


def test_negative_controls_can_be_left_out():
    space = search_space(make_scenario(), negative_controls=False)
    outermost = {order.split("-")[-1] for order in space.parameters["dimension_order"].choices}
    assert outermost == {"pp", "shard", "replicate"}
