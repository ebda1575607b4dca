"""How far a share that samples tell may be off."""

from __future__ import annotations

from math import sqrt

NINETEEN_OF_TWENTY = 1.959964  # standard deviations of the normal distribution


def margin(share: float, samples: float) -> float:
    """The larger distance from `share` to the ends of its 95 % interval, by E. B. Wilson, "Probable Inference, the Law
    of Succession, and Statistical Inference" (1927), for `samples` samples of the same weight."""
    if samples <= 0:
        return 1.0
    z2 = NINETEEN_OF_TWENTY**2 / samples
    centre = (share + z2 / 2) / (1 + z2)
    half = sqrt(z2 * share * (1 - share) + z2 * z2 / 4) / (1 + z2)
    return max(centre + half - share, share - centre + half)
