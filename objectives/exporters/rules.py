"""Rules: how one knob is expressed in a program's options, and the common kinds of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from objectives.exporters.job import Job
from objectives.exporters.options import Options
from objectives.exporters.refusal import Inexpressible, Refusal

Rule = Callable[[Job, str], Options]
"""How one knob is expressed: the options for its value, or a refusal."""


def expressed(rules: Mapping[str, Rule], job: Job) -> dict[str, Any]:
    """The options for every knob that the config has, in the order of the rules.

    Raises:
        Inexpressible: Naming every knob that a rule refuses.
    """
    options: dict[str, Any] = {}
    refusals: list[Refusal] = []
    for knob, rule in rules.items():
        if job.config[knob] is None:
            continue
        try:
            options.update(rule(job, knob))
        except Inexpressible as error:
            refusals += error.refusals
    if refusals:
        raise Inexpressible(refusals)
    return options


def option(name: str) -> Rule:
    """A knob that is one option of the program, with the same values."""
    return lambda job, knob: {name: job.config[knob]}


def only(*values: Any, because: str, given: tuple[str, ...] = ()) -> Rule:
    """A knob of which the program has only some values, and no option to say so."""

    def rule(job: Job, knob: str) -> Options:
        if job.config[knob] not in values:
            raise job.refusal(knob, because, expressible=values, given=given)
        return {}

    return rule


def if_split(*dimensions: str, rule: Rule) -> Rule:
    """A rule that matters only where all these dimensions have more than one rank."""

    def guarded(job: Job, knob: str) -> Options:
        split = all(job.degree(dimension) > 1 for dimension in dimensions)
        return rule(job, knob) if split else {}

    return guarded


def elsewhere(job: Job, knob: str) -> Options:
    """A knob that another exporter writes."""
    return {}
