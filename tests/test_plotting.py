"""Pictures of runs."""

import math

import numpy as np
import pytest

import coordwise as cw
from coordwise.plotting import Band, draw_bands, few_log_ticks, plot_convergence

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 8)), rng.standard_normal(40)
    problem = cw.ERM(A, b, penalty="l2", lam=0.1)
    return {m: cw.solve(problem.dual(), m, tol=1e-6, record_growth=0) for m in ("rcdm", "nu_acdm")}


def axes():
    return mpl.figure.Figure().subplots()


def line_of(ax, label):
    (line,) = [line for line in ax.get_lines() if line.get_label() == label]
    return line


def test_lines_are_the_histories(runs):
    ax = plot_convergence(runs)
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(runs)
    for label, run in runs.items():
        x, y = line_of(ax, label).get_data()
        np.testing.assert_array_equal(x, run.history.passes)
        np.testing.assert_array_equal(y, run.history.gap)
    assert ax.get_ylabel() == "duality gap"
    assert ax.get_xlabel() == "passes (entries touched / nnz)"


@pytest.mark.parametrize(("x", "label"), [("iterations", "iterations"), ("seconds", "seconds, without measuring")])
def test_other_axes(x, label, runs):
    ax = plot_convergence(runs, x=x)
    np.testing.assert_array_equal(line_of(ax, "rcdm").get_xdata(), getattr(runs["rcdm"].history, x))
    assert ax.get_xlabel() == label


@pytest.mark.parametrize("y", ["value", "primal"])
def test_distances_to_a_minimum(y, runs):
    history = runs["nu_acdm"].history
    low = float(getattr(history, y)[-1]) if y == "value" else float(history.primal.min())
    ax = plot_convergence(runs, y=y, minimum=low)
    drawn = line_of(ax, "nu_acdm").get_ydata()
    expected = getattr(history, y) - low
    np.testing.assert_array_equal(drawn[expected > 0], expected[expected > 0])
    assert np.all(np.isnan(drawn[expected <= 0]))  # a logarithm has no place for them
    assert np.any(expected <= 0)
    assert ax.get_ylabel() == f"{y} − minimum"


def test_one_run_is_labelled_by_its_method(runs):
    ax = plot_convergence(runs["nu_acdm"])
    assert [line.get_label() for line in ax.get_lines()] == [runs["nu_acdm"].method]


def test_axes_given_are_drawn_into(runs):
    ax = axes()
    assert plot_convergence(runs, ax=ax) is ax
    assert len(ax.get_lines()) == 2
    assert plt.get_fignums() == []


def test_the_certificate_of_a_system_names_the_axis():
    A = np.eye(4) + 0.1
    ax = plot_convergence(cw.solve(cw.LinearSystem(A, np.ones(4)), tol=1e-6), ax=axes())
    assert ax.get_ylabel() == "residual norm"


def test_drawing_renders(runs, tmp_path):
    ax = plot_convergence(runs)
    ax.figure.savefig(tmp_path / "runs.png")
    pixels = plt.imread(tmp_path / "runs.png")
    assert pixels[..., :3].min() < 0.2 < pixels[..., :3].max()


def test_several_outputs_are_refused():
    rng = np.random.default_rng(0)
    run = cw.solve(cw.ERM(rng.standard_normal((20, 4)), rng.standard_normal((20, 2)), lam=1.0).dual(), tol=1e-3)
    with pytest.raises(ValueError, match=r"results\['many'\] has several outputs.*shape \(n,\)"):
        plot_convergence({"many": run}, ax=axes())


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"y": "loss"}, ValueError, "y='loss'.*gap.*primal.*value"),
        ({"x": "time"}, ValueError, "x='time'.*iterations.*passes.*seconds"),
        ({"y": "value"}, ValueError, "y='value' is drawn as a distance; give minimum="),
        ({"y": "primal", "minimum": "low"}, TypeError, "minimum"),
        ({"y": "primal", "minimum": math.nan}, ValueError, "minimum"),
    ],
)
def test_wrong_arguments_are_named(changes, error, said, runs):
    with pytest.raises(error, match=said):
        plot_convergence(runs, ax=axes(), **changes)


def test_what_is_not_a_result_is_named(runs):
    with pytest.raises(TypeError, match=r"results\['mine'\] must be a coordwise Result, not ndarray"):
        plot_convergence(runs | {"mine": np.ones(3)}, ax=axes())


def test_no_results_are_refused():
    with pytest.raises((TypeError, ValueError), match="results"):
        plot_convergence({}, ax=axes())


