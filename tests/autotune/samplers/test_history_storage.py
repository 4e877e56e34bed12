from __future__ import annotations

from datetime import datetime

import optuna
import pytest
from optuna.trial import TrialState

from autotune.samplers.history_storage import STUDY_NAME, HistoryStorage


def trial(number: int, state: TrialState) -> optuna.trial.FrozenTrial:
    running = state is TrialState.RUNNING
    return optuna.trial.FrozenTrial(
        number=number,
        trial_id=number,
        state=state,
        value=None,
        values=None if running else [1.0, 2.0],
        datetime_start=datetime(2000, 1, 1),
        datetime_complete=None if running else datetime(2000, 1, 1),
        params={},
        distributions={},
        user_attrs={},
        system_attrs={},
        intermediate_values={},
    )


@pytest.fixture
def storage() -> HistoryStorage:
    past = [trial(0, TrialState.COMPLETE), trial(4, TrialState.RUNNING)]
    return HistoryStorage(past, trial(7, TrialState.RUNNING), 2, {"known": 1})


def test_optuna_takes_it_for_a_study(storage: HistoryStorage) -> None:
    study = optuna.load_study(study_name=STUDY_NAME, storage=storage)
    assert [each.number for each in study.trials] == [0, 4, 7]
    assert [d.name for d in study.directions] == ["MINIMIZE", "MINIMIZE"]
    assert study.get_trials(states=[TrialState.COMPLETE])[0].values == [1.0, 2.0]


def test_only_the_scratch_trial_takes_notes(storage: HistoryStorage) -> None:
    storage.set_trial_system_attr(7, "note", 1)
    storage.set_study_system_attr(0, "note", 2)
    assert storage.get_trial(7).system_attrs == {"note": 1}
    assert storage.get_study_system_attrs(0) == {"known": 1, "note": 2}
    with pytest.raises(NotImplementedError):
        storage.set_trial_system_attr(0, "note", 1)


def test_nothing_can_be_added(storage: HistoryStorage) -> None:
    study = optuna.load_study(study_name=STUDY_NAME, storage=storage)
    with pytest.raises(NotImplementedError):
        study.ask()
    with pytest.raises(NotImplementedError):
        study.set_user_attr("a", 1)
