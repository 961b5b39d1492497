"""A head from its shadows: parallel-beam tomography by Kaczmarz and by NU_ACDM.

Rays cross a 128 x 128 phantom in 150 directions; every ray measures the integral of the density along it. That is a
linear system with one row per ray, 27,300 equations for 16,384 pixels, and solving it row by row is how the first
scanners computed their pictures. Kaczmarz does just that. NU_ACDM takes the same rows with momentum and other
probabilities: after as many passes over the rays its picture is sharper.

    python examples/tomography.py [--out FOLDER] [--size 128]

writes tomography.png and tomography.svg. Needs matplotlib.
"""

import argparse
from pathlib import Path

import numpy as np

from coordwise import linalg
from coordwise.datasets.tomography import parallel_beams, phantom

SNAPSHOTS = (1, 5, 25, 125)
WINDOW = {"vmin": 0.0, "vmax": 0.45}  # of densities shown, so that the soft parts can be told apart
METHODS = {"Kaczmarz": linalg.kaczmarz, "NU_ACDM": linalg.nuacdm}
COLOURS = {"Kaczmarz": "#c2571a", "NU_ACDM": "#1f5fa8"}


def reconstruct(solver, A, b, truth):
    """Pictures after some passes; passes, relative residual and relative error of the picture after every pass."""
    pictures, errors = {}, [1.0]  # no passes, x = 0

    def look(x):
        errors.append(np.linalg.norm(x - truth) / np.linalg.norm(truth))
        if (done := len(errors) - 1) in SNAPSHOTS:
            pictures[done] = x
        return done == SNAPSHOTS[-1]

    result = solver(A, b, rtol=0.0, maxiter=SNAPSHOTS[-1], callback=look, random_state=0, full_output=True)
    residuals = result.history.gap / np.linalg.norm(b)
    return pictures, np.array(errors), residuals, result


def draw(size, sinogram, truth, runs, folder):
    """One figure: the data and the truth, the pictures getting sharper, and the curves."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "font.family": "DejaVu Sans", "axes.titlesize": 9, "svg.fonttype": "none"})
    figure = plt.figure(figsize=(11.2, 7.4), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.02, hspace=0.02)
    rows = figure.subfigures(2, 1, height_ratios=[1.72, 1.0])
    grid = rows[0].subplots(2, len(SNAPSHOTS) + 1)

    def show(axes, image, title="", colour="black", **options):
        axes.imshow(image, cmap="gray", **options)
        axes.set_title(title, color=colour, pad=4)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)

    show(grid[0, 0], truth.reshape(size, size), "the phantom", **WINDOW)
    show(grid[1, 0], sinogram, "what the rays measure", aspect="auto")
    grid[1, 0].set_xlabel("ray")
    grid[1, 0].set_ylabel("direction")
    for line, (name, (pictures, errors, _, _)) in enumerate(runs.items()):
        for column, done in enumerate(SNAPSHOTS):
            axes = grid[line, column + 1]
            title = f"{done} pass{'es' * (done > 1)}" if line == 0 else ""
            show(axes, pictures[done].reshape(size, size), title, **WINDOW)
            axes.text(
                0.97, 0.03, f"error {errors[done]:.1%}", transform=axes.transAxes, ha="right", color="white", fontsize=8
            )
        grid[line, 1].set_ylabel(name, color=COLOURS[name], fontsize=12, fontweight="bold", labelpad=6)
    curves = rows[1].subplots(1, 2)
    titles = ("Residual  |b − Ax| / |b|", "Error of the picture  |x − x*| / |x*|")
    for axes, title, which in zip(curves, titles, (2, 1), strict=True):
        for name, run in runs.items():
            values = run[which]
            axes.loglog(np.arange(1, len(values)), values[1:], color=COLOURS[name], lw=1.8)
            axes.annotate(
                name,
                (len(values) - 1, values[-1]),
                (5, 0),
                textcoords="offset points",
                color=COLOURS[name],
                va="center",
            )
            axes.plot(SNAPSHOTS, values[list(SNAPSHOTS)], "o", color=COLOURS[name], ms=4)
        axes.set_title(title, loc="left")
        axes.set_xlabel("passes over the rays")
        axes.set_xlim(0.95, SNAPSHOTS[-1] * 2.2)
        axes.set_xticks(SNAPSHOTS, [str(done) for done in SNAPSHOTS])
        axes.minorticks_off()
        axes.set_ylim(bottom=10 ** np.floor(np.log10(min(run[which].min() for run in runs.values()))))
        axes.grid(True, which="major", color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        figure.savefig(folder / f"tomography.{kind}", dpi=160, metadata={"Date": None} if kind == "svg" else None)
    plt.close(figure)


def main():
    """Measure, reconstruct twice, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("tomography"), help="folder for the picture")
    parser.add_argument("--size", type=int, default=128, help="pixels along one side")
    args = parser.parse_args()
    directions = 150 * args.size // 128
    A = parallel_beams(args.size, directions)
    truth = phantom(args.size).ravel()
    b = A @ truth
    print(f"{A.shape[0]} rays through {A.shape[1]} pixels, {A.nnz} entries")
    runs = {}
    for name, solver in METHODS.items():
        runs[name] = reconstruct(solver, A, b, truth)
        _, errors, residuals, result = runs[name]
        print(
            f"{name:9} {result.passes:4.0f} passes, {result.seconds:.2f} s: |b - Ax|/|b| = {residuals[-1]:.1e}, "
            f"|x - x*|/|x*| = {errors[-1]:.1e}"
        )
    draw(args.size, b.reshape(directions, -1), truth, runs, args.out)
    print(f"written to {args.out / 'tomography.png'}")


if __name__ == "__main__":
    main()
