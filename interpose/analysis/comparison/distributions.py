"""The functions of statistics that comparisons need; numpy and scipy are no dependencies for so little."""

from __future__ import annotations

import math
from statistics import NormalDist

MOST_FREEDOM = 1e5  # beyond that Student's distribution is the normal one, up to the sixth figure
_SMALLEST = 1e-300
_STEPS_AT_MOST = 200
_SERIES_FROM = 8.0  # from there on the asymptotic series have twelve figures


def student_beyond(t: float, freedom: float) -> float:
    """The probability that a variable with Student's distribution is farther from 0 than `t`, on either side."""
    if freedom >= MOST_FREEDOM:
        return 2 * NormalDist().cdf(-abs(t))
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def student_bound(beyond: float, freedom: float) -> float:
    """The t beyond which, on either side, Student's distribution has the probability `beyond`.

    It is farther out than that of the normal distribution, and Newton's steps from there never overshoot.
    """
    t = -NormalDist().inv_cdf(beyond / 2)
    if freedom >= MOST_FREEDOM:
        return t
    log_front = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    for _ in range(_STEPS_AT_MOST):
        density = math.exp(log_front - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = (student_beyond(t, freedom) - beyond) / (2 * density)
        t += step
        if abs(step) < 1e-8 * t:
            break
    return t


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function (Abramowitz and Stegun, 26.5.8: a continued fraction)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # there the fraction of the other tail converges faster
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d1 / (1 + d2 / (1 + …)), from the front on (Lentz)."""
    found, upper, lower = 1.0, 1.0, 0.0
    for step in range(1, 1000):
        half = step // 2
        if step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        lower = 1 / _not_nought(1 + term * lower)
        upper = _not_nought(1 + term / upper)
        found *= upper * lower
        if abs(upper * lower - 1) < 1e-15:
            break
    return found


def _not_nought(number: float) -> float:
    return number if abs(number) > _SMALLEST else _SMALLEST


def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function, of x above 0."""
    below = 0.0
    while x < _SERIES_FROM:
        below -= 1 / x
        x += 1
    y = 1 / (x * x)
    return below + math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))


def trigamma(x: float) -> float:
    """The derivative of `digamma`."""
    below = 0.0
    while x < _SERIES_FROM:
        below += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    return below + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * 5 / 66))))


def trigamma_inverse(value: float) -> float:
    """The x above 0 at which `trigamma` is `value`, which falls from infinity to 0."""
    low, high = 1e-8, 1e8
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return high
