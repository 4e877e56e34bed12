from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from autotune import InvalidInput, UnknownName
from autotune.cli.targets import installed_studies, part_name, resolve

pytestmark = pytest.mark.usefixtures("folder")


def test_an_installed_study() -> None:
    assert "binh-korn" in installed_studies()
    target = resolve("binh-korn")
    assert target.only().name == "binh-korn"
    assert not target.is_sweep


def test_a_function_a_spec_and_a_sweep_of_a_file() -> None:
    assert resolve("toys.py:study").only().name == "toy-study"
    assert resolve("toys.py:all_fail").only().name == "all-fail"
    sweep = resolve("toys.py:SWEEP")
    assert sweep.is_sweep
    assert [spec.name for spec in sweep.specs] == ["sweep-1", "sweep-2"]
    part = resolve("toys.py:SWEEP/sweep-2")
    assert not part.is_sweep
    assert part.only().name == "sweep-2"


def test_parts_drop_the_name_of_the_sweep() -> None:
    spec = resolve("toys.py:study").only()
    assert part_name(spec, "toy") == "study"
    assert part_name(spec, "toy-study") == "toy-study"
    assert part_name(spec, "other") == "toy-study"


def test_a_file_is_run_once() -> None:
    Path("once.py").write_text(
        textwrap.dedent("""
            import toys
            toys.RUNS = getattr(toys, "RUNS", 0) + 1
            def study():
                from dataclasses import replace
                return replace(toys.study(), name=f"run-{toys.RUNS}")
        """)
    )
    assert resolve("once.py:study").only().name == resolve("once.py:study").only().name


def test_a_file_does_not_stand_in_for_a_module() -> None:
    Path("toys.py").rename("json.py")
    assert resolve("json.py:study").only().name == "toy-study"
    import json

    assert json.loads("1") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nraise RuntimeError('in the file')", "bad.py, line 2: RuntimeError: in the file"),
        ("x = 1\ndef (", "bad.py, line 2: SyntaxError"),
        ("import no_such_module", "bad.py, line 1: ModuleNotFoundError"),
        ("import sys\n\nsys.exit(0)", r"bad.py, line 3: it calls sys.exit\(0\)"),
        ("x = 1\ndef study(n): pass", "function, line 2, must need no argument"),
        ("def study():\n  return 1 / 0", "line 2: ZeroDivisionError"),
        ("def study():\n  exit()", r"line 2: it calls sys.exit\(None\)"),
        ("import json\ndef study():\n  json.loads('')", "line 3: JSONDecodeError"),
    ],
)
def test_an_error_in_a_file_names_its_line(text: str, said: str) -> None:
    Path("bad.py").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        resolve("bad.py:study")
    Path("good.py").write_text("import bad")  # the fault is not in the file that was named
    if "def" not in text:
        with pytest.raises(InvalidInput, match=r"good\.py"):
            resolve("good.py:study")


def test_a_single_study_has_no_parts() -> None:
    with pytest.raises(InvalidInput, match="one study without parts; leave /x out"):
        resolve("toys.py:study/x")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("nothing", UnknownName),
        ("nothing/part", UnknownName),
        ("binh-korn/part", InvalidInput),
        ("toys.py:missing", UnknownName),
        ("toys.py:number", InvalidInput),
        ("toys.py", InvalidInput),
        ("missing.py:study", InvalidInput),
    ],
)
def test_what_names_no_study(text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        resolve(text)


def test_two_studies_of_one_name_are_no_sweep() -> None:
    with Path("toys.py").open("a") as file:
        file.write("\ntwice = [study(), study()]\n")
    with pytest.raises(InvalidInput, match="'toy-study'"):
        resolve("toys.py:twice")
