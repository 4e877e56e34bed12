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

    Many flows per link: the largest of L loads with mean m exceeds it by the factor x that
    solves m (x ln x - x + 1) = c, a Poisson tail bound inverted with Lambert's W. The exponent c
    goes to half the squared expected maximum of L normals; the approach to that limit is fitted.
    Few flows: they meet nobody, or a link has two. Within 0.02 of `exact_hash_efficiency` for 2
    to 128 links with at least two flows each, and within 0.04 for fewer flows.

    Args:
        flows: Equal flows that hash independently, at least 1.
        links: Equal links, at least 1; need not be whole.

    References:
        Raab and Steger, "Balls into Bins - A Simple and Tight Analysis", RANDOM 1998, theorem 1.
        Blom, "Statistical Estimates and Transformed Beta-Variables", 1958 (normal maximum).
    """
    count = np.maximum(np.asarray(links, dtype=np.float64), 1.0)
    many = np.asarray(flows, dtype=np.float64)
    several = np.maximum(count, 2.0)
    few = np.minimum(many, several)
    alone = np.exp(gammaln(several + 1) - gammaln(several - few + 1) - few * np.log(several))
    sparse = few / several * (alone + (1 - alone) * _doubled(few, several))
    dense = np.maximum(_crowded(many, several), sparse)
    efficiency = np.where(many < several, sparse, dense)
    # One link is always full; from there to two, what they carry together grows evenly.
    carried = 1 + (count - 1) * (2 * efficiency - 1)
    return np.asarray(np.where(count < 2, carried / count, efficiency), dtype=np.float64)


def _doubled(flows: FloatArray, links: FloatArray) -> FloatArray:
    """One over the largest load of at most one flow per link, where two of them meet."""
    return np.asarray(np.minimum(_crowded(flows, links) * links / flows, 0.5))


def _crowded(flows: FloatArray, links: FloatArray) -> FloatArray:
    """The same where links have several flows each, from two links on."""
    load = flows / links
    normal_max = ndtri((links - 0.375) / (links + 0.25))
    approach = np.minimum(0.39 / normal_max * load**-0.42, 0.95)
    exponent = normal_max**2 / 2 * (1 - approach)
    # A hair above the branch point of W, where rounding would leave its domain.
    argument = np.maximum((exponent / load - 1) / np.e, -1 / np.e + 1e-15)
    return np.asarray(np.exp(-1 - lambertw(argument).real), dtype=np.float64)


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
