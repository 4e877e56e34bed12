"""The tables of a cluster file: their keys, and what is built from each."""

from __future__ import annotations

from typing import Any

from autotune.errors import InvalidInput, Problem
from objectives.cluster.cluster import Cut, HostLink, Link
from objectives.cluster.distance import FIBRE_S_PER_M, propagation_s
from objectives.reading import Field, by_name, choice, number, quantity, table, text, whole

PRECISIONS = ("bf16", "fp8", "fp4")
"""Precisions that an accelerator may have a peak for."""


def _peaks(data: Any) -> dict[str, float]:
    peaks: dict[str, float] = by_name(quantity("FLOP/s"), name=choice(*PRECISIONS))(data)
    if "bf16" not in peaks:
        raise InvalidInput(
            "table", [Problem(path="bf16", message='is missing; give it, such as "989 TFLOP/s"')]
        )
    return peaks


ACCELERATOR = {
    "memory": Field(convert=quantity("byte"), name="memory_bytes", example='"80 GB"'),
    "memory_bandwidth": Field(
        convert=quantity("byte/s"), name="memory_bandwidth_bytes_per_s", example='"3.35 TB/s"'
    ),
    "peak_flops": Field(
        convert=_peaks, name="peak_flops_per_s", example='{ bf16 = "989 TFLOP/s" }'
    ),
    "tdp": Field(convert=quantity("W"), default=None, name="tdp_w"),
    "price": Field(convert=quantity("USD/s", positive=False), default=None, name="price_usd_per_s"),
}

BUILDING = {
    "name": Field(convert=text, example='"east"'),
    "region": Field(convert=text, default="home"),
    "accelerator": Field(convert=text, example='"H100-SXM"'),
    "gpus": Field(convert=whole(minimum=1), example="8192"),
    "gpus_per_node": Field(convert=whole(minimum=1), example="8"),
    "gpus_per_zone": Field(convert=whole(minimum=1), default=None),
}

_LINK = {
    "bandwidth": Field(
        convert=quantity("byte/s"), name="bandwidth_bytes_per_s", example='"400 Gbit/s"'
    ),
    "latency": Field(convert=quantity("s", positive=False), name="latency_s", example='"4 us"'),
    "oversubscription": Field(convert=number(minimum=1.0), default=1.0),
    "loss": Field(convert=number(minimum=0.0, maximum=0.5), default=0.0),
}

_CUT = {
    "capacity": Field(
        convert=quantity("byte/s"), name="capacity_bytes_per_s", example='"12.8 Tbit/s"'
    ),
    "distance": Field(convert=quantity("m", positive=False), default=None, name="distance_m"),
    "route_factor": Field(convert=number(minimum=1.0), default=None),
    "extra_latency": Field(
        convert=quantity("s", positive=False), default=0.0, name="extra_latency_s"
    ),
    "latency": Field(convert=quantity("s", positive=False), default=None, name="latency_s"),
    "loss": Field(convert=number(minimum=0.0, maximum=0.5), default=0.0),
    "buffer": Field(convert=quantity("byte"), default=None, name="buffer_bytes"),
}

_HOST = {
    "bandwidth": Field(
        convert=quantity("byte/s"), name="bandwidth_bytes_per_s", example='"64 GB/s"'
    ),
    "memory": Field(convert=quantity("byte"), name="memory_bytes", example='"256 GB"'),
    "memory_bandwidth": Field(
        convert=quantity("byte/s"), name="memory_bandwidth_bytes_per_s", example='"75 GB/s"'
    ),
}


def _cut(
    *,
    capacity_bytes_per_s: float,
    distance_m: float | None,
    route_factor: float | None,
    extra_latency_s: float,
    latency_s: float | None,
    loss: float,
    buffer_bytes: float | None,
) -> Cut:
    if (distance_m is None) == (latency_s is None):
        got = "neither" if distance_m is None else "both"
        message = (
            'give either distance, such as "10 km", from which the latency follows, or a measured '
            f"one-way latency; got {got}"
        )
        raise InvalidInput("table", [Problem(path="distance", message=message)])
    if latency_s is None:
        assert distance_m is not None
        latency_s = propagation_s(distance_m, route_factor) + extra_latency_s
    else:
        distance_m = latency_s / FIBRE_S_PER_M
    return Cut(
        capacity_bytes_per_s=capacity_bytes_per_s,
        distance_m=distance_m,
        latency_s=latency_s,
        loss=loss,
        buffer_bytes=buffer_bytes,
    )


LINKS = {
    "node": Field(
        convert=table(_LINK, Link), example='{ bandwidth = "450 GB/s", latency = "1 us" }'
    ),
    "zone": Field(
        convert=table(_LINK, Link), example='{ bandwidth = "400 Gbit/s", latency = "4 us" }'
    ),
    "building": Field(convert=table(_LINK, Link), default=None),
    "between_buildings": Field(convert=table(_CUT, _cut), default=None),
    "between_regions": Field(convert=table(_CUT, _cut), default=None),
    "host": Field(convert=table(_HOST, HostLink), default=None),
}
