"""What one layer costs per microbatch: compute, and the communication that compute cannot hide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from objectives.analytical import collectives as names
from objectives.analytical.batch import Batch
from objectives.analytical.collectives import Traffic
from objectives.analytical.setup import Setup
from objectives.analytical.terms import (
    COMPUTE,
    OFFLOAD,
    RECOMPUTE,
    SLOWDOWN,
    Cost,
    Terms,
    add,
    total,
)
from objectives.analytical.times import Times
from objectives.physics.activations import FULL, SELECTIVE
from objectives.physics.arrays import FloatArray
from objectives.physics.blocks import Experts, Mlp
from objectives.physics.compute import ATTENTION_BACKWARD_FACTOR
from objectives.physics.schedules import DUAL_PIPE_V
from objectives.physics.work import Work


def layer_cost(
    setup: Setup,
    batch: Batch,
    work: Work,
    mlp: Mlp | Experts,
    *,
    kept_bytes: FloatArray,
    planned: Traffic,
    times: Times,
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
    layer = _Layer.start(setup, batch, work, mlp, times)
    layer.tensor_parallel()
    layer.context_parallel()
    layer.expert_parallel()
    layer.recompute()
    layer.sharded(planned)
    layer.offload(kept_bytes)
    return layer.finish()


def edge_cost(setup: Setup, work: Work, times: Times, *, head: bool) -> Cost:
    """The embedding, or the head; each is split over the vocabulary by the tensor ranks.

    The embedding's lookups are summed by a reduce-scatter, whose backward is a gather; the
    head's input is gathered, and its gradient reduce-scattered, the input gathered again beside.

    Args:
        setup: The scenario.
        work: What it computes.
        times: How long collectives take.
        head: Whether it is the head.
    """
    once = times.total(names.TENSOR)
    hidden = np.minimum(once, work.input_grad_s) if head else np.zeros_like(once)
    slower = setup.calibration.software.overlap_slowdown * hidden
    return Cost(
        forward={COMPUTE: work.forward_s, names.TENSOR: once},
        backward={COMPUTE: work.input_grad_s, names.TENSOR: once, SLOWDOWN: slower},
        weight={COMPUTE: work.weight_grad_s},
    )


@dataclass(slots=True)
class _Layer:
    """Collects the terms of one layer, and what runs beside compute and so slows it down."""

    setup: Setup
    batch: Batch
    work: Work
    mlp: Mlp | Experts
    times: Times
    forward: Terms
    backward: Terms
    weight: Terms
    beside_forward: FloatArray
    beside_backward: FloatArray

    @classmethod
    def start(
        cls, setup: Setup, batch: Batch, work: Work, mlp: Mlp | Experts, times: Times
    ) -> _Layer:
        zeros = np.zeros(len(batch))
        return cls(
            setup,
            batch,
            work,
            mlp,
            times,
            {COMPUTE: work.forward_s},
            {COMPUTE: work.input_grad_s},
            {COMPUTE: work.weight_grad_s},
            zeros,
            zeros,
        )

    def tensor_parallel(self) -> None:
        """Gather before and reduce-scatter after each half of the layer, both ways.

        Decomposed products hide a part. Backward also gathers the inputs once more, beside the
        product that needs no input (Korthikanti et al., arXiv 2205.05198, section 4.2.2).
        """
        counts = {names.TENSOR: 4.0}
        if isinstance(self.mlp, Experts):
            # The routed half moves every visit, the shared experts the tokens once more.
            counts = {names.TENSOR: 4.0 if self.mlp.shared else 2.0, names.TENSOR_VISITS: 2.0}
        hideable = self.setup.calibration.software.async_tensor_hidden * self.batch.async_tensor
        core = self.work.core_s
        ahead = self.work.forward_s - core
        back = np.maximum(self.work.input_grad_s - ATTENTION_BACKWARD_FACTOR * core, 0.0)
        again = np.zeros(len(self.batch))
        for name, count in counts.items():
            seconds = count * self.times.total(name)
            hidden = np.minimum(hideable * seconds, ahead)
            self._forward(name, seconds, hidden)
            ahead = ahead - hidden
            hidden = np.minimum(hideable * seconds, back)
            self._backward(name, seconds, hidden)
            back = back - hidden
            again = again + seconds / 2
        self._backward(names.TENSOR, again, np.minimum(again, back))

    def context_parallel(self) -> None:
        """Keys and values go around while attention works on those that are there.

        Backward their gradients go around too (Liu et al., "Ring Attention", arXiv 2310.01889).
        """
        if names.CONTEXT not in self.times.names:
            return
        around = self.times.total(names.CONTEXT)
        core = self.work.core_s * (self.batch.context - 1) / self.batch.context
        self._forward(names.CONTEXT, around, np.minimum(around, core))
        back = np.minimum(2 * around, ATTENTION_BACKWARD_FACTOR * core)
        self._backward(names.CONTEXT, 2 * around, back)

    def expert_parallel(self) -> None:
        """Tokens to their experts and back; DualPipe computes another microbatch meanwhile.

        References:
            DeepSeek-V3, arXiv 2412.19437, section 3.2.1: all-to-all hidden behind the other
            direction's passes; here each of the two behind half of a pass.
        """
        if not isinstance(self.mlp, Experts):
            return
        hides = self.batch.pipeline.kind == DUAL_PIPE_V
        backward = self.work.input_grad_s + self.work.weight_grad_s
        for name in (names.DISPATCH, names.COMBINE):
            seconds = self.times.total(name)
            self._forward(name, seconds, hides * np.minimum(seconds, self.work.forward_s / 2))
            self._backward(name, seconds, hides * np.minimum(seconds, backward / 2))

    def recompute(self) -> None:
        """The forward pass again, all of it with its communication, or what is cheap."""
        mode = self.batch.mode
        full = mode == FULL
        cheap = (mode == SELECTIVE) * (self.work.elementwise_s + self.work.up_s)
        again = np.where(full, self.work.forward_s, cheap)
        for name, seconds in self.forward.items():
            if name != COMPUTE:
                add(self.backward, name, full * seconds)
        add(self.backward, RECOMPUTE, again)
        self.beside_backward = self.beside_backward + full * self.beside_forward

    def sharded(self, planned: Traffic) -> None:
        """Weights gathered and gradients reduced around every use, where configured so.

        Gathering runs ahead of its layer by the prefetch depth, which hides the latency of single
        gathers behind others; bytes beyond the time of the layer before show.
        """
        batch = self.batch
        if not np.any(batch.reshard | batch.reduce_often):
            return
        forward = total(self.forward.values())
        # Weight gradients that are put off are no time in which the next layer's weights arrive.
        apart = batch.pipeline.splits_backward
        weight = self.work.weight_grad_s
        backward = total(self.backward.values()) + np.where(apart, 0.0, weight)
        weight = np.where(apart, weight, 0.0)
        kinds = {"": self._scale(planned)}
        if isinstance(self.mlp, Experts):
            kinds[names.EXPERT] = np.ones(len(batch))
        for prefix, factor in kinds.items():
            gather = self.times.total(prefix + names.GATHER)
            ahead = np.maximum(self.times.transfer(prefix + names.GATHER), gather / batch.prefetch)
            gathered = batch.reshard * factor * ahead
            reduced = batch.reduce_often * factor * self.times.total(prefix + names.REDUCE)
            hidden = np.where(batch.overlap_gather, np.minimum(gathered, forward), 0.0)
            self._forward(prefix + names.GATHER, gathered, hidden)
            forward = forward - hidden
            hidden = np.where(batch.overlap_gather, np.minimum(gathered, backward), 0.0)
            self._backward(prefix + names.GATHER, gathered, hidden)
            backward = backward - hidden
            hidden = np.minimum(reduced, backward + weight)
            hidden = np.where(batch.overlap_reduce, hidden, 0.0)
            add(self.weight, prefix + names.REDUCE, reduced - hidden)
            self.beside_backward = self.beside_backward + hidden
            weight, backward = (
                np.maximum(weight - hidden, 0.0),
                backward - np.maximum(hidden - weight, 0.0),
            )

    def offload(self, kept_bytes: FloatArray) -> None:
        """Activations to the host and back, beside everything else of the layer.

        While one microbatch's leave, another's come back: over the link in both directions, but
        both through the host's memory.
        """
        host = self.setup.cluster.host
        if host is None:
            return
        kernel = self.setup.calibration.kernel
        rate = min(
            host.bandwidth_bytes_per_s * kernel.host_link_efficiency,
            host.memory_bandwidth_bytes_per_s * kernel.host_memory_efficiency / 2,
        )
        moved = self.batch.activation_offload * kept_bytes / rate
        forward = total(self.forward.values())
        backward = total(self.backward.values()) + total(self.weight.values())
        add(self.forward, OFFLOAD, np.maximum(moved - forward, 0.0))
        add(self.backward, OFFLOAD, np.maximum(moved - backward, 0.0))

    def finish(self) -> Cost:
        """The layer, with what compute loses while communication runs beside it."""
        factor = self.setup.calibration.software.overlap_slowdown
        add(self.forward, SLOWDOWN, factor * self.beside_forward)
        add(self.backward, SLOWDOWN, factor * self.beside_backward)
        return Cost(forward=self.forward, backward=self.backward, weight=self.weight)

    def _scale(self, planned: Traffic) -> FloatArray:
        """This layer's parameters outside the experts over those that the collectives move."""
        if isinstance(self.mlp, Experts) or self.setup.transformer.experts is None:
            return np.ones(len(self.batch))
        own = self.setup.transformer.attention.parameters + self.mlp.parameters
        own += 2 * self.setup.transformer.norm_parameters
        return own / self.batch.tensor / planned.layer_parameters

    def _forward(self, name: str, seconds: FloatArray, hidden: FloatArray) -> None:
        add(self.forward, name, seconds - hidden)
        self.beside_forward = self.beside_forward + hidden

    def _backward(self, name: str, seconds: FloatArray, hidden: FloatArray) -> None:
        add(self.backward, name, seconds - hidden)
        self.beside_backward = self.beside_backward + hidden
