"""Any program as an objective: started per config, its output read as metrics.

A definition is a TOML file, or the same table in a design point's section ``command``; all its
keys stand at `Definition`. ``{name}`` is the value of a parameter, and always part of one
argument::

    argv = ["torchrun", "--nproc-per-node=8", "train.py", "--tp={tensor_parallel_degree}"]
    working_directory = "/home/me/trainer"
    timeout = "20 min"
    retries = 1

    [environment]
    NCCL_ALGO = "{collective_algorithm}"

    [metric.step_time_s]
    unit = "s"
    pattern = 'step time: ([0-9.]+)'

    [constraint.peak_memory_over_hbm_bytes]
    pattern = 'peak memory: ([0-9]+)'
    at_most = 80e9

    [[failure]]
    kind = "infrastructure"
    pattern = "NCCL WARN.*timed out"
"""

from __future__ import annotations

from objectives.command.definition import Definition
from objectives.command.loading import parse_definition, read_definition
from objectives.command.objective import CommandObjective, command, command_objective

__all__ = [
    "CommandObjective",
    "Definition",
    "command",
    "command_objective",
    "parse_definition",
    "read_definition",
]
