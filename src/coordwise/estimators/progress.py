"""Progress of a fit: one live line, callbacks of the user's, and scikit-learn's callback protocol."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from coordwise.recording import Progress, says_stop

__all__ = ["Watch", "callback_support", "with_callbacks"]

try:  # scikit-learn 1.9 and newer
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Nothing to manage."""
        return method

    CallbackSupportMixin = None


def callback_support() -> type:
    """scikit-learn's mixin for callbacks, where there is one."""
    return CallbackSupportMixin or object


class Watch:
    """Called with a `Progress` at every record: prints, calls the callbacks, and stops the fit if one returns True.

    It knows how much is left of the time limit, which is that of the whole fit.
    """

    def __init__(
        self,
        name: str,
        tol: float,
        verbose: int,
        callbacks: list[Callable[[Any], object]],
        tell: Any = None,
        time_limit: float | None = None,
    ) -> None:
        self.name, self.tol, self.verbose, self.callbacks, self.tell = name, tol, int(verbose), callbacks, tell
        self.begun = self.shown = time.perf_counter()
        self.time_limit = time_limit
        self.live = self.verbose > 0 and sys.stderr.isatty()

    def __call__(self, progress: Progress) -> bool:
        """Whether to stop."""
        if self.verbose:
            self._show(progress)
        stop = [says_stop(callback(progress)) for callback in self.callbacks]
        if self.tell is not None:
            stop.append(bool(self.tell(progress)))
        return any(stop)

    def left(self, share: float = 1.0) -> float | None:
        """Seconds of this share of the time limit that are left; None if there is no limit."""
        if self.time_limit is None:
            return None
        return max(share * self.time_limit - (time.perf_counter() - self.begun), 0.0)

    def _show(self, progress: Progress) -> None:
        now = time.perf_counter()
        if now - self.shown < (0.1 if self.live else 5.0 / self.verbose):
            return
        self.shown = now
        gap, scale = np.max(progress.gap), np.max(progress.scale)
        left = progress.predicted_passes_left
        tail = f", about {left:.0f} left" if np.isfinite(left) else ""
        line = (
            f"{self.name}: pass {progress.passes:.0f}{tail}, gap {gap:.2e} (stops at {self.tol * scale:.2e}), "
            f"{now - self.begun:.1f} s"
        )
        print(f"\r{line:<100}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the live line."""
        if self.live:
            print(file=sys.stderr, flush=True)
