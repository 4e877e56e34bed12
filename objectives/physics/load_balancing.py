"""How evenly flows fill parallel links: hashing, flowlets, spraying.

Links of equal rate stand side by side; the transfer is over when the fullest one is done, so the
efficiency is the mean load over the largest.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, lambertw, ndtri

from objectives.physics.arrays import FloatArray, Numbers


def hash_efficiency(flows: Numbers, links: Numbers) -> FloatArray:
    """Mean over largest load when equal flows pick links at random, E[mean / max].

    A closed form: the largest of L loads with mean m exceeds it by the factor x that solves
    m (x ln x - x + 1) = c, a Poisson tail bound inverted with Lambert's W. The exponent c goes
    to half the squared expected maximum of L normals for many flows per link; the approach to
    that limit is fitted to `exact_hash_efficiency`, within 0.02 for 2 to 128 links and 1 to
    32 flows per link. Fewer flows than links cannot fill more links than there are flows.

    Args:
        flows: Equal flows that hash independently, at least 1.
        links: Equal links, at least 1; need not be whole.

    References:
        Raab and Steger, "Balls into Bins - A Simple and Tight Analysis", RANDOM 1998, theorem 1.
        Blom, "Statistical Estimates and Transformed Beta-Variables", 1958 (normal maximum).
    """
    count = np.maximum(np.asarray(links, dtype=np.float64), 1.0)
    load = np.asarray(flows, dtype=np.float64) / count
    # Between one and two links the maximum is interpolated, so that it is smooth in the links.
    normal_max = np.minimum(1.0, count - 1) * ndtri(
        (np.maximum(count, 2.0) - 0.375) / (np.maximum(count, 2.0) + 0.25)
    )
    dense = np.maximum(load, 1.0)
    approach = np.minimum(0.39 / np.maximum(normal_max, 1e-9) * dense**-0.42, 0.95)
    exponent = normal_max**2 / 2 * (1 - approach)
    excess = 1 + lambertw((exponent / dense - 1) / np.e).real
    return np.asarray(np.exp(-excess) * np.minimum(load, 1.0), dtype=np.float64)


def exact_hash_efficiency(flows: int, links: int) -> float:
    """E[mean / max] of equal flows on equal links, exactly; slow for thousands of flows.

    The loads are multinomial, that is independent Poisson counts given their sum, so the
    distribution of the largest is a power of a truncated series, read off at the sum.

    Args:
        flows: At least 1.
        links: At least 1.
    """
    mean = flows / links
    counts = np.arange(flows + 1)
    weights = np.exp(counts * np.log(mean) - mean - gammaln(counts + 1))
    whole = np.exp(flows * np.log(flows) - flows - gammaln(flows + 1))
    expected = 0.0
    below = 0.0
    for largest in range(int(np.ceil(mean)), flows + 1):
        at_most = _power(np.where(counts <= largest, weights, 0.0), links)[flows] / whole
        expected += (at_most - below) * mean / largest
        below = at_most
        if below > 1 - 1e-12:
            break
    return float(expected)


def _power(series: FloatArray, exponent: int) -> FloatArray:
    """A power of a truncated series, by squaring."""
    result = np.zeros_like(series)
    result[0] = 1.0
    base = series
    while exponent:
        if exponent & 1:
            result = np.convolve(result, base)[: len(series)]
        exponent >>= 1
        if exponent:
            base = np.convolve(base, base)[: len(series)]
    return result
