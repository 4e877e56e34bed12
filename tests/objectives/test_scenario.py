from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest

from autotune import DesignPoint, InvalidInput, UnknownName
from objectives.scenario import Workload, design_point, scenario

WORKLOAD = {"global_batch_tokens": 2048 * 8192, "sequence_length": 8192}


@pytest.fixture
def flagship() -> DesignPoint:
    return design_point(
        "flagship", model="llama3.1-405b", cluster="two-buildings-16k-h100", workload=WORKLOAD
    )


def edited(point: DesignPoint, path: str, value: Any) -> DesignPoint:
    content = copy.deepcopy(dict(point.content))
    place: Any = content
    *parents, last = path.split(".")
    for key in parents:
        place = place[int(key) if isinstance(place, list) else key]
    place[int(last) if isinstance(place, list) else last] = value
    return DesignPoint(name=point.name, content=content)


def test_a_scenario_comes_back_from_its_design_point(flagship: DesignPoint) -> None:
    found = scenario(flagship)
    assert found.model.num_layers == 126
    assert found.cluster.gpus == 16384
    assert found.workload == Workload(global_batch_tokens=2**24, sequence_length=8192)
    assert found.workload.global_batch_sequences == 2048


def test_the_content_keeps_what_the_files_say(flagship: DesignPoint) -> None:
    content = flagship.content
    assert content["model"]["num_key_value_heads"] == 8
    assert content["cluster"]["link"]["between_buildings"]["capacity"] == "12.8 Tbit/s"
    assert content["cluster"]["accelerator"]["H100-SXM"]["tdp"] == "700 W"
    assert content["workload"] == WORKLOAD


def test_the_content_survives_json(flagship: DesignPoint) -> None:
    again = DesignPoint(name="again", content=json.loads(json.dumps(flagship.content)))
    assert again.fingerprint == flagship.fingerprint
    assert scenario(again) == scenario(flagship)


def test_tables_give_what_presets_give(flagship: DesignPoint) -> None:
    again = design_point(
        "again",
        model=flagship.content["model"],
        cluster=flagship.content["cluster"],
        workload=Workload(**WORKLOAD),
    )
    assert again.fingerprint == flagship.fingerprint
    assert again.features == flagship.features


@pytest.mark.parametrize(
    ("path", "value", "read"),
    [
        ("cluster.link.between_buildings.capacity", "25.6 Tbit/s", 3.2e12),
        ("cluster.link.between_buildings.distance", "100 km", 100e3),
        ("cluster.building.0.gpus", 4096, 4096),
        ("cluster.building.0.accelerator", "B200", "B200"),
        ("cluster.accelerator.H100-SXM.memory", "96 GB", 96e9),
        ("workload.sequence_length", 4096, 4096),
        ("model.num_hidden_layers", 64, 64),
    ],
)
def test_an_edited_path_is_read(flagship: DesignPoint, path: str, value: Any, read: Any) -> None:
    point = edited(flagship, path, value)
    found = scenario(point)
    values = {
        "capacity": found.cluster.between_buildings.capacity_bytes_per_s,  # type: ignore[union-attr]
        "distance": found.cluster.between_buildings.distance_m,  # type: ignore[union-attr]
        "gpus": found.cluster.buildings[0].gpus,
        "accelerator": found.cluster.buildings[0].accelerator.name,
        "memory": found.cluster.buildings[1].accelerator.memory_bytes,
        "sequence_length": found.workload.sequence_length,
        "num_hidden_layers": found.model.num_layers,
    }
    assert values[path.rpartition(".")[2]] == pytest.approx(read)
    assert point.fingerprint != flagship.fingerprint


def test_every_problem_of_every_section_is_reported(flagship: DesignPoint) -> None:
    point = edited(flagship, "cluster.link.between_buildings.capacity", 25.6)
    point = edited(point, "model.hidden_size", "wide")
    point = edited(point, "workload.sequence_length", 5000)
    with pytest.raises(InvalidInput, match="design point flagship: 3 problems") as caught:
        scenario(point)
    assert [problem.path for problem in caught.value.problems] == [
        "model.hidden_size",
        "cluster.link.between_buildings.capacity",
        "workload.global_batch_tokens",
    ]
    assert "nearest: 16775000" in str(caught.value)


def test_missing_sections_are_named() -> None:
    with pytest.raises(
        InvalidInput, match=r"model: is missing; the content has workload"
    ) as caught:
        scenario(DesignPoint(name="empty", content={"workload": WORKLOAD}))
    assert [problem.path for problem in caught.value.problems] == ["model", "cluster"]


def test_wrong_presets_and_workloads() -> None:
    with pytest.raises(UnknownName, match="two-buildings-16k-h100"):
        design_point("x", model="llama3-8b", cluster="nowhere", workload=WORKLOAD)
    with pytest.raises(InvalidInput, match="positions; got 16384"):
        design_point(
            "x",
            model="llama3-8b",
            cluster="one-building-16k-h100",
            workload={"global_batch_tokens": 2**24, "sequence_length": 16384},
        )


def test_a_sequence_longer_than_the_window_is_refused(flagship: DesignPoint) -> None:
    mistral = {
        "model_type": "mistral",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
    }
    with pytest.raises(InvalidInput, match="at most 4096, the model's sliding window"):
        design_point("x", model=mistral, cluster="mixed-48", workload=WORKLOAD)
    workload = {"global_batch_tokens": 2**20, "sequence_length": 4096}
    assert design_point("x", model=mistral, cluster="mixed-48", workload=workload).features


def test_features_are_finite_and_follow_the_scenario(flagship: DesignPoint) -> None:
    features = flagship.features
    assert all(math.isfinite(value) for value in features.values())
    assert features["log2_gpus"] == 14
    assert features["log10_distance"] == pytest.approx(4)
    assert features["log10_cut"] == pytest.approx(math.log10(1.6e12))
    assert features["log2_params"] == pytest.approx(math.log2(405.85e9), abs=1e-3)
    one = design_point(
        "one", model="llama3.1-405b", cluster="one-building-16k-h100", workload=WORKLOAD
    )
    assert set(one.features) == set(features)
    assert one.features["log10_distance"] == 0
    assert one.features["log10_cut"] > features["log10_cut"]


def test_more_sections_are_kept(flagship: DesignPoint) -> None:
    point = design_point(
        "x",
        model="llama3-8b",
        cluster="mixed-48",
        workload=WORKLOAD,
        others={"command": {"argv": ["true"]}},
    )
    assert point.content["command"] == {"argv": ["true"]}
    assert scenario(point).cluster.gpus == 48


def test_a_cluster_that_is_no_table_is_explained() -> None:
    with pytest.raises(InvalidInput, match="cluster: must be a table"):
        scenario(DesignPoint(name="x", content={"model": 3, "cluster": [], "workload": 1}))
