"""A worker in a process of its own: `worker.py STORAGE SAMPLER N_TRIALS [HANG_IN_SLOT FLAG]`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune import Config, SearchSpace, StudySpec, objective, open_study

SLOW_S = 0.01


def spec(sampler: str, hang_at: int | None, flag: Path | None) -> StudySpec:
    calls = 0

    @objective(metrics=["loss", "traffic"], constraints=["over"], name="bowl")
    def bowl(config: Config) -> dict[str, float]:
        nonlocal calls
        calls += 1
        if calls == hang_at and flag is not None:
            flag.write_text(json.dumps(config))
            time.sleep(60)
        time.sleep(SLOW_S)
        return {
            "loss": (config["a"] - 7) ** 2 + config["x"] + (config["b"] == "q"),
            "traffic": float(config["a"]),
            "over": config["a"] - 20.0,
        }

    return StudySpec(
        name="worker",
        space=SearchSpace(
            {
                "a": IntDistribution(0, 30),
                "b": CategoricalDistribution(["p", "q"]),
                "x": FloatDistribution(0.0, 1.0),
            }
        ),
        objective=bowl,
        metrics=["loss", "traffic"],
        sampler=sampler,
        n_startup_trials=5,
        n_trials=30,
    )


def main(arguments: list[str]) -> None:
    storage, sampler, n_trials = arguments[:3]
    hang_at = int(arguments[3]) if len(arguments) > 3 else None
    flag = Path(arguments[4]) if len(arguments) > 4 else None
    outcome = open_study(spec(sampler, hang_at, flag), storage).optimize(int(n_trials))
    sys.stdout.write(json.dumps({"reason": outcome.reason, "new": outcome.new_trials}))


if __name__ == "__main__":
    main(sys.argv[1:])
