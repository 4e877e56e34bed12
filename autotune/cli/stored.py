"""Studies that a storage holds, found by what a user calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.cli.commands import NothingFound
from autotune.cli.targets import resolve
from autotune.errors import AutotuneError, InvalidInput, UnknownName
from autotune.objective import Objective
from autotune.report.findings import Findings
from autotune.report.sentences import nothing_feasible
from autotune.report.stored import findings_of
from autotune.space import SearchSpace
from autotune.storage import Storage, open_storage
from autotune.storage.reader import read_trials
from autotune.study import StudyRecord, StudySpec, list_studies
from autotune.study.packing import to_trial
from autotune.study.results import in_slot_order
from autotune.trial import Trial

BEST, BASELINE = "best", "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A study as it is in a storage.

    Attributes:
        record: What the storage knows of it.
        findings: What its trials show.
        named: What the user called it.
        storage: Where it is, as shown to people.
    """

    record: StudyRecord
    findings: Findings
    named: str
    storage: str

    def trial(self, text: str) -> Trial:
        """The trial that a user means.

        Args:
            text: A trial's number, ``best``, ``baseline`` or the name of a baseline.

        Raises:
            NothingFound: If nothing is best, or no baseline is measured.
            UnknownName: Lists what can be named.
        """
        found: Trial | None = None
        if text.isdecimal():
            found = next((t for t in self.findings.trials if t.number == int(text)), None)
        elif text == BEST:
            found = self.findings.best
        elif text == BASELINE:
            found = self.findings.baseline
        if found is None:
            found = next((t for t in self.findings.baselines if t.label == text), None)
        if found is None:
            raise self._without(text)
        return found

    def _without(self, text: str) -> AutotuneError:
        """Why a name stands for no trial: there is none so far, or never."""
        what = f"trial of {self.record.name!r}"
        if text == BEST:
            return NothingFound(f"no {what} is best. {nothing_feasible(self.findings)}")
        if text == BASELINE:
            return NothingFound(f"no {what} is a measured baseline")
        numbers = [trial.number for trial in self.findings.trials]
        known = [trial.label for trial in self.findings.baselines]
        known += [BEST] * (self.findings.best is not None)
        known += [BASELINE] * (self.findings.baseline is not None)
        known += [f"the numbers {min(numbers)} to {max(numbers)}"] if numbers else []
        return UnknownName(what, text, known or ["nothing, it has no trial yet"])

    def space(self) -> SearchSpace:
        """The space as stored; its predicates answer from their stored tables."""
        return SearchSpace.from_json(self.record.space)

    def spec(self) -> StudySpec | None:
        """The definition, where it can still be found under the name."""
        try:
            specs = resolve(self.named).specs
        except AutotuneError:
            return None
        return next((spec for spec in specs if spec.name == self.record.name), None)

    def objective(self) -> tuple[Objective | None, str]:
        """The backend that measured the study, or why it cannot be made."""
        spec = self.spec()
        if spec is None:
            why = "the study's definition was not found; name it as it was run, FILE.py:ATTR"
            return None, f"Not measured: {why}."
        try:
            if isinstance(spec.objective, str):
                spec = replace(spec, objective=self.record.objective)
            objective = spec.make_objective()
        except AutotuneError as error:
            return None, f"Not measured: {error}."
        made = (objective.name, objective.version, spec.design_point.fingerprint)
        stored = (
            self.record.objective,
            self.record.objective_version,
            self.record.design_point.fingerprint,
        )
        if made != stored:
            return None, "Not measured: the objective or the design point has changed since."
        return objective, ""


def load(storage: str | Storage, text: str | None) -> Stored:
    """Read the study that a user means.

    Args:
        storage: Where.
        text: Its name, its name in the storage, or as for `resolve`; None for the only one.

    Raises:
        StorageRefused: If there is no usable storage.
        UnknownName: If it has no such study; lists those it has.
        InvalidInput: If several could be meant.
    """
    opened = open_storage(storage, read_only=True)
    record = _choose(current(list_studies(opened)), text, str(opened))
    return _read(opened, record, text or record.name)


def load_all(storage: str) -> list[Stored]:
    """Every study of a storage, oldest first, without those that a successor replaced."""
    opened = open_storage(storage, read_only=True)
    return [_read(opened, record, record.name) for record in current(list_studies(opened))]


def current(records: Sequence[StudyRecord]) -> list[StudyRecord]:
    """Those that no later study of the same name has taken over from."""
    replaced = {record.predecessor for record in records}
    return [record for record in records if record.storage_name not in replaced]


def _read(storage: Storage, record: StudyRecord, named: str) -> Stored:
    with storage.read() as connection:
        rows = read_trials(connection, record.study_id)
    # Given-up claims too: they are counted.
    trials = in_slot_order([to_trial(row) for row in rows])
    findings = findings_of(record, trials, str(storage))
    return Stored(record=record, findings=findings, named=named, storage=str(storage))


def _choose(records: Sequence[StudyRecord], text: str | None, where: str) -> StudyRecord:
    names = [record.storage_name for record in records]
    if not records:
        raise InvalidInput(f"storage {where}", "holds no study yet; `autotune run STUDY` adds one")
    if text is None:
        found = list(records)
    else:
        found = [record for record in records if text in (record.name, record.storage_name)]
        if not found:
            found = _by_definition(records, text)
        if not found:
            raise UnknownName(f"study in {where}", text, names)
    if len(found) > 1:
        listing = ", ".join(record.storage_name for record in found)
        raise InvalidInput(
            f"storage {where}",
            f"holds {len(found)} studies that could be meant; name one: {listing}",
        )
    return found[0]


def _by_definition(records: Sequence[StudyRecord], text: str) -> list[StudyRecord]:
    """The study whose definition a user names, by the name it says it has."""
    try:
        spec = resolve(text).only()
    except UnknownName:
        return []
    named = [record for record in records if record.name == spec.name]
    if isinstance(spec.objective, str) and len(named) > 1:
        return [record for record in named if record.objective == spec.objective]
    return named
