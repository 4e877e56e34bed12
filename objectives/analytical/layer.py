"""What one layer costs per microbatch: compute, and the communication that compute cannot hide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Time, Traffic
from objectives.analytical.setup import Setup
from objectives.physics.activations import FULL, SELECTIVE, Keeping, Shape, layer_bytes
from objectives.physics.arrays import FloatArray, Numbers
from objectives.physics.blocks import Experts, Mlp
from objectives.physics.schedules import DUAL_PIPE_V
from objectives.physics.work import (
    Work,
    attention_work,
    embedding_work,
    experts_work,
    head_work,
    mlp_work,
)

COMPUTE, RECOMPUTE, OFFLOAD, SLOWDOWN = "compute", "recompute", "offload", "overlap slowdown"

Terms = dict[str, FloatArray]
"""Seconds by term, arrays of shape (n,); communication by the name of its collective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of one part per microbatch by term.

    Attributes:
        forward: Of the forward pass.
        backward: Of the backward pass but for weight gradients.
        weight_s: Of weight gradients, shape (n,).
    """

    forward: Terms
    backward: Terms
    weight_s: FloatArray

    @property
    def forward_s(self) -> FloatArray:
        """All terms of the forward pass."""
        return total(self.forward.values())

    @property
    def backward_s(self) -> FloatArray:
        """All terms of the backward pass but for weight gradients."""
        return total(self.backward.values())

    @property
    def total_s(self) -> FloatArray:
        """Everything."""
        return self.forward_s + self.backward_s + self.weight_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What computing the parts of the model takes; independent of every link.

    Attributes:
        dense: A layer with a plain MLP; None where there is none.
        expert: A layer with experts; None where there is none.
        embedding: The embedding.
        head: The head with its loss.
        kept: Bytes of activations that a layer keeps, by ``dense`` and ``expert``.
    """

    dense: Work | None
    expert: Work | None
    embedding: Work
    head: Work
    kept: Mapping[str, FloatArray]


def total(terms: Iterable[FloatArray]) -> FloatArray:
    """Sum of arrays of shape (n,)."""
    return np.sum(np.stack(tuple(terms)), axis=0)


def make_parts(setup: Setup, batch: Batch) -> Parts:
    """Compute times and kept activations of every part.

    Args:
        setup: The scenario.
        batch: The configs.
    """
    model = setup.transformer
    shape = activation_shape(setup, batch)
    attention = attention_work(batch.device, batch.part, model.attention)
    dense = expert = None
    kept = {}
    if model.mlp is not None:
        dense = attention + mlp_work(batch.device, batch.part, model.mlp)
        kept["dense"] = layer_bytes(shape, model.attention, model.mlp, Keeping())
    if model.experts is not None:
        expert = attention + experts_work(batch.device, batch.part, model.experts)
        kept["expert"] = layer_bytes(shape, model.attention, model.experts, Keeping())
    head = head_work(batch.device, batch.part, hidden=model.hidden, vocabulary=model.vocabulary)
    return Parts(
        dense=dense,
        expert=expert,
        embedding=embedding_work(batch.device, batch.part, model.hidden),
        head=head,
        kept=kept,
    )


def activation_shape(setup: Setup, batch: Batch) -> Shape:
    """A microbatch of each config, as the activations of a layer see it."""
    return Shape(
        tokens=batch.part.tokens,
        sequence_length=setup.sequence_length,
        tensor=batch.tensor,
        mode=batch.mode,
        operand_bytes=np.where(batch.fp8, 1.0, 2.0),
        imbalance=setup.calibration.software.expert_imbalance,
    )


def layer_cost(
    setup: Setup,
    batch: Batch,
    work: Work,
    mlp: Mlp | Experts,
    *,
    kept_bytes: FloatArray,
    planned: Traffic,
    times: Mapping[str, Time],
) -> Cost:
    """One layer with its communication.

    Args:
        setup: The scenario.
        batch: The configs.
        work: What the layer computes.
        mlp: Its second half, which decides what it communicates.
        kept_bytes: Activations that it keeps.
        planned: The collectives.
        times: How long they take.
    """
    builder = _Builder.start(setup, batch, work)
    builder.tensor_parallel(times, mlp)
    builder.context_parallel(times)
    if isinstance(mlp, Experts):
        builder.expert_parallel(times)
    builder.recompute()
    builder.sharded(
        times, has_experts=isinstance(mlp, Experts), scale=_scale(setup, mlp, planned, batch)
    )
    builder.offload(kept_bytes)
    return builder.finish()


