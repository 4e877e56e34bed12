"""A brute-force pipeline: every pass of every microbatch as an event, to check closed forms.

Ranks run the passes in a fixed order, or take whatever is ready: backward passes first, then
forward passes as far as a limit of held activations allows, then weight gradients.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

Op = tuple[str, int, int]
"""A pass: ``F``, ``B`` (inputs) or ``W`` (weights), its chunk of the model, its microbatch."""


@dataclass(kw_only=True)
class Machine:
    """A pipeline of p ranks with v chunks each.

    Durations are per chunk; `hop_s` is the delay of a message from one rank to another.
    """

    ranks: int
    chunks: int = 1
    folded: bool = False
    splits: bool = False
    forward_s: Callable[[int], float] = lambda chunk: 1.0
    input_s: Callable[[int], float] = lambda chunk: 1.0
    weight_s: Callable[[int], float] = lambda chunk: 1.0
    hop_s: Callable[[int, int], float] = lambda a, b: 0.0

    @property
    def stages(self) -> int:
        return self.ranks * self.chunks

    def rank_of(self, chunk: int) -> int:
        turn, place = divmod(chunk, self.ranks)
        return self.ranks - 1 - place if self.folded and turn % 2 else place

    def duration(self, op: Op) -> float:
        kind, chunk, _ = op
        if kind == "F":
            return self.forward_s(chunk)
        if kind == "W":
            return self.weight_s(chunk)
        return self.input_s(chunk) + (0.0 if self.splits else self.weight_s(chunk))

    def needs(self, op: Op) -> list[Op]:
        kind, chunk, batch = op
        if kind == "W":
            return [("B", chunk, batch)]
        if kind == "F":
            return [("F", chunk - 1, batch)] if chunk else []
        last = chunk == self.stages - 1
        return [("F", chunk, batch)] if last else [("B", chunk + 1, batch), ("F", chunk, batch)]


@dataclass(kw_only=True)
class Run:
    """What happened: when everything was done, and the most activations each rank held."""

    makespan_s: float
    held: list[int] = field(default_factory=list)


def run_order(machine: Machine, orders: list[list[Op]]) -> Run:
    """Every rank runs its passes in its own fixed order."""
    done: dict[Op, float] = {}
    at, free = [0] * machine.ranks, [0.0] * machine.ranks
    held, most = [0] * machine.ranks, [0] * machine.ranks
    left = sum(map(len, orders))
    while left:
        moved = False
        for rank, order in enumerate(orders):
            while at[rank] < len(order):
                op = order[at[rank]]
                needs = machine.needs(op)
                if any(need not in done for need in needs):
                    break
                ready = [
                    done[need] + machine.hop_s(machine.rank_of(need[1]), rank) for need in needs
                ]
                start = max([free[rank], *ready])
                free[rank] = done[op] = start + machine.duration(op)
                held[rank] += {"F": 1, "B": 0 if machine.splits else -1, "W": -1}[op[0]]
                most[rank] = max(most[rank], held[rank])
                at[rank] += 1
                left -= 1
                moved = True
        assert moved, "the orders wait for each other"
    return Run(makespan_s=max(free), held=most)


def run_greedy(
    machine: Machine, microbatches: int, *, limit: Callable[[int], int], first: int | None = None
) -> Run:
    """Every rank takes the best pass that is ready; forward passes only within its limit.

    The limit counts chunks between their forward pass and their weight gradients (their backward
    pass where it is not split). `first` bounds how many microbatches have started but not ended.
    """
    total = {(k, c, b) for k in "FBW" for c in range(machine.stages) for b in range(microbatches)}
    if not machine.splits:
        total = {op for op in total if op[0] != "W"}
    waiting: list[set[Op]] = [set() for _ in range(machine.ranks)]
    for op in total:
        waiting[machine.rank_of(op[1])].add(op)
    done: dict[Op, float] = {}
    free = [0.0] * machine.ranks
    held, most = [0] * machine.ranks, [0] * machine.ranks
    events = [(0.0, rank) for rank in range(machine.ranks)]
    heapq.heapify(events)
    now = 0.0
    while any(waiting):
        assert events, "nothing can run within the limits"
        now, rank = heapq.heappop(events)
        if free[rank] > now:
            continue
        best: tuple[tuple[float, ...], Op] | None = None
        for op in waiting[rank]:
            needs = machine.needs(op)
            if any(need not in done for need in needs):
                continue
            ready = max(
                [0.0] + [done[n] + machine.hop_s(machine.rank_of(n[1]), rank) for n in needs]
            )
            if ready > now + 1e-9:
                continue
            kind, chunk, batch = op
            # The last slot is kept for a chunk that goes on where an earlier one came from.
            room = limit(rank) - (0 if chunk >= machine.ranks or machine.chunks == 1 else 1)
            if kind == "F" and held[rank] >= room:
                continue
            urgency = {"B": 0.0, "F": 1.0, "W": 2.0}[kind]
            key = (urgency, -chunk if kind != "W" else 0, batch)
            if best is None or key < best[0]:
                best = (key, op)
        if best is None:
            continue
        op = best[1]
        end = now + machine.duration(op)
        waiting[rank].discard(op)
        done[op] = free[rank] = end
        held[rank] += {"F": 1, "B": 0 if machine.splits else -1, "W": -1}[op[0]]
        most[rank] = max(most[rank], held[rank])
        heapq.heappush(events, (end, rank))
        for other in range(machine.ranks):
            heapq.heappush(events, (end + machine.hop_s(rank, other), other))
    return Run(makespan_s=max(free), held=most)


def gpipe(p: int, m: int) -> list[list[Op]]:
    return breadth_first(p, m, 1)


def breadth_first(p: int, m: int, v: int) -> list[list[Op]]:
    return [
        [("F", t * p + r, b) for t in range(v) for b in range(m)]
        + [("B", t * p + r, b) for t in reversed(range(v)) for b in range(m)]
        for r in range(p)
    ]


def one_f_one_b(p: int, m: int) -> list[list[Op]]:
    orders = []
    for r in range(p):
        warm = min(m, p - r - 1)
        order: list[Op] = [("F", r, b) for b in range(warm)]
        for b in range(m - warm):
            order += [("F", r, warm + b), ("B", r, b)]
        order += [("B", r, b) for b in range(m - warm, m)]
        orders.append(order)
    return orders


def interleaved(p: int, m: int, v: int) -> list[list[Op]]:
    """Megatron-LM's order: p microbatches per chunk at a time."""

    def place(k: int, r: int, *, forward: bool) -> tuple[int, int]:
        group, inside = divmod(k, p * v)
        turn = inside // p
        return (turn if forward else v - 1 - turn) * p + r, group * p + inside % p

    orders = []
    for r in range(p):
        warm = min(m * v, 2 * (p - r - 1) + (v - 1) * p)
        order: list[Op] = [("F", *place(k, r, forward=True)) for k in range(warm)]
        for k in range(m * v - warm):
            order.append(("F", *place(warm + k, r, forward=True)))
            order.append(("B", *place(k, r, forward=False)))
        order += [("B", *place(k, r, forward=False)) for k in range(m * v - warm, m * v)]
        orders.append(order)
    return orders
