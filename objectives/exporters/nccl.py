"""The network side of a config: NCCL v2.28.9-1 variables, and what else the network must do.

NCCL has one set of variables for all of its connections, so that what is meant for the long
link also holds inside the buildings; there it does no harm. What no variable sets is written as
a comment that says where it is to be had: on the NICs, on the switches, or in a communication
library that does more than NCCL's own algorithms.

References:
    NCCL v2.28.9-1: ``src/transport/net_ib.cc`` (queue pairs), ``src/init.cc`` (buffers),
    ``src/graph/tuning.cc`` (``NCCL_ALGO``).
"""

from __future__ import annotations

from collections.abc import Mapping

from autotune import Config, DesignPoint
from objectives.exporters.job import DEFAULTS, Job, make_job
from objectives.exporters.nearest import with_nearest
from objectives.exporters.options import OptionList, Options, option_list
from objectives.exporters.placement import crosses_buildings
from objectives.exporters.rules import Rule, elsewhere, expressed, only

_MAX_QUEUE_PAIRS = 128
_INT_MAX = 2**31 - 1

_HARDWARE = {
    ("transport", "roce_go_back_n"): "NIC: RoCE v2 with go-back-N retransmission",
    ("transport", "roce_selective_repeat"): "NIC: RoCE v2 with selective repeat",
    ("transport", "erasure_coded"): "NIC or gateway: erasure coding on the long link",
    ("load_balancing", "ecmp"): "switches: ECMP hashing of the five-tuple",
    ("load_balancing", "e_ecmp"): "switches: ECMP hashing that includes the queue pair",
    ("load_balancing", "flowlet"): "switches: flowlet or adaptive routing",
    ("load_balancing", "spray"): "switches: per-packet spraying; NIC: out-of-order delivery",
    ("congestion_control", "none"): "NIC: DCQCN off; switches: PFC with headroom for the distance",
    ("congestion_control", "dcqcn"): "NIC: DCQCN on; switches: ECN marking",
    ("congestion_control", "receiver_driven"): "NIC or library: receiver-driven admission",
    ("congestion_control", "near_source"): "switches: congestion signals from the near side",
    ("congestion_control", "distance_aware"): "NIC and switches: distance-aware control",
}


def version() -> OptionList:
    """The version of NCCL that is written for."""
    return option_list("nccl-v2.28.9-1")


@with_nearest
def export(design_point: DesignPoint, config: Config) -> Mapping[str, str]:
    """Write the network knobs of a config.

    Args:
        design_point: The model, cluster and workload.
        config: Any knobs of `DEFAULTS`; the trainer's are left to its own exporter.

    Returns:
        ``nccl.env``: ``NAME=value`` lines, which a shell sources and ``NCCL_CONF_FILE`` reads.

    Raises:
        Inexpressible: Naming every knob whose value NCCL cannot express.
        InvalidInput: If the config does not fit the design point.
    """
    job = make_job(version().title, design_point, config)
    variables = expressed(RULES, job)
    version().check(variables)
    lines = [
        f"# For {job.program} (commit {version().commit[:12]}), {design_point.name}.",
        *(f"# To be set on the {text}" for text in _hardware(job)),
        *(f"# To be had from a communication library beyond NCCL: {text}" for text in _beyond(job)),
        *(f"{name}={value}" for name, value in variables.items()),
    ]
    return {"nccl.env": "\n".join(lines) + "\n"}


def _hardware(job: Job) -> list[str]:
    return [
        f"{_HARDWARE[knob, value]} ({knob} = {value})"
        for knob, value in job.network.items()
        if (knob, value) in _HARDWARE
    ]


def _beyond(job: Job) -> list[str]:
    needs = []
    if _needs_hierarchy(job):
        needs.append(
            "reduce-scatter and all-gather in two levels, since one group of shards spans the "
            "buildings and NCCL runs one ring through it (collective_algorithm = hierarchical; "
            "data_parallel_replicate_degree = number of buildings does it with groups instead)"
        )
    chunks = job.config["cross_site_chunks"] or 1
    if chunks > 1:
        needs.append(
            f"transfers between buildings in {chunks} chunks, so that the levels of a collective "
            f"overlap (cross_site_chunks = {chunks})"
        )
    return needs


