"""The knobs as arrays: what each may hold, and which rows hold something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from objectives.physics.arrays import BoolArray
from objectives.physics.schedules import SCHEDULES

Column = NDArray[Any]

REQUIRED = object()
"""A knob that every config must have."""

MOST = 2**40
"""Beyond this a whole number is a slip; it keeps products of several knobs within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """What a column may hold.

    Attributes:
        choices: Allowed texts; empty where the knob is no text.
        flag: Whether it is true or false.
        minimum: Smallest number.
        maximum: Largest number.
        whole: Whether the number has no fraction.
        default: Where the column is missing.
    """

    choices: Sequence[str] = ()
    flag: bool = False
    minimum: float = 1
    maximum: float = MOST
    whole: bool = True
    default: Any = REQUIRED

    @property
    def harmless(self) -> Any:
        """A value that stands in for a refused one, so that the arithmetic goes through."""
        if self.choices:
            return self.choices[0]
        return False if self.flag else type(self.minimum)(self.minimum)

    @property
    def rule(self) -> str:
        """What must hold, in words."""
        if self.choices:
            return f"must be one of {', '.join(self.choices)}"
        if self.flag:
            return "must be true or false"
        kind = "a whole number" if self.whole else "a number"
        upper = f" to {self.maximum:g}" if self.maximum < MOST else " or more"
        return f"must be {kind}, {self.minimum:g}{upper}"


def _share() -> Knob:
    return Knob(minimum=0.0, maximum=1.0, whole=False, default=0.0)


KNOBS: Mapping[str, Knob] = {
    "tensor_parallel_degree": Knob(),
    "context_parallel_degree": Knob(),
    "pipeline_parallel_degree": Knob(),
    "data_parallel_shard_degree": Knob(),
    "data_parallel_replicate_degree": Knob(),
    "expert_parallel_degree": Knob(default=1),
    "dimension_order": Knob(choices=("tp-cp-pp-shard-replicate",)),
    "pipeline_parallel_schedule": Knob(choices=SCHEDULES),
    "microbatch_size": Knob(),
    "virtual_stages_per_rank": Knob(default=1),
    "pipeline_parallel_first_stage_less_layers": Knob(minimum=0, default=0),
    "pipeline_parallel_last_stage_less_layers": Knob(minimum=0, default=0),
    "fsdp_reshard_after_forward": Knob(choices=("never", "always")),
    "fsdp_prefetch_depth": Knob(default=1),
    "gradient_reduction": Knob(choices=("per_step", "per_microbatch")),
    "gradient_dtype": Knob(choices=("fp32", "bf16"), default="fp32"),
    "overlap_gradient_reduction": Knob(flag=True),
    "overlap_parameter_gather": Knob(flag=True),
    "async_pipeline_p2p": Knob(flag=True, default=False),
    "async_tensor_parallel": Knob(flag=True, default=False),
    "p2p_scatter_gather": Knob(flag=True, default=False),
    "activation_checkpoint_mode": Knob(choices=("none", "selective", "full")),
    "activation_offload_fraction": _share(),
    "optimizer_offload_fraction": _share(),
    "precision": Knob(choices=("bf16", "fp8"), default="bf16"),
    "collective_algorithm": Knob(choices=("ring", "tree", "hierarchical")),
    "in_network_reduction": Knob(flag=True, default=False),
    "cross_site_chunks": Knob(default=1),
    "gradient_compression": Knob(choices=("none", "int8", "int4"), default="none"),
    "local_steps": Knob(default=1),
    "transport": Knob(
        choices=("roce_go_back_n", "roce_selective_repeat", "erasure_coded", "tcp"),
        default="roce_selective_repeat",
    ),
    "connections_per_pair": Knob(default=1),
    "load_balancing": Knob(choices=("ecmp", "e_ecmp", "flowlet", "spray"), default="ecmp"),
    "congestion_control": Knob(
        choices=("none", "dcqcn", "receiver_driven", "near_source", "distance_aware"),
        default="none",
    ),
    "bytes_in_flight": Knob(default=4 * 2**20),
}
"""Every knob that this backend reads."""

