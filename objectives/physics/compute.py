"""What one kernel costs: matrix products, fused attention, and everything that streams memory.

All arguments are numbers or arrays of shape (n,) that broadcast; results are seconds or FLOPs of
one GPU. A matrix product of m x k with k x n counts 2 m n k FLOPs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from objectives.physics.arrays import FloatArray, Numbers
from objectives.physics.calibration import AcceleratorCalibration, KernelCalibration

TILE_ROWS, TILE_COLUMNS = 128, 256
"""Output tile of the fastest kernels on A100 and later (arXiv 2401.14489, section 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU at the rates that kernels reach.

    Attributes:
        matmul_flops_per_s: Of large products in the chosen precision, shape (n,) or a number.
        element_bytes: Of an operand of those products, shape (n,) or a number.
        attention_forward_flops_per_s: Of fused attention forward.
        attention_backward_flops_per_s: Of fused attention backward.
        memory_bytes_per_s: Of streaming kernels.
        launch_s: Per kernel.
        wave_outputs: Output elements of one wave of tiles over all cores.
        wave_scale: Waves at which a product has 63 % of its full rate.
        inner_half: Inner elements that a tile's start and end cost.
    """

    matmul_flops_per_s: Numbers
    element_bytes: Numbers
    attention_forward_flops_per_s: float
    attention_backward_flops_per_s: float
    memory_bytes_per_s: float
    launch_s: float
    wave_outputs: float
    wave_scale: float
    inner_half: float


def make_device(
    *,
    matmul_peak_flops_per_s: Numbers,
    matmul_burst: Numbers,
    element_bytes: Numbers,
    bf16_peak_flops_per_s: float,
    memory_bandwidth_bytes_per_s: float,
    gpus: int,
    accelerator: AcceleratorCalibration,
    kernel: KernelCalibration,
) -> Device:
    """Turn a data sheet into the rates that kernels reach.

    Args:
        matmul_peak_flops_per_s: In the precision of the products, shape (n,) or a number.
        matmul_burst: Share of it that the best shapes reach in a burst, likewise.
        element_bytes: Of an operand, likewise.
        bf16_peak_flops_per_s: Attention runs in BF16 whatever the products do.
        memory_bandwidth_bytes_per_s: Nominal.
        gpus: That work together, and wait for the slowest of them.
        accelerator: What this kind reaches.
        kernel: Constants of kernels.
    """
    slowest = slowest_of(gpus, accelerator.spread)
    sustained = accelerator.sustained * slowest
    attention = bf16_peak_flops_per_s * slowest
    return Device(
        matmul_flops_per_s=np.asarray(matmul_peak_flops_per_s) * matmul_burst * sustained,
        element_bytes=element_bytes,
        attention_forward_flops_per_s=attention * accelerator.attention_forward,
        attention_backward_flops_per_s=attention * accelerator.attention_backward,
        memory_bytes_per_s=memory_bandwidth_bytes_per_s * kernel.memory_efficiency,
        launch_s=kernel.launch_s,
        wave_outputs=float(TILE_ROWS * TILE_COLUMNS * accelerator.cores),
        wave_scale=kernel.wave_scale,
        inner_half=kernel.inner_half,
    )


def slowest_of(gpus: int, spread: float) -> float:
    """Rate of the slowest of several GPUs over their mean, expected of a normal spread.

    Args:
        gpus: How many.
        spread: Standard deviation over the mean.

    References:
        Blom, "Statistical Estimates and Transformed Beta-Variables", 1958 (normal maximum).
    """
    return float(1 - spread * ndtri((gpus - 0.375) / (gpus + 0.25))) if gpus > 1 else 1.0


def matmul_efficiency(
    device: Device, *, rows: Numbers, inner: Numbers, columns: Numbers, groups: Numbers = 1
) -> FloatArray:
    """Share of the full rate that a product's shape allows, in (0, 1).

    With w waves of output tiles over the cores, 1 - exp(-w / w0): few tiles leave cores idle. Of
    each tile's time, k / (k + k0) is its inner loop.

    Args:
        device: Where it runs.
        rows: m.
        inner: k.
        columns: n.
        groups: Products of this shape in one launch.

    References:
        Anthony et al., "The Case for Co-Designing Model Architectures with Hardware", arXiv
        2401.14489, section 3 (tile and wave quantisation); here smooth, because libraries choose
        among tile sizes.
    """
    k = np.asarray(inner, dtype=np.float64)
    waves = np.asarray(rows, dtype=np.float64) * columns * groups / device.wave_outputs
    return np.asarray(-np.expm1(-waves / device.wave_scale) * k / (k + device.inner_half))


def matmul_s(
    device: Device,
    *,
    rows: Numbers,
    inner: Numbers,
    columns: Numbers,
    groups: Numbers = 1,
    output_bytes: Numbers = 2,
) -> FloatArray:
    """Seconds of one launch of products m x k by k x n: the slower of arithmetic and memory.

    Args:
        device: Where it runs.
        rows: m; may be 0.
        inner: k.
        columns: n.
        groups: Products of this shape in one launch.
        output_bytes: Moved per output element; 8 where FP32 outputs are accumulated.

    References:
        Williams et al., "Roofline", CACM 52(4), 2009.
    """
    m = np.maximum(np.asarray(rows, dtype=np.float64), 1e-9)
    efficiency = matmul_efficiency(device, rows=m, inner=inner, columns=columns, groups=groups)
    arithmetic = 2 * m * inner * columns * groups / (device.matmul_flops_per_s * efficiency)
    operands = (m * inner + np.asarray(inner, dtype=np.float64) * columns) * device.element_bytes
    moved = groups * (operands + m * columns * np.asarray(output_bytes))
    return np.asarray(np.maximum(arithmetic, moved / device.memory_bytes_per_s) + device.launch_s)


def memory_s(device: Device, moved_bytes: Numbers, *, kernels: Numbers = 1) -> FloatArray:
    """Seconds of kernels that only stream memory.

    Args:
        device: Where they run.
        moved_bytes: Read and written, all kernels together.
        kernels: Launches.
    """
    moved = np.asarray(moved_bytes, dtype=np.float64)
    return np.asarray(moved / device.memory_bytes_per_s + kernels * device.launch_s)


def attention_flops(
    *, queries: Numbers, keys: Numbers, heads: Numbers, qk_dim: int, v_dim: int
) -> FloatArray:
    """FLOPs that causal attention does forward: half of 2 q k H (d_qk + d_v).

    Args:
        queries: Query tokens, of all sequences together.
        keys: Tokens that the last query of a sequence sees.
        heads: On this GPU.
        qk_dim: Width of a query and key head.
        v_dim: Width of a value head.

    References:
        Dao, "FlashAttention-2", arXiv 2307.08691, section 4.1 (half of the products are masked).
    """
    return np.asarray(np.asarray(queries, dtype=np.float64) * keys * heads * (qk_dim + v_dim))


ATTENTION_BACKWARD_FACTOR = 2.5
"""Five products backward, one of them a repeat, for two forward (arXiv 2307.08691, section 4.1)."""


def attention_forward_s(device: Device, flops: FloatArray) -> FloatArray:
    """Seconds of fused attention forward.

    Args:
        device: Where it runs.
        flops: By `attention_flops`.
    """
    return np.asarray(flops / device.attention_forward_flops_per_s + device.launch_s)


def attention_backward_s(device: Device, flops: FloatArray) -> FloatArray:
    """Seconds of fused attention backward.

    Args:
        device: Where it runs.
        flops: Of the forward pass.
    """
    backward = ATTENTION_BACKWARD_FACTOR * flops
    return np.asarray(backward / device.attention_backward_flops_per_s + device.launch_s)


ADAM_BYTES_PER_PARAMETER = 30
"""Read: FP32 gradient, master weight, two moments (16). Written: the last three and BF16 (14)."""


def optimizer_s(device: Device, parameters: Numbers) -> FloatArray:
    """Seconds of one Adam step over a GPU's shard of the parameters, fused into one kernel.

    Args:
        device: Where it runs.
        parameters: Of the shard.
    """
    moved = np.asarray(parameters, dtype=np.float64) * ADAM_BYTES_PER_PARAMETER
    return memory_s(device, moved)
