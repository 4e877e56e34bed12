"""Messages between pipeline stages: what of them compute cannot hide."""

from __future__ import annotations

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.collectives import BORDERS, Traffic
from objectives.analytical.setup import Setup
from objectives.analytical.terms import SLOWDOWN, Terms, total
from objectives.analytical.times import Times
from objectives.physics.arrays import FloatArray
from objectives.physics.messages import exposed_messages, sends_per_direction


def message_terms(
    setup: Setup,
    batch: Batch,
    planned: Traffic,
    times: Times,
    *,
    pace_s: FloatArray,
    weight_s: FloatArray,
    bubble_s: FloatArray,
    fill_s: FloatArray,
) -> Terms:
    """Seconds of a step that pipelines wait for messages, by the tier of the border.

    Args:
        setup: The scenario.
        batch: The configs.
        planned: How many borders there are of each tier.
        times: How long one message takes over each.
        pace_s: Per microbatch of the slowest rank, without messages.
        weight_s: Of that, weight gradients.
        bubble_s: Idle time of the step without messages.
        fill_s: Until the first message comes to the middle border, and after the last has left.
    """
    pipeline = batch.pipeline
    here = [tier for tier, border in enumerate(BORDERS) if border in times.names]
    if not here:
        return {SLOWDOWN: np.zeros(len(batch))}
    counts = [planned.borders[tier] for tier in here]
    seconds = [times.total(BORDERS[tier]) for tier in here]
    inner = [planned.inner_ranks[tier] for tier in here]
    exposed = exposed_messages(
        pipeline,
        border_s=seconds,
        borders=counts,
        inner_ranks=inner,
        asynchronous=batch.async_p2p,
        pace_s=pace_s,
        weight_s=weight_s,
    )
    # Messages of one direction share a border: it can be busy longer than the ranks compute.
    sends = sends_per_direction(pipeline)
    waited = pipeline.microbatches * pace_s + bubble_s + total(exposed)
    terms: Terms = {}
    for tier, shown in zip(here, exposed, strict=True):
        busy = pipeline.microbatches * sends * times.transfer(BORDERS[tier])
        busy = np.where(busy > 0, busy + fill_s, 0.0)
        terms[BORDERS[tier]] = shown + np.maximum(busy - waited, 0.0)
    ways = total(n * x for n, x in zip(counts, seconds, strict=True))
    beside = 2 * pipeline.microbatches * pipeline.chunks * ways / np.maximum(total(counts), 1)
    slower = setup.calibration.software.overlap_slowdown * batch.async_p2p
    terms[SLOWDOWN] = slower * beside
    return terms