ANY_TEXT = ("dimension_order",)
"""Texts that are checked by what they mean, not against a list."""


@dataclass(slots=True)
class Refusals:
    """Rows that this backend does not model, each with the first reason found.

    Attributes:
        size: Rows in all.
        reasons: By row number.
    """

    size: int
    reasons: dict[int, str] = field(default_factory=dict)

    @property
    def ok(self) -> BoolArray:
        """Rows without a reason, shape (size,)."""
        mask = np.ones(self.size, dtype=np.bool_)
        mask[list(self.reasons)] = False
        return mask

    def refuse(self, rows: BoolArray, reason: str, **values: Column) -> None:
        """Note a reason for all rows of a mask that have none yet.

        Args:
            rows: Shape (size,).
            reason: Where there are values, with ``{name}`` for a row's value of that name.
            values: Arrays of shape (size,).
        """
        for row in np.flatnonzero(rows).tolist():
            shown = {name: column[row] for name, column in values.items()}
            self.reasons.setdefault(row, reason.format(**shown) if shown else reason)


def read_columns(columns: Mapping[str, Any], refusals: Refusals) -> dict[str, Column]:
    """Every knob as an array of its own kind; refused values are replaced by harmless ones.

    Args:
        columns: Arrays of shape (n,) by knob, of any kind.
        refusals: Takes what is wrong.
    """
    size = refusals.size
    everything = np.ones(size, dtype=np.bool_)
    for name in columns:
        if name not in KNOBS:
            refusals.refuse(everything, f"{name}: is not a knob of this backend; leave it out")
    read = {}
    for name, knob in KNOBS.items():
        if name not in columns:
            value = knob.default
            if value is REQUIRED:
                refusals.refuse(everything, f"{name}: is missing; {knob.rule}")
                value = knob.harmless
            read[name] = np.full(size, value)
            continue
        values = np.asarray(columns[name])
        good = _allowed(name, knob, values)
        if not good.all():
            reason = f"{name}: {knob.rule}, got {{value!r}}"
            refusals.refuse(~good, reason, value=values)
            values = np.asarray(
                [v if ok else knob.harmless for v, ok in zip(values, good, strict=True)]
            )
        read[name] = values
    return read


def _allowed(name: str, knob: Knob, values: Column) -> BoolArray:
    kind = values.dtype.kind
    if kind == "O" or (kind in "US" and not knob.choices):
        return np.asarray([_allowed_value(name, knob, value) for value in values.tolist()])
    if knob.choices:
        if kind != "U":
            return np.zeros(len(values), dtype=np.bool_)
        if name in ANY_TEXT:
            return np.ones(len(values), dtype=np.bool_)
        # A few texts are looked up much faster than many rows are compared.
        good = set(values.tolist()) <= set(knob.choices)
        return np.ones(len(values), dtype=np.bool_) if good else np.isin(values, knob.choices)
    if knob.flag:
        is_number = kind in "iu"
        return (
            np.asarray((values == 0) | (values == 1))
            if is_number
            else np.full(len(values), kind == "b")
        )
    if kind not in "iuf":
        return np.zeros(len(values), dtype=np.bool_)
    inside = (values >= knob.minimum) & (values <= knob.maximum)
    if knob.whole and kind == "f":
        inside &= values == np.round(values)
    return np.asarray(inside)


def _allowed_value(name: str, knob: Knob, value: Any) -> bool:
    if isinstance(value, np.generic):
        value = value.item()
    if knob.choices:
        return isinstance(value, str) and (name in ANY_TEXT or value in knob.choices)
    if knob.flag:
        return isinstance(value, int) and value in (0, 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return knob.minimum <= value <= knob.maximum and (not knob.whole or value == int(value))
