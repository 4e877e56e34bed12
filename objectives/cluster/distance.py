"""How long light takes through the fibre between two buildings."""

from __future__ import annotations

FIBRE_S_PER_M = 4.897e-9
"""One way in standard single-mode fibre, group index 1.468: 4.897 us per km."""

LONG_ROUTE_M = 100e3
"""Beyond it, fibre does not run straight."""

LONG_ROUTE_FACTOR = 1.15
"""Fibre length over distance on long routes; an assumption, 15 to 20 % is usual."""


def route_factor(distance_m: float) -> float:
    """Fibre length over distance where the cluster does not say; an assumption.

    Args:
        distance_m: Between the ends.
    """
    return LONG_ROUTE_FACTOR if distance_m > LONG_ROUTE_M else 1.0


def propagation_s(distance_m: float, factor: float | None = None) -> float:
    """One-way delay over a distance.

    Args:
        distance_m: Between the ends.
        factor: Fibre length over distance; by `route_factor` when not given.
    """
    return distance_m * (route_factor(distance_m) if factor is None else factor) * FIBRE_S_PER_M
