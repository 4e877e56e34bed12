from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from pipeline_simulation import (
    Machine,
    Op,
    breadth_first,
    gpipe,
    interleaved,
    one_f_one_b,
    run_greedy,
    run_order,
)

from objectives.physics.messages import exposed_messages, sends_per_direction
from objectives.physics.schedules import (
    SCHEDULES,
    UNKNOWN,
    Pipeline,
    bubble_s,
    in_flight,
    schedule_kinds,
)

FIXED = ["GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS"]
SIZES = [(4, 8), (4, 16), (8, 8), (8, 24)]
PASSES = [(1.0, 1.0, 1.0), (1.0, 1.3, 0.8), (1.0, 1.0, 0.6)]


def _pipeline(name: str, p: int, m: int, v: int) -> Pipeline:
    return Pipeline(
        kind=schedule_kinds(np.array([name])),
        ranks=np.array([float(p)]),
        microbatches=np.array([float(m)]),
        chunks=np.array([float(v)]),
    )


def _orders(name: str, p: int, m: int, v: int) -> list[list[Op]]:
    makers = {
        "GPipe": lambda: gpipe(p, m),
        "1F1B": lambda: one_f_one_b(p, m),
        "Interleaved1F1B": lambda: interleaved(p, m, v),
        "LoopedBFS": lambda: breadth_first(p, m, v),
    }
    return makers[name]()


def _chunks(name: str) -> int:
    return 4 if name in ("Interleaved1F1B", "LoopedBFS") else 1


def _bubble(name: str, p: int, m: int, v: int, passes: tuple[float, float, float]) -> float:
    forward, data, weight = (v * x for x in passes)
    pipeline = _pipeline(name, p, m, v)
    idle = bubble_s(pipeline, forward_s=forward, input_grad_s=data, weight_grad_s=weight)
    return float(idle[0])


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize(("p", "m"), SIZES)
@pytest.mark.parametrize("passes", PASSES)
def test_bubble_is_what_a_simulation_shows(
    name: str, p: int, m: int, passes: tuple[float, float, float]
) -> None:
    v = _chunks(name)
    machine = Machine(
        ranks=p,
        chunks=v,
        forward_s=lambda _: passes[0],
        input_s=lambda _: passes[1],
        weight_s=lambda _: passes[2],
    )
    run = run_order(machine, _orders(name, p, m, v))
    assert run.makespan_s - m * v * sum(passes) == pytest.approx(_bubble(name, p, m, v, passes))


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize(("p", "m"), SIZES)
def test_activations_in_flight_are_what_a_simulation_holds(name: str, p: int, m: int) -> None:
    v = _chunks(name)
    run = run_order(Machine(ranks=p, chunks=v), _orders(name, p, m, v))
    pipeline = _pipeline(name, p, m, v)
    assert run.held == [int(in_flight(pipeline, rank)[0]) for rank in range(p)]


def test_breadth_first_waits_for_few_microbatches() -> None:
    run = run_order(Machine(ranks=8, chunks=4), breadth_first(8, 3, 4))
    idle = run.makespan_s - 3 * 4 * 3.0
    assert idle == pytest.approx(_bubble("LoopedBFS", 8, 3, 4, (1.0, 1.0, 1.0)))


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize(("p", "m"), [(6, 18), (8, 12), (8, 6), (8, 4)])
def test_zero_bubbles_are_reached_by_a_greedy_schedule(
    p: int, m: int, passes: tuple[float, float, float]
) -> None:
    """Within its memory, a rank that takes what is ready idles as long as the closed form says."""
    machine = Machine(
        ranks=p,
        splits=True,
        forward_s=lambda _: passes[0],
        input_s=lambda _: passes[1],
        weight_s=lambda _: passes[2],
    )
    pipeline = _pipeline("ZB2P", p, m, 1)
    run = run_greedy(machine, m, limit=lambda rank: int(in_flight(pipeline, rank)[0]))
    idle = run.makespan_s - m * sum(passes)
    assert idle == pytest.approx(_bubble("ZB2P", p, m, 1, passes), rel=0.12)


def test_a_folded_zero_bubble_is_reached_too() -> None:
    p, m = 4, 16
    machine = Machine(ranks=p, chunks=2, folded=True, splits=True)
    pipeline = _pipeline("ZBVZeroBubble", p, m, 2)
    run = run_greedy(machine, m, limit=lambda rank: int(in_flight(pipeline, rank)[0]))
    idle = run.makespan_s - m * 2 * 3.0
    assert idle == pytest.approx(_bubble("ZBVZeroBubble", p, m, 2, (1.0, 1.0, 1.0)), rel=0.01)


