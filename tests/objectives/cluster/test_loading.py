from __future__ import annotations

import contextlib
import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune import InvalidInput, UnknownName
from objectives.cluster import (
    accelerator_presets,
    cluster_presets,
    load_cluster,
    parse_cluster,
    read_cluster,
)

TWO_BUILDINGS = """
[accelerator.mine]
memory = "24 GB"
memory_bandwidth = "1 TB/s"
peak_flops = { bf16 = "100 TFLOP/s" }

[[building]]
name = "east"
accelerator = "mine"
gpus = 8
gpus_per_node = 4

[[building]]
name = "west"
accelerator = "H100-SXM"
gpus = 16
gpus_per_node = 8
gpus_per_zone = 8

[link.node]
bandwidth = "300 GB/s"
latency = "1 us"

[link.zone]
bandwidth = "200 Gbit/s"
latency = "4 us"

[link.building]
bandwidth = "200 Gbit/s"
latency = "6 us"
oversubscription = 2

[link.between_buildings]
capacity = "1.6 Tbit/s"
distance = "10 km"
"""


@pytest.fixture
def tables() -> dict[str, Any]:
    return tomllib.loads(TWO_BUILDINGS)


def problems(tables: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        parse_cluster(tables)
    found: dict[str, str] = {}
    for problem in caught.value.problems:
        found[problem.path] = f"{found.get(problem.path, '')}{problem.message}\n"
    return found


def test_the_presets() -> None:
    assert cluster_presets() == [
        "mixed-48",
        "one-building-16k-h100",
        "two-buildings-16k-h100",
        "two-buildings-2k-h800",
    ]
    for preset in cluster_presets():
        assert load_cluster(preset).name == preset


def test_the_flagship_cluster() -> None:
    cluster = load_cluster("two-buildings-16k-h100")
    assert cluster.gpus == 16384
    assert [building.gpus for building in cluster.buildings] == [8192, 8192]
    assert cluster.regions == ("home",)
    assert {building.gpus_per_zone for building in cluster.buildings} == {2048}
    assert cluster.node.bandwidth_bytes_per_s == 450e9
    assert cluster.zone.bandwidth_bytes_per_s == 50e9
    assert cluster.building.oversubscription == 7
    cut = cluster.between_buildings
    assert cut is not None
    assert cut.capacity_bytes_per_s == 1.6e12
    assert cut.distance_m == 10e3
    assert cut.latency_s == pytest.approx(48.97e-6 + 5e-6)


def test_one_building_has_the_same_machines_and_no_cut() -> None:
    one, two = load_cluster("one-building-16k-h100"), load_cluster("two-buildings-16k-h100")
    assert one.gpus == two.gpus
    assert (one.node, one.zone, one.building, one.host) == (
        two.node,
        two.zone,
        two.building,
        two.host,
    )
    assert one.between_buildings is None


def test_four_gpus_a_node_and_two_gpu_types() -> None:
    cluster = load_cluster("mixed-48")
    lab, annex = cluster.buildings
    assert {lab.gpus_per_node, annex.gpus_per_node} == {4}
    assert (lab.accelerator.name, annex.accelerator.name) == ("H100-SXM", "workshop")
    assert annex.accelerator.tdp_w == 300
    assert annex.accelerator.memory_bytes == 80 * 2**30
    assert annex.accelerator.price_usd_per_s == pytest.approx(1.2 / 3600)
    assert annex.gpus_per_zone == annex.gpus
    assert cluster.regions == ("north", "south")
    assert cluster.between_buildings is None
    assert cluster.between_regions is not None
    assert cluster.between_regions.latency_s == pytest.approx(350 * 4.897e-6 * 1.15)
    assert cluster.between_regions.loss == pytest.approx(1e-4)


def test_accelerator_presets_have_their_published_figures() -> None:
    presets = accelerator_presets()
    assert list(presets) == ["A100-40", "A100-80", "H100-SXM", "H800-SXM", "H200", "B200", "GB200"]
    assert presets["H100-SXM"]["peak_flops"] == {"bf16": "989 TFLOP/s", "fp8": "1979 TFLOP/s"}
    assert "fp8" not in presets["A100-80"]["peak_flops"]
    assert presets["B200"]["peak_flops"]["fp4"] == "9 PFLOP/s"
    for name, figures in presets.items():
        tables = tomllib.loads(TWO_BUILDINGS)
        tables["building"][1]["accelerator"] = name
        accelerator = parse_cluster(tables).buildings[1].accelerator
        assert accelerator.name == name
        assert accelerator.tdp_w == float(figures["tdp"].removesuffix(" W"))
        assert 39e9 < accelerator.memory_bytes < 200e9
        assert 1.5e12 < accelerator.memory_bandwidth_bytes_per_s < 9e12


def test_what_a_file_leaves_out(tables: dict[str, Any]) -> None:
    cluster = parse_cluster(tables)
    assert cluster.name == "east+west"
    assert cluster.host is None
    assert cluster.node.oversubscription == 1
    assert cluster.buildings[0].gpus_per_zone == 8
    del tables["link"]["building"]
    tables["building"][1]["gpus_per_zone"] = 16
    assert parse_cluster(tables).building == cluster.zone


def test_reading_changes_nothing(tables: dict[str, Any]) -> None:
    before = copy.deepcopy(tables)
    parse_cluster(tables)
    assert tables == before


def test_a_file_goes_before_a_preset(tables: dict[str, Any]) -> None:
    tables["accelerator"]["H100-SXM"] = {"preset": "H100-SXM", "memory": "96 GB"}
    accelerator = parse_cluster(tables).buildings[1].accelerator
    assert accelerator.memory_bytes == 96e9
    assert accelerator.peak_flops_per_s["bf16"] == 989e12


def test_all_problems_of_a_file_are_reported_at_once(tables: dict[str, Any]) -> None:
    tables["accelerator"]["mine"]["memory"] = 24
    tables["accelerator"]["mine"]["peak_flops"] = {"fp8": "1 PFLOP/s", "int8": "2 PFLOP/s"}
    tables["accelerator"]["other"] = {"preset": "H300"}
    tables["building"][0] |= {"gpus": 6, "accelerator": "H100"}
    tables["building"][1] |= {"gpus_per_zone": 12, "rack": 3}
    tables["link"]["node"]["bandwith"] = tables["link"]["node"].pop("bandwidth")
    tables["link"]["zone"]["latency"] = "4 uS"
    tables["link"]["building"]["oversubscription"] = 0.5
    tables["link"]["between_buildings"] |= {"capacity": 12.8, "loss": 2}
    tables["host"] = {}
    found = problems(tables)
    assert set(found) == {
        "accelerator.mine.memory",
        "accelerator.mine.peak_flops.bf16",
        "accelerator.mine.peak_flops.int8",
        "accelerator.other.preset",
        "building[0].gpus",
        "building[0].accelerator",
        "building[1].gpus",
        "building[1].gpus_per_zone",
        "building[1].rack",
        "link.node.bandwidth",
        "link.node.bandwith",
        "link.zone.latency",
        "link.building.oversubscription",
        "link.between_buildings.capacity",
        "link.between_buildings.loss",
        "host",
    }
    assert "bare number 24" in found["accelerator.mine.memory"]
    assert 'did you mean "H100-SXM"?' in found["building[0].accelerator"]
    assert "multiple of gpus_per_node = 4, got 6" in found["building[0].gpus"]
    assert 'did you mean "bandwidth"?' in found["link.node.bandwith"]
    assert 'such as "450 GB/s"' not in found["link.between_buildings.capacity"]
    assert 'write "4 us"' in found["link.zone.latency"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gpus": 12}, "multiple of gpus_per_node = 8, got 12"),
        ({"gpus_per_zone": 12}, "multiple of gpus_per_node = 8, got 12"),
        ({"gpus": 24, "gpus_per_zone": 16}, "multiple of gpus_per_zone = 16, got 24"),
        ({"gpus": 16.0}, "whole number of at least 1, got 16.0"),
        ({"gpus": "16"}, "whole number of at least 1, got '16'"),
        ({"gpus_per_node": 0}, "whole number of at least 1, got 0"),
        ({"name": "east"}, "must be unique, got 'east' again"),
        ({"name": ""}, "must be text, got ''"),
        ({"accelerator": 5}, "must be text, got 5"),
    ],
)
def test_a_building_that_does_not_fit(
    tables: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    tables["building"][1] |= changes
    found = problems(tables)
    assert any(path.startswith("building[1].") and message in found[path] for path in found), found


def test_links_that_the_buildings_need(tables: dict[str, Any]) -> None:
    tables["building"].append({**tables["building"][0], "name": "south", "region": "far"})
    tables["link"] = {"node": tables["link"]["node"]}
    found = problems(tables)
    assert set(found) == {
        "link.zone",
        "link.building",
        "link.between_buildings",
        "link.between_regions",
    }
    assert "several zones" in found["link.building"]
    assert "several buildings" in found["link.between_buildings"]
    assert "2 regions" in found["link.between_regions"]


@pytest.mark.parametrize(
    ("cut", "latency_s", "distance_m"),
    [
        ({"distance": "10 km"}, 48.97e-6, 10e3),
        ({"distance": "100 km"}, 489.7e-6, 100e3),
        ({"distance": "1000 km"}, 1.15 * 4897e-6, 1000e3),
        ({"distance": "1000 km", "route_factor": 1.4}, 1.4 * 4897e-6, 1000e3),
        ({"distance": "0 km", "extra_latency": "3 us"}, 3e-6, 0.0),
        ({"latency": "4.897 ms"}, 4.897e-3, 1000e3),
    ],
)
def test_latency_follows_from_distance(
    tables: dict[str, Any], cut: dict[str, Any], latency_s: float, distance_m: float
) -> None:
    tables["link"]["between_buildings"] = {"capacity": "1 Tbit/s", **cut}
    found = parse_cluster(tables).between_buildings
    assert found is not None
    assert found.latency_s == pytest.approx(latency_s)
    assert found.distance_m == pytest.approx(distance_m)


@pytest.mark.parametrize("cut", [{}, {"distance": "1 km", "latency": "5 us"}])
def test_a_cut_has_a_distance_or_a_latency(tables: dict[str, Any], cut: dict[str, Any]) -> None:
    tables["link"]["between_buildings"] = {"capacity": "1 Tbit/s", **cut}
    assert "either distance" in problems(tables)["link.between_buildings.distance"]


@pytest.mark.parametrize(
    "tables_", [None, 3, [], {"building": 3}, {"building": []}, {"building": [3], "link": []}, {}]
)
def test_what_is_no_cluster_is_explained(tables_: Any) -> None:
    with pytest.raises(InvalidInput, match=r"must be a table|is missing"):
        parse_cluster(tables_)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TWO_BUILDINGS)
    assert load_cluster(path).gpus == 24
    assert read_cluster(path)["building"][0]["gpus"] == 8
    path.write_text("[link")
    with pytest.raises(InvalidInput, match=r"mine\.toml: must be TOML"):
        load_cluster(path)
    with pytest.raises(
        UnknownName, match="no cluster preset or file is named 'mine'; known: mixed"
    ):
        load_cluster("mine")
    with pytest.raises(InvalidInput, match="is missing"):
        load_cluster(tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match="is missing"):
        load_cluster(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.data())
def test_junk_anywhere_is_explained_never_raised(data: st.DataObject) -> None:
    tables = tomllib.loads(TWO_BUILDINGS)
    place: Any = tables
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(JSON)
    with contextlib.suppress(InvalidInput):
        parse_cluster(tables)
