"""What differs between two spaces, and configs of one brought into the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autotune.jsonable import canonical_json
from autotune.space.compiled import Compiled
from autotune.space.domains import ContinuousDomain
from autotune.space.values import identity, plain


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed from one space to another, in words.

    Args:
        old: The identity of the old space, see `SearchSpace.fingerprint`.
        new: The identity of the new one.
    """
    lines = list(_parameter_lines(old["parameters"], new["parameters"]))
    for kind in ("constraints", "conditions", "compounds"):
        lines += _rule_lines(kind[:-1], old, new)
    return lines


def _parameter_lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"parameter {name}: added ({_range(new[name])})"
        elif name not in new:
            yield f"parameter {name}: removed (was {_range(old[name])})"
        elif old[name] != new[name]:
            yield f"parameter {name}: {_change(old[name], new[name])}"


def _change(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    if old["kind"] == new["kind"] == "categorical":
        before = {identity(choice): choice for choice in old["choices"]}
        after = {identity(choice): choice for choice in new["choices"]}
        added = [repr(after[key]) for key in after if key not in before]
        removed = [repr(before[key]) for key in before if key not in after]
        parts = [f"choices added: {', '.join(added)}"] if added else []
        parts += [f"choices removed: {', '.join(removed)}"] if removed else []
        return "; ".join(parts) or "choices in another order"
    return f"was {_range(old)}, is {_range(new)}"


def _range(distribution: Mapping[str, Any]) -> str:
    if distribution["kind"] == "categorical":
        return f"one of {', '.join(map(repr, distribution['choices']))}"
    step = distribution["step"]
    return (
        f"{distribution['kind']} {distribution['low']} to {distribution['high']}"
        + (f" in steps of {step}" if step not in (None, 1) else "")
        + (" by logarithm" if distribution["log"] else "")
    )


def _rule_lines(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = old[f"{kind}s"], new[f"{kind}s"]
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield f"{kind} {name}: added"
        elif name not in after:
            yield f"{kind} {name}: removed"
        elif before[name] != after[name]:
            keys = sorted(k for k in before[name].keys() | after[name].keys() if k != "truth")
            changes = [
                f"{key} was {canonical_json(before[name].get(key))}, "
                f"is {canonical_json(after[name].get(key))}"
                for key in keys
                if before[name].get(key) != after[name].get(key)
            ]
            if changes:
                yield f"{kind} {name}: {'; '.join(changes)}"
            elif not _reads_changed(before[name]["reads"], old, new):
                yield f"{kind} {name}: holds for other values than before"


def _reads_changed(reads: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the values a predicate is asked for changed, so that its answers must have."""
    compounds = [old["compounds"], new["compounds"]]
    joint = {m for rules in compounds for rule in rules.values() for m in rule["parameters"]}
    return any(old["parameters"].get(n) != new["parameters"].get(n) for n in reads) or (
        compounds[0] != compounds[1] and not joint.isdisjoint(reads)
    )


def renamed(value: Any, aliases: Mapping[Any, Any]) -> Any:
    """A choice under its new name."""
    same = identity(plain(value))
    for old, new in aliases.items():
        if identity(plain(old)) == same:
            return plain(new)
    return value


def completed(
    compiled: Compiled, config: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any] | None:
    """A config with its missing parameters at the only values they can be said to have had.

    These are the fixed value where a condition makes the parameter inactive, else the declared
    default or the only value of the domain.

    Returns:
        The completed config in declaration order; None when a parameter has no such value.
    """
    known = {name: config[name] for name in compiled.domains if name in config}
    for _ in compiled.domains:  # conditions may chain, so what is found may imply more
        for name in compiled.domains:
            if name not in known and (value := _implied(compiled, name, known, defaults)):
                known[name] = value[0]
    if len(known) < len(compiled.domains):
        return None
    return {name: known[name] for name in compiled.domains}


def _implied(
    compiled: Compiled, name: str, known: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[Any] | None:
    """The only value a missing parameter can have had, if there is one and it is known yet."""
    activity = compiled.activities.get(name)
    if activity is not None:
        matches = [
            compiled.discrete[parent].index(known[parent]) in wanted
            for parent, wanted in activity.when.items()
            if parent in known
        ]
        if not all(matches):
            return (activity.otherwise,)
        if len(matches) < len(activity.when):
            return None
    domain = compiled.domains[name]
    if name in defaults:
        return (defaults[name],)
    if not isinstance(domain, ContinuousDomain) and domain.size == 1:
        return (domain.value(0),)
    return None
