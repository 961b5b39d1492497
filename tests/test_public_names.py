"""What `import coordwise` offers: names, modules loaded on first use, and the extra that a missing package is from."""

import subprocess
import sys

import pytest

import coordwise as cw

LATER = ["bench", "dask", "datasets", "estimators", "experiments", "fitting", "linalg", "plotting"]
SHOWN = [*LATER, "reference", "sampling"]


def python(code, *arguments):
    """Run a program in a process of its own; what it prints."""
    done = subprocess.run([sys.executable, *arguments, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", LATER)
def test_modules_are_loaded_on_first_use(name):
    print_it = f"print('coordwise.{name}' in sys.modules, cw.{name}.__name__)"
    assert python(f"import sys, coordwise as cw; {print_it}") == f"False coordwise.{name}"


def test_import_loads_no_extra():
    loaded = python("import sys, coordwise; print(*sys.modules)").split()
    for package in ("sklearn", "matplotlib", "rich", "jinja2", "pooch", "dask", "pandas"):
        assert package not in loaded


def test_every_name_that_is_shown_is_there_and_public():
    shown = dir(cw)
    assert sorted(shown) == sorted([*cw.__all__, *SHOWN, "__version__"])
    for name in shown:
        assert getattr(cw, name) is not None
    assert python("from coordwise import *; print('estimators' in globals(), 'ERM' in globals())") == "False True"


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="module 'coordwise' has no attribute 'linalgebra'"):
        cw.linalgebra  # noqa: B018


@pytest.mark.parametrize(
    ("package", "use", "advice"),
    [
        ("sklearn", "from coordwise.estimators import Ridge", 'scikit-learn: pip install ".[sklearn]"'),
        ("sklearn", "cw.estimators.Ridge", 'scikit-learn: pip install ".[sklearn]"'),
        ("distributed", "import coordwise.dask", 'distributed: pip install ".[dask]"'),
        ("matplotlib", "cw.plotting.plot_convergence(result)", 'matplotlib: pip install ".[plot]"'),
    ],
)
def test_a_missing_extra_is_named(package, use, advice):
    """A package is hidden from the import system, as if it were not installed."""
    code = f"""
import sys, importlib.util
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == {package!r}:
            raise ModuleNotFoundError(name)
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {package!r} else real(name, *more)
sys.meta_path.insert(0, Hidden())
import numpy as np, coordwise as cw
result = cw.solve(cw.LinearSystem(np.eye(2), np.ones(2)))
try:
    {use}
except ModuleNotFoundError as error:
    print(error)
"""
    assert python(code).endswith(f"needs {advice}.")
