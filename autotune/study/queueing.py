"""Configs that wait for a slot, kept with the study in the storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from autotune.objective import Config
from autotune.storage import Storage
from autotune.storage.reader import read_queue
from autotune.storage.writer import update_queue
from autotune.study.packing import config_key, pack_config, storable_text
from autotune.trial import Origin


def queue_item(
    config: Config, *, origin: Origin, label: str, notes: Mapping[str, Any]
) -> dict[str, Any]:
    """A waiting config as stored."""
    return {
        "id": uuid4().hex,
        "config": pack_config(config),
        "origin": origin.value,
        "label": storable_text(label),
        "notes": pack_config(notes),
    }


def append_to_queue(
    storage: Storage, study_id: int, items: Sequence[Mapping[str, Any]], *, only_new: bool = False
) -> list[Mapping[str, Any]]:
    """Add configs at the end; several processes may do so at once.

    Args:
        storage: Where the study is.
        study_id: Optuna's number of the study.
        items: See `queue_item`.
        only_new: Leave out configs that were ever in the queue.

    Returns:
        What was added.
    """
    with storage.write(study_id) as connection:
        queue = read_queue(connection, study_id)
        there = {config_key(item["config"]) for item in queue} if only_new else set()
        added = [item for item in items if config_key(item["config"]) not in there]
        if added:
            update_queue(connection, study_id, [*queue, *added])
    return added
