"""How much of a long link's rate arrives: loss, windows and recovery of each transport.

Rates are per connection. ``p`` is the loss probability of a packet, ``W`` the packets that one
connection has in flight, rate x RTT / packet size.

References:
    Khalilov et al., "SDR-RDMA: Software-Defined Reliability Architecture for Planetary Scale RDMA
    Communication", arXiv 2505.05366 (selective repeat against erasure coding on long links).
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtrc

from objectives.physics.arrays import FloatArray, Numbers


def packets_in_flight(
    *, rate_bytes_per_s: Numbers, round_trip_s: Numbers, packet_bytes: Numbers
) -> FloatArray:
    """Packets of one connection on the way, at least one.

    Args:
        rate_bytes_per_s: What the connection sends, not the link's rate.
        round_trip_s: Until an acknowledgement is back.
        packet_bytes: Payload per packet.
    """
    on_the_way = np.asarray(rate_bytes_per_s, dtype=np.float64) * round_trip_s / packet_bytes
    return np.asarray(np.maximum(on_the_way, 1.0), dtype=np.float64)


def go_back_n_efficiency(*, loss: Numbers, packets: Numbers) -> FloatArray:
    """Share of sent packets that count when a loss repeats all that followed it.

    (1-p) / (1-p + p W).

    Args:
        loss: p, in [0, 1).
        packets: W, in flight per connection.

    References:
        Bertsekas and Gallager, "Data Networks", 2nd ed., section 2.4.1.
    """
    arrives = 1 - np.asarray(loss, dtype=np.float64)
    return np.asarray(arrives / (arrives + loss * np.asarray(packets)), dtype=np.float64)


def selective_repeat_efficiency(*, loss: Numbers) -> FloatArray:
    """Share of sent packets that count when only lost ones are repeated: 1-p.

    Args:
        loss: p, in [0, 1).
    """
    return np.asarray(1 - np.asarray(loss, dtype=np.float64), dtype=np.float64)


def erasure_coding_efficiency(*, data_packets: Numbers, parity_packets: Numbers) -> FloatArray:
    """Share of sent packets that carry data: k / (k+m).

    Args:
        data_packets: k per block.
        parity_packets: m per block.
    """
    data = np.asarray(data_packets, dtype=np.float64)
    return np.asarray(data / (data + parity_packets), dtype=np.float64)


def erasure_coding_failure(
    *, loss: Numbers, data_packets: Numbers, parity_packets: Numbers
) -> FloatArray:
    """Probability that a block loses more than its m parity packets can restore.

    Args:
        loss: p of each packet, independent.
        data_packets: k per block, whole.
        parity_packets: m per block, whole.
    """
    parity = np.asarray(parity_packets, dtype=np.int64)
    total = np.asarray(data_packets, dtype=np.int64) + parity
    return np.asarray(bdtrc(parity, total, loss), dtype=np.float64)


def any_lost(*, loss: Numbers, packets: Numbers) -> FloatArray:
    """Probability that at least one of several packets (or blocks) is lost.

    Args:
        loss: Of each, independent, in [0, 1).
        packets: How many.
    """
    arrives = np.log1p(-np.asarray(loss, dtype=np.float64))
    return np.asarray(-np.expm1(np.asarray(packets) * arrives), dtype=np.float64)


def window_rate_bytes_per_s(*, window_bytes: Numbers, round_trip_s: Numbers) -> FloatArray:
    """The most one connection sends with so many bytes unacknowledged: W / RTT.

    Args:
        window_bytes: Bytes in flight allowed.
        round_trip_s: Until an acknowledgement is back; 0 means no limit.
    """
    rtt = np.asarray(round_trip_s, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.divide(window_bytes, rtt), dtype=np.float64)


def mathis_rate_bytes_per_s(
    *, segment_bytes: Numbers, round_trip_s: Numbers, loss: Numbers, factor: Numbers
) -> FloatArray:
    """The most one TCP connection reaches under random loss: (MSS/RTT) C / sqrt(p).

    Args:
        segment_bytes: MSS.
        round_trip_s: RTT; 0 means no limit.
        loss: p; 0 means no limit.
        factor: C, 1.22 for one acknowledgement per segment, about 0.87 for every second.

    References:
        Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm",
        CCR 27(3), 1997, equation 3 and table 1.
    """
    per_round = np.asarray(round_trip_s, dtype=np.float64) * np.sqrt(loss)
    with np.errstate(divide="ignore"):
        rate = np.divide(np.asarray(segment_bytes, dtype=np.float64) * factor, per_round)
    return np.asarray(rate, dtype=np.float64)