PUBLISHED = [
    # Equal passes F = B = W = 1 and 8 ranks, with the start of the last rank counted as idle:
    # without it the zero bubbles are 0 and the others as published.
    ("1F1B", 1, 21.0, [8, 7, 6, 5, 4, 3, 2, 1]),  # (p - 1)(F + B + W)
    ("ZBH1", 1, 7.0, [8] * 8),  # a third (2401.10241, table 1)
    ("ZB2P", 1, 7.0, [15] * 8),  # 0; about twice the activations
    ("ZBVZeroBubble", 2, 7.0, [16] * 8),  # 0; the activations of 1F1B, in half chunks
    ("VHalf", 2, 21.0, [10] * 8),  # half of 42 (2405.15362)
    ("VMin", 2, 28.0, [8] * 8),  # two thirds of 42
    ("DualPipeV", 2, 14.0, [17] * 8),  # (p - 1)(F&B + B - 3 W), 2 p + 1 chunks (2412.19437)
]


@pytest.mark.parametrize(("name", "v", "idle", "held"), PUBLISHED)
def test_published_bubbles_and_activations(name: str, v: int, idle: float, held: list[int]) -> None:
    assert _bubble(name, 8, 24, v, (1.0, 1.0, 1.0)) == pytest.approx(idle)
    pipeline = _pipeline(name, 8, 24, v)
    assert [int(in_flight(pipeline, rank)[0]) for rank in range(8)] == held


def test_interleaving_divides_the_bubble() -> None:
    whole = _bubble("1F1B", 8, 16, 1, (1.0, 1.0, 1.0))
    assert _bubble("Interleaved1F1B", 8, 16, 4, (0.25, 0.25, 0.25)) == pytest.approx(whole / 4)


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize(("first", "last"), [(1.0, 1.5), (0.5, 1.6), (0.0, 0.63), (1.0, 3.0)])
def test_a_fat_last_stage_costs_what_it_costs(name: str, first: float, last: float) -> None:
    """The slowest rank paces all; the others fill and drain. Never less than the simulation."""
    p, m, v, passes = 8, 16, _chunks(name), (1.0, 1.2, 0.8)
    size = {0: first, p * v - 1: last}
    machine = Machine(
        ranks=p,
        chunks=v,
        forward_s=lambda chunk: passes[0] * size.get(chunk, 1.0),
        input_s=lambda chunk: passes[1] * size.get(chunk, 1.0),
        weight_s=lambda chunk: passes[2] * size.get(chunk, 1.0),
    )
    run = run_order(machine, _orders(name, p, m, v))
    loads = [sum(size.get(turn * p + rank, 1.0) for turn in range(v)) for rank in range(p)]
    others = (sum(loads) - max(loads)) / (p - 1)
    idle = bubble_s(
        _pipeline(name, p, m, v),
        forward_s=passes[0] * others,
        input_grad_s=passes[1] * others,
        weight_grad_s=passes[2] * others,
    )
    predicted = m * max(loads) * sum(passes) + idle[0]
    assert run.makespan_s <= predicted * 1.0001
    assert predicted == pytest.approx(run.makespan_s, rel=0.03)


def _waits(name: str, p: int, m: int, inner_s: float, outer_s: float, v: int) -> float:
    """Closed form for p ranks in two halves, with another delay between the halves."""

    def one(x: float) -> np.ndarray:
        return np.array([float(x)])

    exposed = exposed_messages(
        _pipeline(name, p, m, v),
        border_s=[one(inner_s), one(outer_s)],
        borders=[one(p - 2), one(1)],
        inner_ranks=[one(1), one(p // 2)],
        asynchronous=np.array([True]),
        pace_s=one(3.0 * v),
        weight_s=one(0.8 * v),
    )
    return float(sum(exposed)[0])


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize(("p", "m"), SIZES)
@pytest.mark.parametrize(
    ("inner_s", "outer_s"), [(0.1, 0.1), (0.5, 0.5), (0.02, 0.6), (0.02, 3.0), (0.02, 8.0)]
)
def test_messages_delay_as_a_simulation_shows(
    name: str, p: int, m: int, inner_s: float, outer_s: float
) -> None:
    v = _chunks(name)

    def hop_s(a: int, b: int) -> float:
        if a == b:
            return 0.0
        return outer_s if (a < p // 2) != (b < p // 2) else inner_s

    passes = {
        "forward_s": lambda _: 1.0,
        "input_s": lambda _: 1.2,
        "weight_s": lambda _: 0.8,
    }
    orders = _orders(name, p, m, v)
    without = run_order(Machine(ranks=p, chunks=v, **passes), orders)
    delayed = run_order(Machine(ranks=p, chunks=v, hop_s=hop_s, **passes), orders)
    seen = delayed.makespan_s - without.makespan_s
    assert _waits(name, p, m, inner_s, outer_s, v) == pytest.approx(seen, rel=0.08, abs=0.3)


def test_sends_over_the_middle_border() -> None:
    """Once each way; 2 v - 1 times looped; twice folded; never without a pipeline."""
    sends = [
        float(sends_per_direction(_pipeline(name, p, 16, v))[0])
        for name, p, v in [
            ("1F1B", 8, 1),
            ("Interleaved1F1B", 8, 8),
            ("VHalf", 8, 2),
            ("none", 1, 1),
        ]
    ]
    assert sends == [1, 15, 2, 0]


def test_unknown_names_are_marked() -> None:
    kinds = schedule_kinds(np.array(["1F1B", "2F2B"]))
    assert kinds.tolist() == [SCHEDULES.index("1F1B"), UNKNOWN]
