from typing import Any

import pytest

from autotune import InvalidInput
from objectives.exporters.options import OptionList, fits, option_list

LISTS = ("torchtitan-v0.2.2", "megatron-core_v0.15.3", "nccl-v2.28.9-1")


@pytest.mark.parametrize("name", LISTS)
def test_shipped_lists_name_their_version(name: str) -> None:
    options = option_list(name)
    assert options.version in name
    assert len(options.commit) == 40
    assert len(options.options) > 100


@pytest.mark.parametrize("name", LISTS)
def test_every_type_of_the_shipped_lists_is_understood(name: str) -> None:
    for option_type in option_list(name).options.values():
        assert not fits(object(), option_type)


@pytest.mark.parametrize(
    ("value", "option_type", "expected"),
    [
        (8, "int", True),
        (True, "int", False),
        (8.0, "int", False),
        (8, "float", True),
        ("8", "int", False),
        (True, "bool", True),
        (1, "bool", False),
        (True, "flag", True),
        (False, "flag", False),
        ("always", ["never", "always"], True),
        (1, ["1"], False),
        (["a"], "list[str]", True),
        (["a", 1], "list[str]", False),
        ([["a"], []], "list[list[str]]", True),
        ("a", "list[str]|str", True),
    ],
)
def test_fits(value: Any, option_type: Any, expected: bool) -> None:
    assert fits(value, option_type) is expected


def test_check_names_every_fault() -> None:
    options = OptionList(
        project="someone/trainer",
        version="v1",
        commit="0" * 40,
        options={"a": "int", "b": ["x", "y"]},
        facts={},
    )
    options.check({"a": 1, "b": "x"})
    with pytest.raises(InvalidInput) as caught:
        options.check({"a": 1.5, "b": "z", "c": 0})
    assert [problem.path for problem in caught.value.problems] == ["a", "b", "c"]
    assert "trainer v1" in str(caught.value)
    assert "one of 'x', 'y', got 'z'" in str(caught.value)
