"""A study: its trials in a storage, and the loop that adds to them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from autotune import pareto
from autotune.errors import InvalidInput
from autotune.metric import Metric
from autotune.objective import Config, Objective
from autotune.samplers import make_sampler
from autotune.storage import Storage, TrialRow
from autotune.storage.reader import read_study_row
from autotune.storage.writer import update_study
from autotune.study import results
from autotune.study.history import History
from autotune.study.lease import Heart, LeaseTimes, Watch
from autotune.study.ledger import Ledger
from autotune.study.outcome import Outcome
from autotune.study.packing import StudyRecord, storable_text, to_trial, unpack_config, unpack_study
from autotune.study.proposal import Proposer, repair_notes
from autotune.study.queueing import append_to_queue, queue_item
from autotune.study.running import Run, check_arguments, run_serially
from autotune.study.signals import Interrupts
from autotune.study.spec import StudySpec
from autotune.trial import Origin, Trial, TrialState

if TYPE_CHECKING:
    import optuna
    import pandas as pd

    from autotune.store import Match

_logger = logging.getLogger(__name__)


class Study:
    """The running state of a `StudySpec` in a storage; made by `open_study`.

    Any number of processes may have the same study open and call `optimize` at the same time.

    Attributes:
        spec: What it was opened with.
        objective: The backend, made for the spec's design point.
        storage: Where it is.
        metrics: The optimised ones, the most important first.
    """

    def __init__(
        self,
        spec: StudySpec,
        objective: Objective,
        storage: Storage,
        record: StudyRecord,
        *,
        lease: LeaseTimes,
    ) -> None:
        """Use `open_study`; this takes what that has checked."""
        self.spec = spec
        self.objective = objective
        self.storage = storage
        self.metrics: tuple[Metric, ...] = record.metrics
        self._record = record
        self._lease = lease
        self._ledger = self._new_ledger()
        self._trials: dict[int, Trial] = {}

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self.storage}>"

    @property
    def name(self) -> str:
        """Its name in the storage."""
        return self._record.storage_name

    @property
    def record(self) -> StudyRecord:
        """What the storage knows of it."""
        return self._record

    # Adding trials

    def optimize(
        self,
        n_trials: int | None = None,
        *,
        n_jobs: int = 1,
        timeout_s: float | None = None,
        trial_timeout_s: float | None = None,
        on_trial: Callable[[Trial], None] | None = None,
    ) -> Outcome:
        """Measure configs until the budget is spent, taking turns with all other workers.

        Ctrl-C and SIGTERM end it cleanly: what is finished is kept, and the config at hand is
        measured again by the next call.

        Args:
            n_trials: The budget: how many configs are measured in all, by whomever and whenever.
                The largest one that anybody asked for when not given.
            n_jobs: How many are measured at once, in processes of their own if more than one.
            timeout_s: From when on nothing new is begun; also told to objectives that report.
            trial_timeout_s: How long one evaluation may take. One that takes longer is killed, with
                the programs that it has started in its process group, and its trial has failed
                with the kind ``timeout``. Each evaluation is then done in a process of its own on
                this machine, also with one job, so that the objective must be one that can be
                sent to a process; starting that process is not counted.
            on_trial: Called with every trial that this call settles.

        Raises:
            InvalidInput: If an argument is out of range.
        """
        budget = self._budget(n_trials)
        check_arguments(n_jobs=n_jobs, timeout_s=timeout_s, trial_timeout_s=trial_timeout_s)
        settled: list[TrialRow] = []

        def on_settled(row: TrialRow) -> None:
            settled.append(row)
            if on_trial is not None:
                on_trial(self._trial(row))

        stop_at = None if timeout_s is None else time.time() + timeout_s
        run = Run(
            budget=budget, stop_at=stop_at, trial_limit_s=trial_timeout_s, on_settled=on_settled
        )
        with Interrupts() as interrupts, Heart(self.storage, self._lease.beat_s) as heart:
            if n_jobs == 1 and trial_timeout_s is None:
                ending = run_serially(run, self._ledger, self.objective, heart, interrupts)
            else:
                from autotune.study.parallel import run_in_parallel

                ending = run_in_parallel(
                    run, self._ledger, self.objective, heart, interrupts, n_jobs
                )
        self._ledger.refresh()
        return Outcome(
            reason=ending,
            new_trials=len(settled),
            new_failures=sum(row.state == "FAIL" for row in settled),
            settled=self._ledger.history.n_settled(budget),
            n_trials=budget,
        )

    def enqueue(
        self,
        config: Mapping[str, Any],
        *,
        label: str = "",
        repair: bool = False,
    ) -> dict[str, Any]:
        """Have a config measured in the next open slot.

        Args:
            config: Complete and valid, unless it is to be repaired.
            label: Kept with the trial.
            repair: Move an invalid config to the nearest valid one; what was changed and why is
                recorded in the trial's attributes, under ``repaired`` and ``refused_as``.

        Returns:
            The config that will be measured; a deterministic backend is not asked again for one
            that this study has already.

        Raises:
            InvalidInput: If it is invalid and not to be repaired; carries every problem.
        """
        problems = self.spec.space.explain(config)
        if problems and not repair:
            raise InvalidInput("enqueued config", problems)
        fitting = self.spec.space.project(config)
        notes: dict[str, Any] = {}
        if problems:
            notes = repair_notes(config, fitting) | {
                "refused_as": [storable_text(str(each)) for each in problems]
            }
        item = queue_item(fitting, origin=Origin.ENQUEUED, label=label, notes=notes)
        append_to_queue(self.storage, self._record.study_id, [item])
        return fitting

    def warm_start(
        self,
        sources: Mapping[str, Sequence[Trial]] | Sequence[Match] | Sequence[Trial],
        n: int = 5,
    ) -> list[Config]:
        """Have good configs of earlier studies measured here, before the sampler proposes.

        They are moved to the nearest config that is valid here; what was moved is recorded in
        the trial's attributes. Doing it again adds nothing that was added before.

        Args:
            sources: Matching studies of the same storage, as `StudyStore.nearest` gives them;
                or trials, by the name of their study or without one. The most promising first.
            n: How many configs at most.

        Returns:
            The configs that were added to the queue.
        """
        from autotune import transfer
        from autotune.store import Match, StudyStore

        if isinstance(sources, Mapping):
            trials = dict(sources)
        else:
            matches = [each for each in sources if isinstance(each, Match)]
            store = StudyStore(self.storage)
            trials = dict(transfer.best_of(store, matches, n, exclude=[self.name]))
            if unnamed := [each for each in sources if isinstance(each, Trial)]:
                trials[""] = unnamed
        self._ledger.refresh()
        known = self._ledger.history.keys
        found = transfer.candidates(trials, self.spec.space, n, known=known)
        items = [
            queue_item(each.config, origin=Origin.TRANSFER, label=each.source, notes=each.notes)
            for each in found
        ]
        added = append_to_queue(self.storage, self._record.study_id, items, only_new=True)
        return [unpack_config(item["config"]) for item in added]

    def _budget(self, n_trials: int | None) -> int:
        if n_trials is None:
            return max(self.spec.n_trials, self._record.n_trials)
        if isinstance(n_trials, bool) or not isinstance(n_trials, int) or n_trials < 0:
            raise InvalidInput("n_trials", f"must be an int >= 0, got {n_trials!r}")
        if n_trials > self._record.n_trials:
            self._store_budget(n_trials)
        return n_trials

    def _store_budget(self, n_trials: int) -> None:
        with self.storage.write(self._record.study_id) as connection:
            row = read_study_row(connection, self.name)
            assert row is not None, "the study is in the storage since it was opened"
            packed = {**row.packed, "n_trials": max(n_trials, row.packed["n_trials"])}
            update_study(connection, self._record.study_id, packed)
            row = read_study_row(connection, self.name)
            assert row is not None, "it was just written"
        self._record = unpack_study(row)

    # Looking at trials

    @property
    def trials(self) -> list[Trial]:
        """All trials as of now, in the order of their slots; then what is outside the budget.

        Claims that were given up are left out.
        """
        self._ledger.refresh()
        rows = self._ledger.history.rows.values()
        return results.visible([self._trial(row) for row in rows])

    def frame(self) -> pd.DataFrame:
        """The trials as a table, one row each; see `autotune.study.results.to_frame`."""
        return results.to_frame(self.trials)

    def front(self) -> list[Trial]:
        """The feasible trials that no other beats, best in the first metric first."""
        return pareto.pareto_front(self.trials, self.metrics, constraints=self._record.constraints)

    def best(self, metric: str | None = None) -> Trial | None:
        """The feasible trial with the best value of a metric; None when nothing is feasible.

        Args:
            metric: Any metric of the objective; the study's first one when not given.

        Raises:
            UnknownName: If the objective has no such metric.
        """
        return results.find_best(self.trials, self._record, metric)

    def baseline(self, name: str | None = None) -> Trial | None:
        """The trial that measured a baseline, the first one when not named; None before that.

        Raises:
            UnknownName: If the study has no baseline of the name.
        """
        return results.find_baseline(self.trials, self.spec.baselines, name)

    @property
    def optuna_study(self) -> optuna.Study:
        """The same study for Optuna's own tools: plots, importances, dashboards."""
        import optuna

        return optuna.load_study(study_name=self.name, storage=self.storage.optuna())

    def _trial(self, row: TrialRow) -> Trial:
        known = self._trials.get(row.trial_id)
        if known is None or known.state is TrialState.RUNNING:
            known = self._trials[row.trial_id] = to_trial(row)
        return known

    def _new_ledger(self) -> Ledger:
        record, space = self._record, self.spec.space
        sampler = make_sampler(
            record.sampler,
            space=space,
            seed=record.seed,
            population_size=record.population_size,
            deterministic=record.deterministic,
        )
        proposer = Proposer(
            space=space,
            sampler=sampler,
            seed=record.seed,
            baselines=self.spec.baselines,
            n_startup_trials=record.n_startup_trials,
            deterministic=record.deterministic,
        )
        return Ledger(
            storage=self.storage,
            record=record,
            space=space,
            proposer=proposer,
            history=History(metrics=record.metrics, constraints=record.constraints),
            watch=Watch(lease_s=self._lease.lease_s),
        )
