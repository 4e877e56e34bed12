"""Closed forms of collectives among equal ranks over equal hops.

Every function takes numbers or arrays of shape (n,) that broadcast: ranks ``n``, payload ``S`` in
bytes (the whole vector that every rank has at the end or the start), bandwidth ``B`` in byte/s
per rank and direction, latency ``a`` in seconds per hop, channels ``C`` that run a ring side by
side on parts of the vector. Groups that span several tiers are in `objectives.physics.traffic`.

References:
    Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
    MPICH", IJHPCA 19(1), 2005, sections 3 and 4 (ring, recursive doubling, Rabenseifner).
    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    JPDC 69(2), 2009, theorem 1.
"""

from __future__ import annotations

import numpy as np

from objectives.physics.arrays import FloatArray, Numbers


def stepped_s(
    *, transfer_s: Numbers, latency_s: Numbers, steps: Numbers, channels: Numbers = 1
) -> FloatArray:
    """Seconds of a transfer in steps that each wait for the one before.

    While one channel waits for a hop the others send, so a step of r takes
    max(t/r, t/(r C) + a) and only the last one shows its hop in full. One channel gives t + r a.

    Args:
        transfer_s: t, of all steps at full rate.
        latency_s: r a, of all steps.
        steps: r; 0 where nothing is sent.
        channels: C, at least 1.
    """
    t = np.asarray(transfer_s, dtype=np.float64)
    last = 1 / np.maximum(np.asarray(steps, dtype=np.float64), 1.0)
    others = np.maximum(t, t / channels + latency_s)
    return np.asarray(last * (t + latency_s) + (1 - last) * others, dtype=np.float64)


def ring_all_gather_s(
    *,
    ranks: Numbers,
    payload_bytes: Numbers,
    bandwidth_bytes_per_s: Numbers,
    latency_s: Numbers,
    channels: Numbers = 1,
) -> FloatArray:
    """Seconds of a ring all-gather or reduce-scatter: (n-1)/n * S/B + (n-1) a on one channel.

    Args:
        ranks: Ranks in the ring, at least 1.
        payload_bytes: The whole gathered (or to be scattered) vector.
        bandwidth_bytes_per_s: Per rank and direction.
        latency_s: Per hop.
        channels: That share the vector.
    """
    count = np.asarray(ranks, dtype=np.float64)
    return stepped_s(
        transfer_s=(count - 1) / count * payload_bytes / bandwidth_bytes_per_s,
        latency_s=(count - 1) * latency_s,
        steps=count - 1,
        channels=channels,
    )


def ring_all_reduce_s(
    *,
    ranks: Numbers,
    payload_bytes: Numbers,
    bandwidth_bytes_per_s: Numbers,
    latency_s: Numbers,
    channels: Numbers = 1,
) -> FloatArray:
    """Seconds of a ring all-reduce: 2 (n-1)/n * S/B + 2 (n-1) a on one channel.

    Args:
        ranks: Ranks in the ring, at least 1.
        payload_bytes: The reduced vector.
        bandwidth_bytes_per_s: Per rank and direction.
        latency_s: Per hop.
        channels: That share the vector.
    """
    count = np.asarray(ranks, dtype=np.float64)
    return stepped_s(
        transfer_s=2 * (count - 1) / count * payload_bytes / bandwidth_bytes_per_s,
        latency_s=2 * (count - 1) * latency_s,
        steps=2 * (count - 1),
        channels=channels,
    )


def tree_all_reduce_s(
    *, ranks: Numbers, payload_bytes: Numbers, bandwidth_bytes_per_s: Numbers, latency_s: Numbers
) -> FloatArray:
    """Seconds of a pipelined double-binary-tree all-reduce: 2 S/B + 2 ceil(log2 n) a.

    Args:
        ranks: Ranks in both trees, at least 1.
        payload_bytes: The reduced vector.
        bandwidth_bytes_per_s: Per rank and direction.
        latency_s: Per hop.

    References:
        Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
        and scan", Parallel Computing 35(12), 2009, section 3.
    """
    count = np.asarray(ranks, dtype=np.float64)
    depth = np.ceil(np.log2(count))
    moved = np.where(count > 1, 2.0, 0.0) * payload_bytes
    return np.asarray(moved / bandwidth_bytes_per_s + 2 * depth * latency_s, dtype=np.float64)


