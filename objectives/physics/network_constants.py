"""The constants of the network model, read from the table beside this file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConstants:
    """Each constant's source, or that it is an assumption, stands in `network_constants.toml`.

    Attributes:
        node_link_efficiency: Of the nominal rate inside a node that rings reach.
        switch_reduction_efficiency: The same where the switch reduces.
        switch_reduction_steps: Steps of a ring that last as long as one through the switch.
        network_link_efficiency: Of a network card's nominal rate that collectives reach.
        step_overhead_s: Software and protocol per step of a collective, beside the wire.
        node_ramp_s: Until a collective inside a node runs at its full rate.
        network_ramp_s: The same between nodes.
        collective_channels: Parts of a vector that run the same ring side by side.
        packet_bytes: Payload of a RoCE packet.
        tcp_segment_bytes: Payload of a TCP segment.
        tcp_mathis_factor: C of the Mathis bound.
        tcp_stream_limit_bytes_per_s: What one core drives through one stream.
        erasure_data_packets: k of the erasure code.
        erasure_parity_packets: m of the erasure code.
        port_bytes_per_s: Rate of each of the parallel links that make up a cut.
        flowlets_per_flow: Times a flow is hashed anew under flowlet switching.
        spray_efficiency: How evenly spraying fills links, reordering included.
        default_buffer_bytes: Buffer before a cut that does not say.
        control_round_trip_s: From a sender to its own building's border and back.
        pause_utilisation: Of a full link where only pause frames hold senders back.
        distance_aware_utilisation: Of a full link that distance-aware control aims at.
        quantisation_block_elements: Elements that share one scale.
        quantisation_scale_bytes: Per scale.
    """

    node_link_efficiency: float
    switch_reduction_efficiency: float
    switch_reduction_steps: float
    network_link_efficiency: float
    step_overhead_s: float
    node_ramp_s: float
    network_ramp_s: float
    collective_channels: float
    packet_bytes: float
    tcp_segment_bytes: float
    tcp_mathis_factor: float
    tcp_stream_limit_bytes_per_s: float
    erasure_data_packets: float
    erasure_parity_packets: float
    port_bytes_per_s: float
    flowlets_per_flow: float
    spray_efficiency: float
    default_buffer_bytes: float
    control_round_trip_s: float
    pause_utilisation: float
    distance_aware_utilisation: float
    quantisation_block_elements: float
    quantisation_scale_bytes: float


@cache
def network_constants() -> NetworkConstants:
    """The shipped table."""
    text = Path(__file__).with_name("network_constants.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return NetworkConstants(
        **{field.name: float(table[field.name]["value"]) for field in fields(NetworkConstants)}
    )
