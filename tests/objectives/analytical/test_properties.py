"""What must hold for any config: sums, monotony, conservation, one row like many."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.objective import columns_of

NUMBER = 1500
SLACK = 1 - 1e-9


@pytest.fixture(scope="module", params=["llama", "deepseek"])
def job(request, llama, deepseek, samples):
    """A way to measure the same sample with changed links."""
    made = {"llama": llama, "deepseek": deepseek}[request.param]
    columns = samples(request.param, NUMBER, seed=3)
    return lambda changes: made(changes=changes).evaluate_batch(columns, breakdown=True)


@pytest.fixture(scope="module")
def measured(job):
    return job({})


SLOWER = {
    "node bandwidth": {("link", "node", "bandwidth"): "100 GB/s"},
    "node latency": {("link", "node", "latency"): "5 us"},
    "network cards": {("link", "zone", "bandwidth"): "100 Gbit/s"},
    "slow network cards": {("link", "zone", "bandwidth"): "10 Gbit/s"},
    "zone latency": {("link", "zone", "latency"): "20 us"},
    "narrow cut": {("link", "between_buildings", "capacity"): "0.8 Tbit/s"},
    "narrower cut": {("link", "between_buildings", "capacity"): "0.2 Tbit/s"},
    "distance": {("link", "between_buildings", "distance"): "100 km"},
    "more distance": {("link", "between_buildings", "distance"): "1000 km"},
    "loss": {("link", "between_buildings", "loss"): 1e-4},
    "more loss": {("link", "between_buildings", "loss"): 1e-3},
    "host link": {("link", "host", "bandwidth"): "16 GB/s"},
}


@pytest.mark.parametrize("change", SLOWER)
def test_time_never_falls_when_a_link_gets_worse(job, measured, change) -> None:
    worse = job(SLOWER[change])
    before, after = measured.metrics["step_time_s"], worse.metrics["step_time_s"]
    assert measured.ok.all()
    assert np.all(after >= before * SLACK)
    assert np.any(after > before)


def test_slower_cards_never_help_inside_one_building(llama, samples) -> None:
    columns = samples("llama", NUMBER, seed=4)
    one = "one-building-16k-h100"
    before = llama(one).evaluate_batch(columns).metrics["step_time_s"]
    for changes in (
        {("link", "zone", "bandwidth"): "100 Gbit/s"},
        {("link", "building", "bandwidth"): "100 Gbit/s"},
        {("link", "building", "oversubscription"): 20.0},
        {("link", "building", "latency"): "50 us"},
    ):
        after = llama(one, changes).evaluate_batch(columns).metrics["step_time_s"]
        assert np.all(after >= before * SLACK)


def test_slower_memory_never_helps(llama, samples) -> None:
    columns = samples("llama", NUMBER, seed=4)
    one = "one-building-16k-h100"
    before = llama(one).evaluate_batch(columns).metrics["step_time_s"]
    slow_memory = {
        ("accelerator",): {"H100-SXM": {"preset": "H100-SXM", "memory_bandwidth": "1 TB/s"}}
    }
    after = llama(one, slow_memory).evaluate_batch(columns).metrics["step_time_s"]
    assert np.all(after > before)


def test_the_breakdown_sums_to_the_step(measured) -> None:
    total = np.sum(list(measured.breakdown.values()), axis=0)
    np.testing.assert_allclose(total, measured.metrics["step_time_s"], rtol=1e-12)
    assert all(np.all(seconds >= -1e-12) for seconds in measured.breakdown.values())


@pytest.mark.parametrize("model", ["llama", "deepseek"])
def test_ten_thousand_configs_are_finite(llama, deepseek, samples, model) -> None:
    objective = {"llama": llama, "deepseek": deepseek}[model]()
    result = objective.evaluate_batch(samples(model, 10_000, seed=11), breakdown=True)
    assert result.ok.all(), result.reasons
    for group in (result.metrics, result.constraints, result.breakdown):
        for name, values in group.items():
            assert np.all(np.isfinite(values)), name
    times = result.metrics["step_time_s"]
    assert np.all(times > 1.0)
    assert np.all(result.metrics["mfu"] < 0.85)


def test_one_row_is_like_many(llama, samples) -> None:
    """Also across the borders of what is computed at a time."""
    objective = llama()
    columns = samples("llama", 40, seed=5)
    repeated = {name: np.tile(values, 120) for name, values in columns.items()}
    many = objective.evaluate_batch(repeated, breakdown=True)
    for i in (0, 7, 39):
        config = {name: values[i].item() for name, values in columns.items()}
        one = objective.evaluate(config, seed=0)
        for row in (i, i + 4080, i + 4760):
            assert many.row(row).metrics == pytest.approx(dict(one.metrics), rel=1e-9)


def test_a_term_of_a_later_row_is_kept(llama, baseline) -> None:
    """The first 5,000 rows have no context parallelism and no replicas, the last one has both."""
    other = {
        **baseline,
        "context_parallel_degree": 2,
        "data_parallel_shard_degree": 32,
        "data_parallel_replicate_degree": 2,
        "microbatch_size": 2,
    }
    batch = llama().evaluate_batch(columns_of([baseline] * 5000 + [other]), breakdown=True)
    total = np.sum(list(batch.breakdown.values()), axis=0)
    np.testing.assert_allclose(total, batch.metrics["step_time_s"], rtol=1e-12)
    assert any(name.startswith("context parallel") for name in batch.breakdown)


def test_columns_of_dicts_are_columns(llama, baseline) -> None:
    batch = llama().evaluate_batch(columns_of([baseline, baseline]))
    assert batch.ok.all()
    assert batch.metrics["step_time_s"][0] == batch.metrics["step_time_s"][1]


def test_flops_do_not_depend_on_the_layout(measured) -> None:
    """Utilisation is the same useful work over time, for every config."""
    useful = measured.metrics["mfu"] * measured.metrics["step_time_s"]
    np.testing.assert_allclose(useful, useful[0], rtol=1e-12)
    np.testing.assert_allclose(
        measured.metrics["tokens_per_s"] * measured.metrics["step_time_s"],
        measured.metrics["tokens_per_s"][0] * measured.metrics["step_time_s"][0],
    )


def test_more_gpus_compute_less_each(llama, baseline) -> None:
    """The same batch on twice the GPUs: never more compute on the slowest of them."""
    seconds = []
    for gpus, data in ((8192, 64), (16384, 128), (32768, 256)):
        building = [
            {
                "name": "home",
                "region": "home",
                "accelerator": "H100-SXM",
                "gpus": gpus,
                "gpus_per_node": 8,
                "gpus_per_zone": 2048,
            }
        ]
        objective = llama("one-building-16k-h100", {("building",): building})
        # Breadth-first takes any number of microbatches.
        config = {
            **baseline,
            "pipeline_parallel_schedule": "LoopedBFS",
            "data_parallel_shard_degree": data,
        }
        result = objective.evaluate(config, seed=0)
        assert result.ok, result.reason
        seconds.append(result.breakdown["compute"])
    # The slowest of more GPUs is a little slower.
    assert seconds[0] > 1.9 * seconds[1] > 3.6 * seconds[2]


def test_recomputing_trades_time_for_memory(measure) -> None:
    none, selective, full = (
        measure(activation_checkpoint_mode=mode).metrics for mode in ("none", "selective", "full")
    )
    assert none["peak_memory_bytes"] > selective["peak_memory_bytes"] > full["peak_memory_bytes"]
    assert none["step_time_s"] < selective["step_time_s"] < full["step_time_s"]


def test_offloading_trades_memory_for_at_most_time(measure) -> None:
    kept = measure().metrics
    activations = measure(activation_offload_fraction=0.5)
    states = measure(optimizer_offload_fraction=1.0)
    assert activations.metrics["peak_memory_bytes"] < kept["peak_memory_bytes"] - 20e9
    assert activations.metrics["step_time_s"] >= kept["step_time_s"]
    assert states.metrics["peak_memory_bytes"] < kept["peak_memory_bytes"]
    assert states.breakdown["offload"] > 0


def test_host_memory_bounds_offloading(measure) -> None:
    changes = {("link", "host", "memory"): "10 GB"}
    result = measure(changes=changes, activation_offload_fraction=1.0)
    assert result.constraints["offloaded_memory_over_host_bytes"] > 0
    assert not result.feasible


def test_local_steps_divide_replica_traffic_and_say_so(measure) -> None:
    replicated = {
        "data_parallel_shard_degree": 64,
        "data_parallel_replicate_degree": 2,
    }
    every = measure(**replicated)
    rarely = measure(**replicated, local_steps=32)
    assert rarely.metrics["long_link_bytes"] == pytest.approx(every.metrics["long_link_bytes"] / 32)
    assert rarely.metrics["step_time_s"] < every.metrics["step_time_s"]
    assert rarely.metrics["peak_memory_bytes"] > every.metrics["peak_memory_bytes"]
    assert every.metrics["synchronisation_interval_steps"] == 1
    assert rarely.metrics["synchronisation_interval_steps"] == 32


def test_compression_divides_gradient_traffic_and_says_so(measure) -> None:
    plain, small = measure(), measure(gradient_compression="int8")
    # FP32 gradients are two thirds of the bytes, BF16 weights the rest.
    assert small.metrics["long_link_bytes"] == pytest.approx(
        plain.metrics["long_link_bytes"] * (1 / 4 * 2 / 3 + 1 / 3), rel=0.02
    )
    assert plain.metrics["gradient_exchange_bits"] == 32
    assert small.metrics["gradient_exchange_bits"] == pytest.approx(8.0625)
