"""Errors carry everything that is wrong and survive the way back from a worker."""

from __future__ import annotations

import pickle

import pytest

from autotune import AutotuneError, InvalidInput, Problem, StorageRefused, UnknownName


def test_one_problem_is_one_line() -> None:
    error = InvalidInput("cluster.toml", "must be a table, got 3")
    assert str(error) == "cluster.toml: must be a table, got 3"
    assert error.problems == (Problem(path="", message="must be a table, got 3"),)


def test_all_problems_are_listed_with_their_paths() -> None:
    problems = [Problem(path="link.node", message="is missing"), Problem(path="", message="is old")]
    error = InvalidInput("cluster.toml", problems)
    assert str(error).splitlines() == [
        "cluster.toml: 2 problems",
        "  - link.node: is missing",
        "  - is old",
    ]


def test_unknown_name_lists_what_exists() -> None:
    error = UnknownName("study", "llama", ["b", "a"])
    assert str(error) == "no study is named 'llama'; known: a, b"
    assert "none is installed" in str(UnknownName("exporter", "x", []))


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("spec", [Problem(path="a", message="b"), Problem(path="c", message="d")]),
        UnknownName("study", "x", ["y"]),
        StorageRefused("not a database"),
    ],
)
def test_survives_pickling(error: AutotuneError) -> None:
    """Worker processes send their errors back this way."""
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


def test_can_be_caught_by_builtin_kind() -> None:
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(UnknownName, LookupError)
