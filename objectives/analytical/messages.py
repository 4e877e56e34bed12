"""Messages between pipeline stages: what of them compute cannot hide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from objectives.analytical.batch import Batch
from objectives.analytical.collectives import BORDERS, Time, Traffic
from objectives.analytical.layer import SLOWDOWN, Terms
from objectives.analytical.setup import Setup
from objectives.physics.arrays import FloatArray
from objectives.physics.messages import exposed_messages, sends_per_direction


def message_terms(
    setup: Setup,
    batch: Batch,
    planned: Traffic,
    times: Mapping[str, Time],
    *,
    pace_s: FloatArray,
    weight_s: FloatArray,
) -> Terms:
    """Seconds of a step that pipelines wait for messages, by the tier of the border.

    Args:
        setup: The scenario.
        batch: The configs.
        planned: How many borders there are of each tier.
        times: How long one message takes over each.
        pace_s: Per microbatch of the slowest rank, without messages.
        weight_s: Of that, weight gradients.
    """
    pipeline = batch.pipeline
    seconds = [times[border].total_s for border in BORDERS]
    exposed = exposed_messages(
        pipeline,
        border_s=seconds,
        borders=planned.borders,
        inner_ranks=planned.inner_ranks,
        asynchronous=batch.async_p2p,
        pace_s=pace_s,
        weight_s=weight_s,
    )
    terms = dict(zip(BORDERS, exposed, strict=True))
    # Messages of one direction share a border: it can be busy longer than the ranks compute.
    sends = sends_per_direction(pipeline)
    shown = total_of(exposed) / pipeline.microbatches
    for border, count in zip(BORDERS, planned.borders, strict=True):
        busy = np.where(count > 0, sends * times[border].transfer_s, 0.0)
        more = pipeline.microbatches * np.maximum(busy - pace_s - shown, 0.0)
        terms[border] = terms[border] + more
    beside = 2 * pipeline.chunks * _typical(seconds, planned.borders)
    hidden = np.where(batch.async_p2p, pipeline.microbatches * beside, 0.0)
    terms[SLOWDOWN] = setup.calibration.software.overlap_slowdown * hidden
    return terms


def total_of(values: list[FloatArray]) -> FloatArray:
    """Sum over the tiers."""
    return np.sum(np.stack(values), axis=0)


def _typical(seconds: list[FloatArray], borders: tuple[FloatArray, ...]) -> FloatArray:
    """A message over the mean border."""
    count = np.maximum(total_of(list(borders)), 1)
    return total_of([n * x for n, x in zip(borders, seconds, strict=True)]) / count
