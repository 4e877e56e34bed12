"""What a flow gets of a cut between buildings: rate and extra delay, by the network knobs.

One rate per crossing GPU comes out of: its network card, its share of the cut after uneven load
balancing and imperfect congestion control, the window of its connections, and what loss and
recovery leave of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from objectives.physics import congestion, transport
from objectives.physics.arrays import FloatArray, IntArray, Numbers
from objectives.physics.load_balancing import hash_efficiency
from objectives.physics.network_constants import NetworkConstants


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLink:
    """A cut that all flows out of one building (or region) share.

    Attributes:
        capacity_bytes_per_s: Out of one building, per direction; a number or shape (n,).
        latency_s: One way.
        loss: Probability that a packet is lost.
        buffer_bytes: In the switch before the cut.
        gpus: In the building, all of which may send.
    """

    capacity_bytes_per_s: Numbers
    latency_s: Numbers
    loss: Numbers
    buffer_bytes: Numbers
    gpus: int

    @property
    def round_trip_s(self) -> FloatArray:
        """Twice the latency."""
        return np.asarray(2 * np.asarray(self.latency_s, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLinkKnobs:
    """How n configs use the cut; names as in the knobs.

    Attributes:
        transport: Text, shape (n,).
        load_balancing: Text, shape (n,).
        congestion_control: Text, shape (n,).
        connections: Per pair of GPUs, shape (n,).
        bytes_in_flight: Per connection, shape (n,).
    """

    transport: NDArray[Any]
    load_balancing: NDArray[Any]
    congestion_control: NDArray[Any]
    connections: IntArray
    bytes_in_flight: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What each crossing GPU gets.

    Attributes:
        rate_bytes_per_s: Of data that counts, per GPU and direction, shape (n,).
        delay_s: Extra per transfer, beside the latency, shape (n,).
    """

    rate_bytes_per_s: FloatArray
    delay_s: FloatArray


def parse_long_link_knobs(columns: Mapping[str, NDArray[Any]]) -> LongLinkKnobs:
    """Read the network knobs of n configs.

    Args:
        columns: Arrays of shape (n,) by knob.
    """
    return LongLinkKnobs(
        transport=np.asarray(columns["transport"]),
        load_balancing=np.asarray(columns["load_balancing"]),
        congestion_control=np.asarray(columns["congestion_control"]),
        connections=np.asarray(columns["connections_per_pair"]).astype(np.int64),
        bytes_in_flight=np.asarray(columns["bytes_in_flight"]).astype(np.float64),
    )


def share(
    link: LongLink,
    knobs: LongLinkKnobs,
    constants: NetworkConstants,
    *,
    senders: FloatArray,
    message_bytes: Numbers,
    card_bytes_per_s: Numbers,
) -> Share:
    """Rate and extra delay of each crossing GPU when so many of a building send at once.

    Args:
        link: The cut.
        knobs: How the configs use it.
        constants: Of the network model.
        senders: GPUs of one building that send over the cut at the same time, shape (n,).
        message_bytes: What each of them sends before it waits for the others.
        card_bytes_per_s: What one GPU's network card gives.
    """
    senders = np.maximum(senders, 1.0)
    capacity = np.asarray(link.capacity_bytes_per_s, dtype=np.float64)
    # Of a cut that is not full, control takes nothing: the cards are then the smaller bound.
    usable = capacity * balance(knobs, constants, senders=senders, capacity=capacity)
    usable = usable * utilisation(link, knobs, constants)
    wire = np.minimum(card_bytes_per_s, usable / senders)
    per_connection = np.minimum(wire / knobs.connections, _connection_limit(link, knobs, constants))
    efficiency = recovery_efficiency(link, knobs, constants, rate_bytes_per_s=per_connection)
    rate = per_connection * knobs.connections
    in_flight = np.minimum(rate * link.round_trip_s, message_bytes)
    return Share(
        rate_bytes_per_s=rate * efficiency,
        delay_s=_delay(
            link,
            knobs,
            constants,
            last_bytes=senders * in_flight,
            all_bytes=senders * message_bytes,
        ),
    )


def in_flight_memory_bytes(knobs: LongLinkKnobs) -> FloatArray:
    """Device memory of a GPU that crosses a cut: what each connection may have on the way.

    Sent bytes are kept until they are acknowledged, and as many must be received, so every
    connection has two buffers; larger windows are paid for here.

    Args:
        knobs: Of n configs.

    References:
        NCCL 2.27 documentation, NCCL_BUFFSIZE: one buffer per channel and pair of GPUs.
    """
    return np.asarray(2.0 * knobs.connections * knobs.bytes_in_flight, dtype=np.float64)


