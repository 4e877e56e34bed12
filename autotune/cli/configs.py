"""Commands about single configs: ``evaluate``, ``compare``, ``export``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from autotune import plugins
from autotune.cli import commands, output, shapes, tables
from autotune.cli.config_files import STDIN, read_config
from autotune.cli.nearest import Source, can_move, move
from autotune.cli.stored import BASELINE, BEST, Stored, load
from autotune.cli.targets import resolve
from autotune.errors import InvalidInput, StorageRefused, UnknownName, Unsupported
from autotune.evaluation import Evaluation
from autotune.objective import Config, Objective
from autotune.report.sentences import lead_phrase, why_unusable_evaluation
from autotune.study import StudySpec
from autotune.study.measuring import measure


def evaluate(
    study: commands.Study,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="A JSON object with every parameter; - is stdin."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="One of the study's baselines instead.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="Another installed backend to measure with.", show_default="the study's"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For backends that draw numbers.")] = 0,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> int:
    """Measure one config now; nothing is stored. Exit 1 when the measurement failed.

    JSON: ``{"study", "design_point", "objective": {"name", "version"}, "config",
    …evaluation_shape, "units": {METRIC: UNIT}}``.
    """
    spec = resolve(study).only()
    if objective is not None:
        spec = replace(spec, objective=objective)
    chosen = _chosen_config(spec, config, baseline)
    made = spec.make_objective()
    evaluation = measure(made, chosen, seed=seed).evaluation
    if json:
        document = {
            "study": spec.name,
            "design_point": spec.design_point.name,
            "objective": {"name": made.name, "version": made.version},
            "config": dict(chosen),
            **shapes.evaluation_shape(evaluation),
            "units": {metric.name: metric.unit for metric in made.metrics},
        }
        output.write_json(document)
    else:
        _show_evaluation(evaluation, made)
    return commands.DONE if evaluation.ok else commands.FAILED


def compare(
    first: Annotated[
        str, typer.Argument(metavar="[A]", help="A trial's number, best, baseline, or FILE.json.")
    ] = BASELINE,
    second: Annotated[str, typer.Argument(metavar="[B]", help="What A is compared with.")] = BEST,
    study: commands.StudyOption = None,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """Two configs side by side: knobs that differ, metrics, and where the time goes.

    JSON: `comparison_shape` with ``study`` and ``objective``.
    """
    stored = load(storage, study)
    sides = [_side(stored, text) for text in (first, second)]
    names = (sides[0].name, sides[1].name)
    configs = (sides[0].config, sides[1].config)
    evaluations = (sides[0].evaluation, sides[1].evaluation)
    metrics = stored.record.recorded
    if json:
        document = shapes.comparison_shape(names, configs, evaluations, stored.findings.metrics)
        head = {"study": stored.record.name, "objective": stored.findings.backend}
        output.write_json({**head, **document})
        return
    console = output.results()
    lead = stored.findings.metrics[0]
    if evaluations[0].ok and evaluations[1].ok:
        values = [each.metrics[lead.name] for each in evaluations]
        phrase = lead_phrase(values[1], values[0], lead)
        console.print(Text(f"{names[1]} against {names[0]}: {phrase}", style="bold"))
    console.print(tables.comparison_table(names, configs, evaluations, metrics))
    for name, evaluation in zip(names, evaluations, strict=True):
        if not evaluation.feasible:
            console.print(Text(f"{name} {why_unusable_evaluation(evaluation)}"))


def export(
    to: Annotated[str, typer.Option("--to", metavar="EXPORTER", help="Which form to write.")],
    study: commands.StoredStudy = None,
    trial: Annotated[
        str, typer.Option(help="A trial's number, best, baseline, or a baseline's name.")
    ] = BEST,
    directory: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where; made if missing.")
    ] = Path(),
    nearest: Annotated[
        bool,
        typer.Option(
            "--nearest",
            help="Where the config cannot be expressed, write the nearest that can, measured anew.",
        ),
    ] = False,
    storage: commands.Storage = commands.DEFAULT_STORAGE,
    json: commands.Json = False,
    verbose: commands.Verbose = False,
) -> None:
    """Write a config in the form that a trainer reads. Exit 1 when it cannot be expressed.

    JSON: ``{"study", "trial", "exporter", "config", "files": [PATH]}``, and with ``--nearest``
    ``"nearest": {"changed", "comparison"} | null``, null where the config is written as it is.
    """
    exporter = plugins.load("autotune.exporters", to)
    source = _exported(study, trial, storage)
    config, moved = source.config, None
    try:
        texts = exporter(source.design_point, config)
    except Unsupported as error:
        if not nearest:
            raise _with_advice(error, exporter, to) from error
        moved = move(exporter, to, source, error)
        config = moved.config
        texts = exporter(source.design_point, config)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for file, text in texts.items():
        path = directory / Path(file).name
        path.write_text(text, encoding="utf-8")
        written.append(str(path))
    if json:
        document: dict[str, Any] = {
            "study": source.study,
            "trial": trial,
            "exporter": to,
            "config": dict(config),
            "files": written,
        }
        if nearest:
            document["nearest"] = moved.shape if moved else None
        output.write_json(document)
        return
    if moved:
        moved.show()
    for file in written:
        output.results().print(Text(file), soft_wrap=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    name: str
    config: Config
    evaluation: Evaluation


def _side(stored: Stored, text: str) -> _Side:
    """A trial of the study, or a config of a file, which is measured now."""
    if not (text == STDIN or text.endswith(".json")):
        trial = stored.trial(text)
        if trial.evaluation is None:
            raise InvalidInput(f"trial {text}", f"must be measured, it is {trial.state.value}")
        name = text if text == str(trial.number) else f"{text} ({trial.number})"
        return _Side(
            name=f"trial {name}" if text.isdecimal() else name,
            config=trial.config,
            evaluation=trial.evaluation,
        )
    config = stored.space().check(read_config(text))
    objective, why = stored.objective()
    if objective is None:
        raise InvalidInput(f"config {text}", f"must be measured to be compared. {why}")
    return _Side(name=text, config=config, evaluation=measure(objective, config, seed=0).evaluation)


def _chosen_config(spec: StudySpec, file: str | None, baseline: str | None) -> Config:
    if (file is None) == (baseline is None):
        raise InvalidInput("evaluate", "give exactly one of --config FILE and --baseline NAME")
    if baseline is not None:
        return _baseline_of(spec, baseline)
    assert file is not None, "one of the two was given"
    return spec.space.check(read_config(file))


def _baseline_of(spec: StudySpec, name: str) -> Config:
    """A baseline by its name; ``baseline`` is the first."""
    if name == BASELINE and spec.baselines:
        return next(iter(spec.baselines.values()))
    if name not in spec.baselines:
        raise UnknownName("baseline", name, spec.baselines)
    return spec.baselines[name]


def _with_advice(error: Unsupported, exporter: Any, to: str) -> Unsupported:
    if not can_move(exporter):
        return error
    advice = f"`--nearest` writes the nearest config that {to} can express and measures it"
    return Unsupported(f"{error}\n{advice}")


def _exported(study: str | None, trial: str, storage: str) -> Source:
    """What to export: of a stored study, or a baseline of one that was never run."""
    try:
        stored = load(storage, study)
    except (StorageRefused, UnknownName):
        if study is None or trial == BEST or trial.isdecimal():
            raise
        spec = resolve(study).only()
        return Source(
            study=spec.name,
            trial=trial,
            design_point=spec.design_point,
            config=_baseline_of(spec, trial),
            space=spec.space,
            objective=lambda: (spec.make_objective(), ""),
        )
    return Source(
        study=stored.record.name,
        trial=trial,
        design_point=stored.record.design_point,
        config=stored.trial(trial).config,
        space=stored.space(),
        objective=stored.objective,
    )


def _show_evaluation(evaluation: Evaluation, objective: Objective) -> None:
    console = output.results()
    console.print(Text(f"Measured by {objective.name} {objective.version}."))
    if not evaluation.feasible:
        console.print(Text(f"This config {why_unusable_evaluation(evaluation)}.", style="bold"))
    if evaluation.ok:
        console.print(tables.evaluation_table(evaluation, objective.metrics))
