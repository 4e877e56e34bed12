from typing import Any

import pytest

from autotune import DesignPoint, Unsupported
from objectives.exporters.nccl import export, version

MIB = 2**20


def variables(design_point: DesignPoint, config: dict[str, Any]) -> dict[str, str]:
    text = export(design_point, config)["nccl.env"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_connections_and_bytes_in_flight(llama_8b: DesignPoint, small: dict[str, Any]) -> None:
    changes = {
        "connections_per_pair": 16,
        "bytes_in_flight": 4 * MIB,
        "collective_algorithm": "ring",
        "in_network_reduction": True,
    }
    written = variables(llama_8b, {**small, **changes})
    assert written["NCCL_IB_QPS_PER_CONNECTION"] == "16"
    assert written["NCCL_IB_SPLIT_DATA_ON_QPS"] == "1"
    assert written["NCCL_BUFFSIZE"] == str(64 * MIB)
    assert written["NCCL_ALGO"] == "Ring,NVLS"
    assert written["NCCL_NVLS_ENABLE"] == "1"
    assert set(written) <= set(version().options)


def test_what_the_config_does_not_say_stays_as_it_is(
    llama_8b: DesignPoint, small: dict[str, Any]
) -> None:
    assert variables(llama_8b, small) == {}


def test_hardware_settings_are_comments(llama_8b: DesignPoint, small: dict[str, Any]) -> None:
    changes = {
        "transport": "roce_selective_repeat",
        "load_balancing": "spray",
        "congestion_control": "distance_aware",
    }
    text = export(llama_8b, {**small, **changes})["nccl.env"]
    for knob, value in changes.items():
        assert f"({knob} = {value})\n" in text
    assert "# To be set on the NIC: RoCE v2 with selective repeat" in text
    assert "NCCL_IB_ADAPTIVE_ROUTING=1" in text


def test_what_is_beyond_nccl_is_said(llama_405b: DesignPoint, production: dict[str, Any]) -> None:
    config = {**production, "collective_algorithm": "hierarchical", "cross_site_chunks": 16}
    text = export(llama_405b, config)["nccl.env"]
    assert "communication library beyond NCCL: reduce-scatter and all-gather in two levels" in text
    assert "(cross_site_chunks = 16)" in text
    assert "NCCL_ALGO=Ring" in text


def test_shards_inside_and_replicas_across_are_a_hierarchy(
    llama_405b: DesignPoint, production: dict[str, Any]
) -> None:
    config = {
        **production,
        "collective_algorithm": "hierarchical",
        "data_parallel_shard_degree": 64,
        "data_parallel_replicate_degree": 2,
    }
    assert "beyond NCCL" not in export(llama_405b, config)["nccl.env"]


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("transport", "tcp"),
        ("transport", "pigeon"),
        ("load_balancing", "luck"),
        ("congestion_control", "hope"),
        ("connections_per_pair", 256),
        ("bytes_in_flight", 2**31),
        ("collective_algorithm", "butterfly"),
    ],
)
def test_what_it_cannot_express_is_refused_by_name(
    llama_8b: DesignPoint, small: dict[str, Any], knob: str, value: Any
) -> None:
    with pytest.raises(Unsupported) as caught:
        export(llama_8b, {**small, knob: value})
    assert f"nccl v2.28.9-1 cannot express {knob}={value!r}" in str(caught.value)
