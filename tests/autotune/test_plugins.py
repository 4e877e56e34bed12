"""Entry points: what is installed can be listed and loaded; what is not is named."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from autotune import UnknownName, plugins


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()


def offer(monkeypatch: pytest.MonkeyPatch, *values: tuple[str, str]) -> None:
    points = [EntryPoint(name=n, value=v, group="autotune.studies") for n, v in values]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)


def test_our_own_are_installed() -> None:
    assert {"analytical", "command"} <= plugins.installed("autotune.objectives").keys()
    assert {"binh-korn", "llama3-405b-two-buildings"} <= plugins.installed(
        "autotune.studies"
    ).keys()
    assert {"torchtitan", "megatron", "nccl"} <= plugins.installed("autotune.exporters").keys()


@pytest.mark.parametrize("group", ["autotune.objectives", "autotune.studies", "autotune.exporters"])
def test_everything_registered_loads(group: plugins.Group) -> None:
    for name in plugins.installed(group):
        assert callable(plugins.load(group, name))


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownName, match=r"no study is named 'binh'; known: .*binh-korn"):
        plugins.load("autotune.studies", "binh")


@pytest.mark.parametrize("value", ["no_such_module:x", "json:no_such_name"])
def test_what_cannot_be_loaded_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("broken", value))
    with pytest.raises(plugins.BrokenPlugin, match=f"study 'broken' cannot be loaded from {value}"):
        plugins.load("autotune.studies", "broken")


def test_a_second_offer_of_a_name_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    offer(monkeypatch, ("a", "json:dumps"), ("a", "json:loads"))
    with caplog.at_level(logging.WARNING):
        found = plugins.installed("autotune.studies")
    assert found["a"].value == "json:dumps"
    assert "offered twice" in caplog.text


def test_the_same_offer_twice_is_no_conflict(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    offer(monkeypatch, ("a", "json:dumps"), ("a", "json:dumps"))
    assert plugins.load("autotune.studies", "a")({}) == "{}"
    assert not caplog.text