def hierarchical_all_reduce_s(
    *,
    sites: Numbers,
    ranks_per_site: Numbers,
    payload_bytes: Numbers,
    inner_bandwidth_bytes_per_s: Numbers,
    inner_latency_s: Numbers,
    outer_bandwidth_bytes_per_s: Numbers,
    outer_latency_s: Numbers,
) -> FloatArray:
    """Seconds of reduce-scatter inside, all-reduce across, all-gather inside, one after another.

    With k sites of g ranks: 2 (g-1)/g * S/B_in + 2 (k-1)/k * (S/g)/B_x, plus latencies.

    Args:
        sites: k, at least 1.
        ranks_per_site: g, at least 1.
        payload_bytes: The reduced vector S.
        inner_bandwidth_bytes_per_s: B_in, per rank and direction.
        inner_latency_s: Per hop inside.
        outer_bandwidth_bytes_per_s: B_x, of each rank's share of the way across.
        outer_latency_s: Per crossing.
    """
    inside = 2 * ring_all_gather_s(
        ranks=ranks_per_site,
        payload_bytes=payload_bytes,
        bandwidth_bytes_per_s=inner_bandwidth_bytes_per_s,
        latency_s=inner_latency_s,
    )
    across = ring_all_reduce_s(
        ranks=sites,
        payload_bytes=np.asarray(payload_bytes, dtype=np.float64) / ranks_per_site,
        bandwidth_bytes_per_s=outer_bandwidth_bytes_per_s,
        latency_s=outer_latency_s,
    )
    return inside + across


def all_to_all_s(
    *, ranks: Numbers, payload_bytes: Numbers, bandwidth_bytes_per_s: Numbers, latency_s: Numbers
) -> FloatArray:
    """Seconds of a pairwise all-to-all with all messages in flight: (n-1)/n * S/B + a.

    Args:
        ranks: Ranks that exchange, at least 1.
        payload_bytes: What one rank sends in all, its own part included.
        bandwidth_bytes_per_s: Per rank and direction.
        latency_s: Of the farthest pair.
    """
    count = np.asarray(ranks, dtype=np.float64)
    moved = (count - 1) / count * payload_bytes
    wait = np.where(count > 1, 1.0, 0.0) * latency_s
    return np.asarray(moved / bandwidth_bytes_per_s + wait, dtype=np.float64)


def broadcast_s(
    *, ranks: Numbers, payload_bytes: Numbers, bandwidth_bytes_per_s: Numbers, latency_s: Numbers
) -> FloatArray:
    """Seconds of a chain-pipelined broadcast or reduce: S/B + (n-1) a.

    Args:
        ranks: Ranks in the chain, at least 1.
        payload_bytes: The vector.
        bandwidth_bytes_per_s: Per rank and direction.
        latency_s: Per hop.
    """
    count = np.asarray(ranks, dtype=np.float64)
    moved = np.where(count > 1, 1.0, 0.0) * payload_bytes
    return np.asarray(moved / bandwidth_bytes_per_s + (count - 1) * latency_s, dtype=np.float64)


def point_to_point_s(
    *, payload_bytes: Numbers, bandwidth_bytes_per_s: Numbers, latency_s: Numbers
) -> FloatArray:
    """Seconds of one message: S/B + a.

    Args:
        payload_bytes: The message.
        bandwidth_bytes_per_s: Of its sender's way, in its direction.
        latency_s: One way.
    """
    moved = np.asarray(payload_bytes, dtype=np.float64) / bandwidth_bytes_per_s
    return np.asarray(moved + latency_s, dtype=np.float64)


def in_network_all_reduce_s(
    *, ranks: Numbers, payload_bytes: Numbers, bandwidth_bytes_per_s: Numbers, latency_s: Numbers
) -> FloatArray:
    """Seconds of an all-reduce inside the switch: (1 + 1/n) S/B + 2 a.

    Every rank's whole vector is read by the switch once (S out), and every rank multicasts its
    reduced n-th part (S/n out), against 2 (n-1)/n S for a ring.

    Args:
        ranks: Ranks on the switch, at least 1.
        payload_bytes: The reduced vector.
        bandwidth_bytes_per_s: Per rank and direction.
        latency_s: To the switch and back.

    References:
        Klenk et al., "An In-Network Architecture for Accelerating Shared-Memory Multiprocessor
        Collectives", ISCA 2020.
    """
    count = np.asarray(ranks, dtype=np.float64)
    several = np.where(count > 1, 1.0, 0.0)
    moved = several * (1 + 1 / count) * payload_bytes
    return np.asarray(moved / bandwidth_bytes_per_s + 2 * several * latency_s, dtype=np.float64)


def quantised_bytes(
    *, elements: Numbers, bits: Numbers, scale_bytes: Numbers, block_elements: Numbers
) -> FloatArray:
    """Bytes of a block-quantised vector with one scale per block.

    Args:
        elements: Numbers in the vector.
        bits: Per quantised number.
        scale_bytes: Per block; 0 for plain formats.
        block_elements: Numbers that share a scale.

    References:
        Wang et al., "ZeRO++", arXiv 2306.10209, section 3.1 (block-based quantisation).
    """
    count = np.asarray(elements, dtype=np.float64)
    return np.asarray(
        count * bits / 8 + np.ceil(count / block_elements) * scale_bytes, dtype=np.float64
    )