def _needs_hierarchy(job: Job) -> bool:
    """Where shards stay inside a building, the trainer's groups are the hierarchy."""
    hierarchical = job.config["collective_algorithm"] == "hierarchical"
    return hierarchical and crosses_buildings(job, ("cp", "shard"))


def _transport(job: Job, knob: str) -> Options:
    if job.config[knob] == "tcp":
        raise job.refusal(
            knob,
            "NCCL_NET=Socket would take every connection off RDMA, also inside the buildings",
            expressible=_settings(knob),
        )
    return {**_hardware_setting(job, knob), "NCCL_NET": "IB"}


def _hardware_setting(job: Job, knob: str) -> Options:
    """Checked here, written by `_hardware`."""
    return only(*_settings(knob), because="no NIC or switch setting is known for it")(job, knob)


def _settings(knob: str) -> tuple[str, ...]:
    return tuple(value for name, value in _HARDWARE if name == knob)


def _load_balancing(job: Job, knob: str) -> Options:
    """Adaptive routing lets NCCL's messages arrive out of order."""
    adaptive = job.config[knob] in ("flowlet", "spray")
    return {**_hardware_setting(job, knob), "NCCL_IB_ADAPTIVE_ROUTING": int(adaptive)}


def _connections(job: Job, knob: str) -> Options:
    pairs = int(job.config[knob])
    if pairs > _MAX_QUEUE_PAIRS:
        raise job.refusal(knob, f"a connection has at most {_MAX_QUEUE_PAIRS} queue pairs")
    return {
        "NCCL_IB_QPS_PER_CONNECTION": pairs,
        # Without it a message takes one queue pair, and the others stand idle.
        "NCCL_IB_SPLIT_DATA_ON_QPS": int(pairs > 1),
    }


def _bytes_in_flight(job: Job, knob: str) -> Options:
    """NCCL keeps at most one channel's buffer in flight, which its queue pairs share."""
    connections = int(job.config["connections_per_pair"] or 1)
    buffer = int(job.config[knob]) * connections
    if buffer > _INT_MAX:
        raise job.refusal(
            knob,
            f"NCCL_BUFFSIZE holds for all connections of a pair together and is at most "
            f"{_INT_MAX} bytes, and they need {buffer}",
            given=("connections_per_pair",),
        )
    return {"NCCL_BUFFSIZE": buffer}


def _algorithm(job: Job, knob: str) -> Options:
    """NCCL chooses among the algorithms listed, for the collectives that have them."""
    switched = bool(job.config["in_network_reduction"])
    match job.config[knob]:
        case "ring" | "hierarchical":  # a ring on each level; see `_beyond`
            return {"NCCL_ALGO": "Ring,NVLS" if switched else "Ring"}
        case "tree":
            return {"NCCL_ALGO": "allreduce:Tree,NVLSTree,NVLS" if switched else "allreduce:Tree"}
    raise job.refusal(
        knob, "it has no such algorithm", expressible=("ring", "tree", "hierarchical")
    )


def _in_network(job: Job, knob: str) -> Options:
    """Reduction inside the NVLink switch."""
    return {"NCCL_NVLS_ENABLE": int(bool(job.config[knob]))}


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(DEFAULTS, elsewhere),
    "transport": _transport,
    "connections_per_pair": _connections,
    "load_balancing": _load_balancing,
    "congestion_control": _hardware_setting,
    "bytes_in_flight": _bytes_in_flight,
    "collective_algorithm": _algorithm,
    "in_network_reduction": _in_network,
    # A comment, by `_beyond`.
    "cross_site_chunks": elsewhere,
}
"""How each knob is expressed."""
