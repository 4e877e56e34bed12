from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from autotune import doctor, plugins
from autotune.doctor import Verdict


def by_detail(requirements: list[str]) -> dict[str, doctor.Check]:
    checks = list(doctor.check_packages(requirements))
    return {check.detail.split()[0]: check for check in checks}


def test_packages_are_told_apart_by_what_they_are_for() -> None:
    checks = by_detail(
        [
            "numpy>=1",
            "no-such-package-1>=1",
            'no-such-package-2; extra == "gp"',
            'no-such-package-3; extra == "test"',
            "rich>=999",
        ]
    )
    assert checks["numpy"].verdict is Verdict.OK
    assert checks["no-such-package-1"].verdict is Verdict.FAILED
    assert checks["no-such-package-2"].verdict is Verdict.ABSENT
    assert checks["no-such-package-2"].topic == "extra gp"
    assert "[gp]" in checks["no-such-package-2"].remedy
    assert "no-such-package-3" not in checks
    assert checks["rich"].verdict is Verdict.FAILED
    assert "needs >=999" in checks["rich"].detail


def test_a_plugin_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("broken", "no_such_module:thing", "autotune.studies")
    found = {"autotune.studies": {"broken": point}}
    monkeypatch.setattr(plugins, "installed", lambda group: found.get(group, {}))
    (check,) = doctor.check_plugins()
    assert check.topic == "study broken"
    assert check.verdict is Verdict.FAILED
    assert "no_such_module" in check.detail
    assert check.remedy


def test_a_new_storage_is_not_made(tmp_path: Path) -> None:
    check = doctor.check_storage(str(tmp_path / "new.db"))
    assert check.verdict is Verdict.OK
    assert "will be made" in check.detail
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_is_no_storage(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("milk, bread" * 50)
    check = doctor.check_storage(str(path))
    assert check.verdict is Verdict.FAILED
    assert "no SQLite database" in check.detail
    assert path.read_text().startswith("milk")


def test_a_missing_folder_is_no_place_for_a_storage(tmp_path: Path) -> None:
    check = doctor.check_storage(str(tmp_path / "missing" / "x.db"))
    assert check.verdict is Verdict.FAILED
    assert check.remedy


def test_the_server_of_a_storage_is_asked() -> None:
    check = doctor.check_storage("postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
    assert check.verdict is Verdict.FAILED
    assert "secret" not in check.detail


def test_this_machine_is_fit() -> None:
    assert doctor.check_python().verdict is Verdict.OK
    assert "cores" in doctor.check_machine().detail
