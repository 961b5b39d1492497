"""Methods: immutable descriptions that turn an objective into a `Schedule` for the kernel."""

from __future__ import annotations

from coordwise.methods.accelerated import ACDM, APCG, APPROX, NUACDM, ACDMns, NUACDMns
from coordwise.methods.auto import Auto
from coordwise.methods.base import Method, check_weights
from coordwise.methods.plain import RCDM, SDCA, Kaczmarz
from coordwise.validation import check_choice

__all__ = [
    "ACDM",
    "APCG",
    "APPROX",
    "METHODS",
    "NUACDM",
    "RCDM",
    "SDCA",
    "ACDMns",
    "Auto",
    "Kaczmarz",
    "Method",
    "NUACDMns",
    "check_weights",
    "get_method",
]

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Auto, NUACDM, NUACDMns, ACDM, ACDMns, APCG, APPROX, RCDM, Kaczmarz, SDCA)
}


def get_method(method: str | Method) -> Method:
    """A method by name with its default parameters, or the method itself."""
    if isinstance(method, type) and issubclass(method, Method):
        raise TypeError(f"method is the class {method.__name__}; make a method of it: {method.__name__}().")
    return method if isinstance(method, Method) else METHODS[check_choice("method", method, METHODS)]()
