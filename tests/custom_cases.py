"""Losses and penalties written as users write them, equal to ones of the library."""

import numpy as np

import coordwise as cw


class Huber(cw.losses.CustomLoss):
    """As losses.Huber(1.0): smooth, with a bounded domain."""

    name = "my huber"
    smoothness = 1.0

    def value(self, t, b):
        r = np.abs(t - b)
        return np.where(r <= 1, r**2 / 2, r - 0.5)

    def derivative(self, t, b):
        return np.clip(t - b, -1, 1)

    def conjugate(self, y, b):
        return np.where(np.abs(y) <= 1, y**2 / 2 + b * y, np.inf)

    def prox(self, t, step, b):
        r = t - b
        return b + np.where(np.abs(r) <= 1 + step, r / (1 + step), r - np.sign(r) * step)

    def domain(self, b):
        return -1.0, 1.0


class Hinge(cw.losses.CustomLoss):
    """As losses.Hinge(): with a kink, and labels."""

    name = "my hinge"
    classification = True

    def value(self, t, b):
        return np.maximum(1 - b * t, 0.0)

    def derivative(self, t, b):
        return np.where(b * t < 1, -b, 0.0)

    def conjugate(self, y, b):
        return np.where((b * y <= 0) & (b * y >= -1), b * y, np.inf)

    def prox(self, t, step, b):
        return b * np.where(b * t < 1 - step, b * t + step, np.where(b * t < 1, 1.0, b * t))

    def domain(self, b):
        return np.minimum(-b, 0), np.maximum(-b, 0)


class Net(cw.penalties.CustomPenalty):
    """l1 |w|_1 + (l2/2) |w|^2."""

    def __init__(self, l1, l2):
        self.l1, self.strong_convexity = l1, l2

    def value(self, w):
        return self.l1 * np.abs(w) + self.strong_convexity / 2 * w**2

    def conjugate(self, v):
        over = np.maximum(np.abs(v) - self.l1, 0)
        if self.strong_convexity == 0:
            return np.where(over > 0, np.inf, 0.0)
        return over**2 / (2 * self.strong_convexity)

    def prox(self, t, step):
        return np.sign(t) * np.maximum(np.abs(t) - step * self.l1, 0) / (1 + step * self.strong_convexity)

    def derivative_of_conjugate(self, v):
        return np.sign(v) * np.maximum(np.abs(v) - self.l1, 0) / self.strong_convexity

    def domain_of_conjugate(self):
        return (-self.l1, self.l1) if self.strong_convexity == 0 else (-np.inf, np.inf)
