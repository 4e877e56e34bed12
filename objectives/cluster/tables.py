"""The tables of a cluster file: their keys, and what is built from each."""

from __future__ import annotations

from typing import Any

from autotune.errors import Problem
from objectives.cluster.cluster import Cut, HostLink, Link
from objectives.cluster.distance import FIBRE_S_PER_M, propagation_s
from objectives.reading import Field, number, quantity, table, text, whole

_PEAKS = {
    "bf16": Field(convert=quantity("FLOP/s"), example='"989 TFLOP/s"'),
    "fp8": Field(convert=quantity("FLOP/s"), default=None),
    "fp4": Field(convert=quantity("FLOP/s"), default=None),
}


def _peaks(**values: float | None) -> dict[str, float]:
    return {precision: peak for precision, peak in values.items() if peak is not None}


ACCELERATOR = {
    "memory": Field(convert=quantity("byte"), name="memory_bytes", example='"80 GB"'),
    "memory_bandwidth": Field(
        convert=quantity("byte/s"), name="memory_bandwidth_bytes_per_s", example='"3.35 TB/s"'
    ),
    "peak_flops": Field(
        convert=table(_PEAKS, _peaks), name="peak_flops_per_s", example='{ bf16 = "989 TFLOP/s" }'
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


def _distance_or_latency(values: dict[str, Any]) -> list[Problem]:
    given = [name for name in ("distance_m", "latency_s") if values[name] is not None]
    if len(given) == 1:
        return []
    message = (
        'give either distance, such as "10 km", from which the latency follows, or a measured '
        f"one-way latency; got {'both' if given else 'neither'}"
    )
    return [Problem(path="distance", message=message)]


def _cut(
    *,
    distance_m: float | None,
    latency_s: float | None,
    route_factor: float | None,
    extra_latency_s: float,
    **figures: Any,
) -> Cut:
    if distance_m is not None:
        latency_s = propagation_s(distance_m, route_factor)
    else:
        assert latency_s is not None, "the table's check wants one of them"
        distance_m = latency_s / FIBRE_S_PER_M
    return Cut(distance_m=distance_m, latency_s=latency_s + extra_latency_s, **figures)


_across = table(_CUT, _cut, check=_distance_or_latency)

LINKS = {
    "node": Field(
        convert=table(_LINK, Link), example='{ bandwidth = "450 GB/s", latency = "1 us" }'
    ),
    "zone": Field(
        convert=table(_LINK, Link), example='{ bandwidth = "400 Gbit/s", latency = "4 us" }'
    ),
    "building": Field(convert=table(_LINK, Link), default=None),
    "between_buildings": Field(convert=_across, default=None),
    "between_regions": Field(convert=_across, default=None),
    "host": Field(convert=table(_HOST, HostLink), default=None),
}
