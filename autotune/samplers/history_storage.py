"""A history in memory that Optuna's samplers take for a storage."""

from __future__ import annotations

import copy
from collections.abc import Container, Mapping, Sequence
from typing import Any, NoReturn

from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

STUDY_NAME = "history"

_STUDY_ID = 0


class HistoryStorage(BaseStorage):
    """Finished and running trials that never change, and one that a sampler may write to.

    Optuna offers no way to ask a sampler about a history that is not in a storage. A subclass of
    its public `BaseStorage` is that way; what samplers do not call is refused.

    Args:
        trials: In the order of their numbers; a trial's id is its number.
        scratch: The running trial that is being proposed for.
        n_values: How many values a trial has; all are minimised.
        study_notes: What a sampler noted on the study before.
    """

    def __init__(
        self,
        trials: Sequence[FrozenTrial],
        scratch: FrozenTrial,
        n_values: int,
        study_notes: Mapping[str, Any],
    ) -> None:
        self._trials = [*trials, scratch]
        self._scratch = scratch
        self._directions = [StudyDirection.MINIMIZE] * n_values
        self.study_notes = dict(study_notes)
        self._by_id = {trial._trial_id: trial for trial in self._trials}

    # What samplers read

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """The history, the scratch trial included."""
        found = [trial for trial in self._trials if states is None or trial.state in states]
        return copy.deepcopy(found) if deepcopy else found

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """One trial by its number."""
        return self._by_id[trial_id]

    def get_best_trial(self, study_id: int) -> FrozenTrial:
        """Refused: which trial is best is not a sampler's question here."""
        return self._refuse()

    def get_study_id_from_name(self, study_name: str) -> int:
        """Always the one study."""
        return _STUDY_ID

    def get_study_name_from_id(self, study_id: int) -> str:
        """Always the one study."""
        return STUDY_NAME

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """All values are losses."""
        return self._directions

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """None are kept."""
        return {}

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """What the sampler noted."""
        return self.study_notes

    # What samplers write

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        """Keep a sampler's note for the rest of this proposal."""
        self.study_notes[key] = value

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Keep a sampler's note on the scratch trial."""
        if trial_id != self._scratch._trial_id:
            self._refuse()
        self._scratch.system_attrs[key] = value

    # What only a real storage does

    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> int:
        """Refused."""
        return self._refuse()

    def delete_study(self, study_id: int) -> None:
        """Refused."""
        self._refuse()

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        """Refused."""
        self._refuse()

    def get_all_studies(self) -> list[Any]:
        """Refused."""
        return self._refuse()

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Refused."""
        return self._refuse()

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        """Refused."""
        self._refuse()

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Refused."""
        return self._refuse()

    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        """Refused."""
        self._refuse()

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Refused."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotImplementedError("the history that a sampler sees cannot be changed")
