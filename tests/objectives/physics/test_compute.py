from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics import compute
from objectives.physics.calibration import OTHER, calibration
from objectives.physics.compute import Device, make_device

KNOWN = calibration()


def _device(name: str = "H100-SXM", *, gpus: int = 1, **changes: float) -> Device:
    peaks = {"H100-SXM": 989e12, "A100-80": 312e12}
    reach = KNOWN.accelerator(name)
    device = make_device(
        matmul_peak_flops_per_s=peaks[name],
        matmul_burst=reach.matmul_burst["bf16"],
        element_bytes=2.0,
        bf16_peak_flops_per_s=peaks[name],
        memory_bandwidth_bytes_per_s=3.35e12,
        gpus=gpus,
        accelerator=reach,
        kernel=KNOWN.kernel,
    )
    return dataclasses.replace(device, **changes)


@pytest.fixture(scope="module")
def device() -> Device:
    return _device()


def _rate(device: Device, m: int, n: int, k: int, batch: int = 1) -> float:
    seconds = compute.matmul_s(device, rows=m, inner=k, columns=n, groups=batch)
    return float(2 * m * n * k * batch / seconds)


# OpenXLA's matmul performance table for sm_90 (H100), BF16: batch, m, n, k, TFLOP/s. Measured
# alone and short, so at boost clocks and with a launch each.
MEASURED = [
    (1, 1024, 1024, 4096, 470),
    (1, 2048, 1024, 4096, 653),
    (1, 1024, 4096, 2048, 634),
    (1, 512, 4096, 4096, 644),
    (1, 2048, 4096, 2048, 715),
    (1, 4096, 4096, 1024, 677),
    (2, 1024, 4096, 4096, 748),
    (2, 2048, 4096, 4096, 779),
    (4, 1024, 512, 4096, 642),
    (4, 1024, 1024, 4096, 736),
    (2, 4096, 512, 2048, 623),
    (4, 2048, 2048, 4096, 779),
    (1, 1024, 512, 4096, 299),
    (4, 256, 1024, 1024, 228),
    (1, 512, 512, 512, 41),
]


def test_shapes_cost_what_was_measured() -> None:
    """With boost clocks and the launch seen there, 15 published shapes come out within 20 %."""
    burst = _device(matmul_flops_per_s=794.5e12, launch_s=6e-6)
    errors = [
        _rate(burst, m, n, k, batch) / (measured * 1e12) - 1
        for batch, m, n, k, measured in MEASURED
    ]
    assert np.mean(np.abs(errors)) < 0.08
    assert np.max(np.abs(errors)) < 0.20


def test_large_products_reach_the_sustained_rate(device: Device) -> None:
    sustained = 794.5e12 * KNOWN.accelerator("H100-SXM").sustained
    assert _rate(device, 8192, 13312, 16384) == pytest.approx(sustained, rel=0.02)


@given(
    m=st.integers(1, 16384), n=st.integers(1, 16384), k=st.integers(1, 16384), e=st.integers(1, 64)
)
def test_no_product_beats_arithmetic_or_memory(m: int, n: int, k: int, e: int) -> None:
    device = _device()
    seconds = compute.matmul_s(device, rows=m, inner=k, columns=n, groups=e)
    assert seconds >= 2 * m * n * k * e / device.matmul_flops_per_s
    assert seconds >= e * 2 * (m * k + k * n + m * n) / device.memory_bytes_per_s


@given(m=st.integers(1, 8192), factor=st.integers(2, 8))
def test_more_rows_take_longer_but_not_per_row(m: int, factor: int) -> None:
    device = _device()
    one = compute.matmul_s(device, rows=m, inner=4096, columns=4096)
    more = compute.matmul_s(device, rows=m * factor, inner=4096, columns=4096)
    assert one <= more <= factor * one


def test_an_empty_product_is_a_launch(device: Device) -> None:
    seconds = compute.matmul_s(device, rows=0, inner=64, columns=64)
    assert np.isfinite(seconds)
    assert seconds < 2 * device.launch_s


def test_grouped_products_fill_the_cores_together(device: Device) -> None:
    alone = 8 * compute.matmul_s(device, rows=128, inner=2048, columns=2048)
    together = compute.matmul_s(device, rows=128, inner=2048, columns=2048, groups=8)
    assert together < 0.5 * alone


def test_causal_attention_is_half_of_the_square() -> None:
    flops = compute.attention_flops(queries=8192, keys=8192, heads=128, qk_dim=128, v_dim=128)
    assert flops == pytest.approx(4 * 8192**2 * 128 * 128 / 2)


def test_backward_attention_does_five_products_for_two(device: Device) -> None:
    flops = np.asarray(1e15)
    forward = compute.attention_forward_s(device, flops) - device.launch_s
    backward = compute.attention_backward_s(device, flops) - device.launch_s
    rates = device.attention_forward_flops_per_s / device.attention_backward_flops_per_s
    assert backward / forward == pytest.approx(2.5 * rates)


def test_optimizer_is_bound_by_memory(device: Device) -> None:
    """Adam on 24.7 M parameters moves 0.74 GB: a quarter of a millisecond."""
    assert compute.optimizer_s(device, 405.85e9 / 16384) == pytest.approx(0.25e-3, rel=0.05)


def test_the_slowest_of_many_gpus_is_slower() -> None:
    slowest = [compute.slowest_of(n, 0.0104) for n in (1, 8, 512, 16384)]
    assert slowest == sorted(slowest, reverse=True)
    assert slowest[0] == 1.0
    assert slowest[-1] == pytest.approx(0.96, abs=0.005)


def test_calibration_matches_by_the_start_of_the_name() -> None:
    assert KNOWN.accelerator("H100-SXM").name == "H100"
    assert KNOWN.accelerator("GB200").name == "GB200"
    assert KNOWN.accelerator("workshop").name == OTHER