def _scale(setup: Setup, mlp: Mlp | Experts, planned: Traffic, batch: Batch) -> FloatArray:
    """Parameters of this layer outside the experts over those that the collectives move."""
    if isinstance(mlp, Experts) or setup.transformer.experts is None:
        return np.ones(len(batch))
    own = setup.transformer.attention.parameters + mlp.parameters
    own += 2 * setup.transformer.norm_parameters
    return own / batch.tensor / planned.layer_parameters


@dataclass(slots=True)
class _Builder:
    """Collects the terms of one layer; beside them what runs beside compute, for its slowdown."""

    setup: Setup
    batch: Batch
    work: Work
    forward: Terms
    backward: Terms
    hidden_forward: FloatArray
    hidden_backward: FloatArray

    @classmethod
    def start(cls, setup: Setup, batch: Batch, work: Work) -> _Builder:
        zeros = np.zeros(len(batch))
        return cls(
            setup,
            batch,
            work,
            {COMPUTE: work.forward_s},
            {COMPUTE: work.input_grad_s},
            zeros,
            zeros,
        )

    def tensor_parallel(self, times: Mapping[str, Time], mlp: Mlp | Experts) -> None:
        """Gather before and reduce-scatter after each half of the layer, both ways.

        Decomposed products hide a part. Backward also gathers the inputs once more, beside the
        product that needs no input (Korthikanti et al., section 4.2.2).
        """
        hidden_share = np.where(
            self.batch.async_tensor, self.setup.calibration.software.async_tensor_hidden, 0.0
        )
        plain = 4.0
        if isinstance(mlp, Experts):
            plain = 2.0 + (2.0 if mlp.shared else 0.0)
        counts = {names.TENSOR: plain}
        if isinstance(mlp, Experts):
            counts[names.TENSOR_VISITS] = 2.0
        again = np.zeros(len(self.batch))
        for name, count in counts.items():
            seconds = count * times[name].total_s
            self._exchange(name, seconds, hidden_share, again=0.0)
            again = again + seconds / 2
        shown = np.maximum(again - self.work.input_grad_s, 0.0)
        self._add(self.backward, names.TENSOR, shown)
        self.hidden_backward = self.hidden_backward + again - shown

    def context_parallel(self, times: Mapping[str, Time]) -> None:
        """Keys and values go around while attention works on those that are there.

        Backward their gradients go around too (Liu et al., "Ring Attention", arXiv 2310.01889).
        """
        others = (self.batch.context - 1) / self.batch.context
        around = times[names.CONTEXT].total_s
        core = self.work.core_s * others
        shown = np.maximum(around - core, 0.0)
        self._add(self.forward, names.CONTEXT, shown)
        self.hidden_forward = self.hidden_forward + around - shown
        shown = np.maximum(2 * around - 2.5 * core, 0.0)
        self._add(self.backward, names.CONTEXT, shown)
        self.hidden_backward = self.hidden_backward + 2 * around - shown

    def expert_parallel(self, times: Mapping[str, Time]) -> None:
        """Tokens to their experts and back; DualPipe computes another microbatch meanwhile.

        References:
            DeepSeek-V3, arXiv 2412.19437, section 3.2.1: all-to-all fully hidden.
        """
        hides = self.batch.pipeline.kind == DUAL_PIPE_V
        for name in (names.DISPATCH, names.COMBINE):
            seconds = times[name].total_s
            for terms, window in (
                (self.forward, self.work.forward_s),
                (self.backward, self.work.input_grad_s + self.work.weight_grad_s),
            ):
                hidden = np.where(hides, np.minimum(seconds, window / 2), 0.0)
                self._add(terms, name, seconds - hidden)
                if terms is self.forward:
                    self.hidden_forward = self.hidden_forward + hidden
                else:
                    self.hidden_backward = self.hidden_backward + hidden

    def recompute(self) -> None:
        """The forward pass again, all of it with its communication, or what is cheap."""
        mode = self.batch.mode
        cheap = self.work.elementwise_s + self.work.up_s
        again = np.select([mode == SELECTIVE, mode == FULL], [cheap, self.work.forward_s], 0.0)
        self._add(self.backward, RECOMPUTE, again)
        full = mode == FULL
        for name, seconds in self.forward.items():
            if name != COMPUTE:
                self._add(self.backward, name, np.where(full, seconds, 0.0))
        self.hidden_backward = self.hidden_backward + np.where(full, self.hidden_forward, 0.0)

    def sharded(self, times: Mapping[str, Time], *, has_experts: bool, scale: FloatArray) -> None:
        """Weights gathered and gradients reduced around every use, where configured so.

        Gathering runs ahead of compute by the prefetch depth, which hides the latency of single
        gathers behind others; bytes beyond the compute time show.
        """
        batch, work = self.batch, self.work
        backward_window = work.input_grad_s + work.weight_grad_s + self.backward[RECOMPUTE]
        shown_reduce: Terms = {}
        for prefix in ("", "expert ") if has_experts else ("",):
            factor = 1.0 if prefix else scale
            gather = times[prefix + names.GATHER]
            ahead = np.maximum(gather.transfer_s, gather.total_s / batch.prefetch)
            gathered = np.where(batch.reshard, factor * ahead, 0.0)
            reduced = np.where(
                batch.reduce_often, factor * times[prefix + names.REDUCE].total_s, 0.0
            )
            window = (
                work.forward_s
                if not prefix
                else np.maximum(
                    work.forward_s
                    - np.where(batch.reshard, scale * times[names.GATHER].total_s, 0.0),
                    0.0,
                )
            )
            shown = np.where(batch.overlap_gather, np.maximum(gathered - window, 0.0), gathered)
            self._add(self.forward, prefix + names.GATHER, shown)
            self.hidden_forward = self.hidden_forward + gathered - shown
            shown = np.where(
                batch.overlap_gather, np.maximum(gathered - backward_window, 0.0), gathered
            )
            self._add(self.backward, prefix + names.GATHER, shown)
            self.hidden_backward = self.hidden_backward + gathered - shown
            backward_window = np.maximum(backward_window - gathered, 0.0)
            shown = np.where(
                batch.overlap_reduce, np.maximum(reduced - backward_window, 0.0), reduced
            )
            shown_reduce[prefix + names.REDUCE] = shown
            self.hidden_backward = self.hidden_backward + reduced - shown
            backward_window = np.maximum(backward_window - reduced, 0.0)
        for name, shown in shown_reduce.items():
            self._add(self.backward, name, shown)

    def offload(self, kept_bytes: FloatArray) -> None:
        """Activations to the host and back, beside compute."""
        host = self.setup.cluster.host
        if host is None:
            return
        rate = host.bandwidth_bytes_per_s * self.setup.calibration.kernel.host_link_efficiency
        moved = self.batch.activation_offload * kept_bytes / rate
        self._add(self.forward, OFFLOAD, np.maximum(moved - self.work.forward_s, 0.0))
        window = self.work.input_grad_s + self.work.weight_grad_s
        self._add(self.backward, OFFLOAD, np.maximum(moved - window, 0.0))

    def finish(self) -> Cost:
        """The layer, with what compute loses while communication runs beside it."""
        factor = self.setup.calibration.software.overlap_slowdown
        self._add(self.forward, SLOWDOWN, factor * self.hidden_forward)
        self._add(self.backward, SLOWDOWN, factor * self.hidden_backward)
        return Cost(forward=self.forward, backward=self.backward, weight_s=self.work.weight_grad_s)

    def _exchange(
        self, name: str, seconds: FloatArray, hidden_share: FloatArray, *, again: Numbers
    ) -> None:
        hidden = np.minimum(hidden_share * seconds, self.work.forward_s)
        self._add(self.forward, name, seconds - hidden)
        self.hidden_forward = self.hidden_forward + hidden
        hidden = np.minimum(hidden_share * seconds, self.work.input_grad_s)
        self._add(self.backward, name, seconds - hidden + again)
        self.hidden_backward = self.hidden_backward + hidden

    def _add(self, terms: Terms, name: str, seconds: FloatArray) -> None:
        terms[name] = terms[name] + seconds if name in terms else seconds


def edge_cost(
    setup: Setup, batch: Batch, work: Work, times: Mapping[str, Time], *, head: bool
) -> Cost:
    """The embedding, or the head; each is split over the vocabulary by the tensor ranks.

    The embedding's lookups are summed by a reduce-scatter, whose backward is a gather; the
    head's input is gathered, and its gradient reduce-scattered (and gathered again beside).

    Args:
        setup: The scenario.
        batch: The configs.
        work: What it computes.
        times: How long collectives take.
        head: Whether it is the head.
    """
    once = times[names.TENSOR].total_s
    hidden = np.minimum(once, work.input_grad_s) if head else np.zeros(len(batch))
    slower = setup.calibration.software.overlap_slowdown * hidden
    return Cost(
        forward={COMPUTE: work.forward_s, names.TENSOR: once},
        backward={COMPUTE: work.input_grad_s, names.TENSOR: once, SLOWDOWN: slower},
        weight_s=work.weight_grad_s,
    )
