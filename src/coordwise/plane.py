"""A better primal point than the one that dual variables lead to, in the plane of the last two of those.

After few passes over the samples P(w) is often far more above its minimum than -D(y) is below it: w = grad r*(-(1/W)
A'y) has moved too far, or swings to and fro. The duality gap P(w) + D(y) holds for every w, and the certificate knows
the scores Aw of the w's that y led to. So P is known on all of their plane for a sum over the samples, without a
product with the data. It is minimised along two lines: through the last two of them, and from there through 0. The
first is what helps losses that bend, where w swings; the second helps those with kinks and weak penalties, where w is
too long.
"""

from __future__ import annotations

import math

import numpy as np

from coordwise.kernels import Terms
from coordwise.lines import flattest
from coordwise.validation import FloatArray

__all__ = ["Plane"]

FIRST = 0.25  # of the distance between two points, or of a point to 0: how far a line is looked along at first
MOST = 7  # lengths that are looked at after that one


class Plane:
    """The last two points that a run's dual variables led to, and the best that is known in their plane; of one output.

    Parameters
    ----------
    terms : Terms
        The losses, (1/W) s_i phi(.; b_i).
    l2, total : float
        The penalty is (l2/2) |w|^2, and `total` is W.
    """

    def __init__(self, terms: Terms, l2: float, total: float) -> None:
        self.terms, self.l2, self.total = terms, l2, total
        self._images: list[FloatArray] = []
        self._scores: list[FloatArray] = []

    def see(self, image: FloatArray, g: FloatArray) -> None:
        """The next point: the image A'y (d x 1), kept, and what the certificate has, g = -(1/W) Aw (n x 1)."""
        self._images = [*self._images[-1:], image]
        self._scores = [*self._scores[-1:], -self.total * g]

    @property
    def known(self) -> bool:
        """Whether there are two points."""
        return len(self._images) == 2 and bool(self._images[0].any())

    def best(self, *, brief: bool = False) -> tuple[FloatArray, float]:
        """(w, P(w)), w of shape (d, 1); the first line alone will do if it is to be brief."""
        before, last = self._images
        across = before[:, 0] @ last[:, 0]
        products = np.array([[before[:, 0] @ before[:, 0], across], [across, last[:, 0] @ last[:, 0]]])
        products = products / (self.l2 * self.total) / (self.l2 * self.total)  # inner products of the two w's
        share, t = np.array([0.0, 1.0]), self._scores[1]
        share, t = self._lowest(products, share, t, np.array([-1.0, 1.0]))
        if not brief:
            share, t = self._lowest(products, share, t, share)
        value = float(self.terms.value(t)[0] + self.l2 / 2 * (share @ products @ share))
        first, second = share / -(self.l2 * self.total)
        return first * before + second * last, value

    def _lowest(
        self, products: FloatArray, share: FloatArray, t: FloatArray, way: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Where P is about lowest along a way from the point that has these shares of the two: shares and scores."""
        move = way[0] * self._scores[0] + way[1] * self._scores[1]
        across, along = share @ products @ way, way @ products @ way

        def slope(length: float) -> float:
            return float(self.terms.slope(t, move, length) + self.l2 * (across + length * along))

        if (here := slope(0.0)) == 0:
            return share, t
        sign = math.copysign(1.0, -here)  # it may fall either way
        length = sign * flattest(lambda length: -sign * slope(sign * length), abs(here), first=FIRST, most=MOST)
        return share + length * way, t + length * move