def balance(
    knobs: LongLinkKnobs,
    constants: NetworkConstants,
    *,
    senders: FloatArray,
    capacity: FloatArray,
) -> FloatArray:
    """Share of the cut's ports that load balancing fills.

    Plain ECMP hashes all connections of a pair of GPUs to one port; E-ECMP hashes each; flowlet
    switching hashes each pair anew a few times; spraying is nearly even.

    Args:
        knobs: Of n configs.
        constants: Of the network model.
        senders: GPUs that send at once, shape (n,).
        capacity: Of the cut.
    """
    choice = knobs.load_balancing
    per_sender = np.select(
        [choice == "e_ecmp", choice == "flowlet"],
        [knobs.connections.astype(np.float64), constants.flowlets_per_flow],
        default=1.0,
    )
    hashed = hash_efficiency(senders * per_sender, capacity / constants.port_bytes_per_s)
    return np.where(choice == "spray", constants.spray_efficiency, hashed)


def utilisation(link: LongLink, knobs: LongLinkKnobs, constants: NetworkConstants) -> FloatArray:
    """Share of a full cut that congestion control keeps busy.

    DCQCN reacts after an end-to-end round trip and near-source signalling after one inside the
    building, both by cutting rates; receivers admit exactly what fits; distance-aware control
    aims a little below the rate; without any, pause frames also hold up other flows.

    Args:
        link: The cut.
        knobs: Of n configs.
        constants: Of the network model.

    References:
        Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015 (DCQCN).
        Saeed et al., "Annulus", SIGCOMM 2020 (near-source signals).
        Gangidi et al., "RDMA over Ethernet for Distributed AI Training at Meta Scale", SIGCOMM
        2024, section 6 (receiver-driven admission).
    """
    capacity = np.asarray(link.capacity_bytes_per_s, dtype=np.float64)
    choice = knobs.congestion_control
    end_to_end = congestion.sawtooth_utilisation(
        buffer_bytes=link.buffer_bytes, bandwidth_delay_bytes=capacity * link.round_trip_s
    )
    near = congestion.sawtooth_utilisation(
        buffer_bytes=link.buffer_bytes,
        bandwidth_delay_bytes=capacity * constants.control_round_trip_s,
    )
    return np.select(
        [
            choice == "none",
            choice == "dcqcn",
            choice == "near_source",
            choice == "distance_aware",
        ],
        [
            constants.pause_utilisation,
            end_to_end,
            near,
            constants.distance_aware_utilisation,
        ],
        default=1.0,
    )


def recovery_efficiency(
    link: LongLink,
    knobs: LongLinkKnobs,
    constants: NetworkConstants,
    *,
    rate_bytes_per_s: FloatArray,
) -> FloatArray:
    """Share of sent bytes that count after loss and recovery.

    Args:
        link: The cut.
        knobs: Of n configs.
        constants: Of the network model.
        rate_bytes_per_s: What one connection sends, shape (n,).
    """
    packets = transport.packets_in_flight(
        rate_bytes_per_s=rate_bytes_per_s,
        round_trip_s=link.round_trip_s,
        packet_bytes=constants.packet_bytes,
    )
    coded = transport.erasure_coding_efficiency(
        data_packets=constants.erasure_data_packets,
        parity_packets=constants.erasure_parity_packets,
    )
    return np.select(
        [knobs.transport == "roce_go_back_n", knobs.transport == "erasure_coded"],
        [transport.go_back_n_efficiency(loss=link.loss, packets=packets), coded],
        default=transport.selective_repeat_efficiency(loss=link.loss),
    )


def _connection_limit(
    link: LongLink, knobs: LongLinkKnobs, constants: NetworkConstants
) -> FloatArray:
    """The most one connection sends, whatever its share."""
    window = transport.window_rate_bytes_per_s(
        window_bytes=knobs.bytes_in_flight, round_trip_s=link.round_trip_s
    )
    mathis = transport.mathis_rate_bytes_per_s(
        segment_bytes=constants.tcp_segment_bytes,
        round_trip_s=link.round_trip_s,
        loss=link.loss,
        factor=constants.tcp_mathis_factor,
    )
    tcp = np.minimum(mathis, constants.tcp_stream_limit_bytes_per_s)
    return np.where(knobs.transport == "tcp", np.minimum(window, tcp), window)


def _delay(
    link: LongLink,
    knobs: LongLinkKnobs,
    constants: NetworkConstants,
    *,
    last_bytes: FloatArray,
    all_bytes: FloatArray,
) -> FloatArray:
    """Round trips that a transfer waits: for admission, and for what is lost.

    Losses before the last round trip are repeated while the rest is still being sent; one among
    the last bytes of any sender makes all wait. A receiver notices a block that its code cannot
    restore only at the end, so any of them costs a round trip.
    """
    round_trip = link.round_trip_s
    admission = np.where(knobs.congestion_control == "receiver_driven", round_trip / 2, 0.0)
    packets_per_block = constants.erasure_data_packets + constants.erasure_parity_packets
    broken = transport.erasure_coding_failure(
        loss=link.loss,
        data_packets=constants.erasure_data_packets,
        parity_packets=constants.erasure_parity_packets,
    )
    blocks = all_bytes / constants.packet_bytes / packets_per_block
    repeats = np.where(
        knobs.transport == "erasure_coded",
        transport.any_lost(loss=broken, packets=blocks),
        transport.any_lost(loss=link.loss, packets=last_bytes / constants.packet_bytes),
    )
    return np.asarray(admission + repeats * round_trip, dtype=np.float64)