def test_a_list_of_results_is_refused(runs):
    with pytest.raises((TypeError, ValueError), match="results"):
        plot_convergence(list(runs.values()), ax=axes())


# Bands

X = np.linspace(0, 10, 21)


def band(rate, spread=0.0):
    middle = np.exp(-rate * X)
    return Band(X, middle, middle * math.exp(-spread), middle * math.exp(spread))


def test_bands_are_medians_and_shades():
    ax = axes()
    draw_bands(ax, {"a": band(1.0, 0.5), "b": band(2.0)})
    np.testing.assert_array_equal(line_of(ax, "a").get_ydata(), np.exp(-X))
    (shade,) = ax.collections  # b has no range
    corners = shade.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(math.exp(-10.5))
    assert corners[:, 1].max() == pytest.approx(math.exp(0.5))
    assert ax.get_yscale() == "log"
    assert ax.get_xlim() == (0, 10)


def test_the_floor_cuts_the_axis_only_where_it_must():
    ax = axes()
    draw_bands(ax, {"a": band(1.0)}, floor=1e-3)
    assert ax.get_ylim()[0] == pytest.approx(1e-3)
    ax = axes()
    draw_bands(ax, {"a": band(0.1)}, floor=1e-3)
    assert ax.get_ylim()[0] > 0.1


def look(ax):
    return {line.get_label(): (mpl.colors.to_hex(line.get_color()), line.get_linestyle()) for line in ax.get_lines()}


def test_methods_keep_their_colours():
    one, two = axes(), axes()
    draw_bands(one, {"NU_ACDM": band(1), "ACDM": band(2), "RCDM": band(3)})
    draw_bands(two, {"RCDM": band(1), "mine": band(2), "NU_ACDM": band(3), "other": band(4)})
    assert look(one)["NU_ACDM"] == look(two)["NU_ACDM"]
    assert look(one)["RCDM"] == look(two)["RCDM"]
    assert len(set(look(one).values())) == 3
    assert len({colour for colour, _ in look(two).values()}) == 4


def test_the_same_colour_stands_for_line_and_shade():
    ax = axes()
    draw_bands(ax, {"a": band(1.0, 0.5), "b": band(2.0, 0.5)})
    for line, shade in zip(ax.get_lines(), ax.collections, strict=True):
        assert mpl.colors.to_hex(shade.get_facecolor()[0]) == mpl.colors.to_hex(line.get_color())


def test_more_lines_than_colours_are_drawn():
    ax = axes()
    draw_bands(ax, {f"run {k}": band(1 + k) for k in range(12)})
    assert len(ax.get_lines()) == 12


def test_ordered_labels_take_the_colours_of_a_scale():
    labels = [f"β = {k}" for k in range(5)]
    ax = axes()
    draw_bands(ax, {label: band(1 + k) for k, label in enumerate(labels)} | {"APCG": band(9)}, ordered=labels)
    colours = [look(ax)[label][0] for label in labels]
    lightness = [np.dot(mpl.colors.to_rgb(colour), (0.3, 0.59, 0.11)) for colour in colours]
    assert lightness == sorted(lightness)
    assert len(set(colours)) == 5
    assert look(ax)["APCG"][0] not in colours


# Ticks


def ticks(low, high):
    ax = axes()
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    few_log_ticks(ax.yaxis)
    ax.figure.canvas.draw()
    labels = zip(ax.get_yticks(), (text.get_text() for text in ax.get_yticklabels()), strict=True)
    return [(value, text) for value, text in labels if low <= value <= high], ax


@pytest.mark.parametrize("low", [1e-14, 3e-7, 0.02, 40.0])
@pytest.mark.parametrize("span", [3.0, 30.0, 300.0, 1e6, 1e13, 1e30])
def test_few_ticks_but_enough(low, span):
    found, ax = ticks(low, low * span)
    assert 1 <= len(found) <= 7
    assert all(text for _, text in found)
    assert len(ax.yaxis.get_minorticklocs()) == 0
    if span >= 100:
        powers = [math.log10(value) for value, _ in found]
        assert powers == pytest.approx(np.round(powers))
        assert len(found) >= 2


def test_ticks_of_a_short_axis_are_round():
    found, _ = ticks(0.9, 6.0)
    assert [value for value, _ in found] == pytest.approx([1, 2, 5])
    found, _ = ticks(0.9, 50.0)
    assert [value for value, _ in found] == pytest.approx([1, 3, 10, 30])
