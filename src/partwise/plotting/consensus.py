"""Plots of a consensus: stability over ranks, the clustergram of runs, and the clustermap of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..selection import Consensus, Programs
from ..selection.clustering import distances_between
from ..selection.connectivity import Connectivity
from ..statistics import Array
from .figures import COLOURS, INK, Canvas, documented, line_style, new_figure, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 50  # of the histogram of the density
MEASURES = {"error": ("error\n(relative)", "all samples"), "heldout_error": ("error\n(relative)", "held out")}


@documented
def ranks(found: Consensus, *, title: str | None = None, figure: Canvas | None = None) -> Any:
    """Plot the result of `partwise.consensus`: stability and error over the rank. No rank is marked.

    Parameters
    ----------
    found : Consensus

    Examples
    --------
    >>> import partwise as pw
    >>> found = pw.consensus(np.eye(6) + 1, ranks=[1, 2], n_runs=3, random_state=0)
    >>> [axis.get_xlabel() for axis in ranks(found).axes]
    ['', 'rank']
    """
    if not isinstance(found, Consensus):
        raise ValueError(f"found has type {type(found).__name__}: give the Consensus that partwise.consensus returns")
    figure = figure or new_figure(6.4, 4.6)
    above, below = figure.subplots(2, 1, sharex=True)
    numbers = [row["rank"] for row in found.rows]
    lines = {name: label for name, (_, label) in MEASURES.items() if any(row[name] is not None for row in found.rows)}
    draw_line(above, numbers, [row["stability"] for row in found.rows], 0)
    for k, (name, label) in enumerate(lines.items(), start=1):
        draw_line(below, numbers, [row[name] for row in found.rows], k, label)
    above.set_ylabel("stability\n(silhouette)", fontsize=9)
    below.set_ylabel(MEASURES["error"][0], fontsize=9)
    below.set_xlabel("rank", fontsize=9)
    if len(numbers) <= 12:
        below.set_xticks(numbers)
    if len(lines) > 1:
        below.legend(frameon=False, fontsize=8)
    figure.align_ylabels([above, below])
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def draw_line(axis: Axes, numbers: list[int], values: list[Any], k: int, label: str = "") -> None:
    """Draw one measure over the ranks; unknown values are left out."""
    known = [np.nan if value is None else value for value in values]
    axis.plot(numbers, known, marker="osD"[k], markersize=4.5, linewidth=1.4, label=label, **line_style(k))
    axis.tick_params(labelsize=8)
    open_frame(axis, grid=True)


@documented
def clustergram(
    found: Programs, *, names: Sequence[object] | None = None, title: str | None = None, figure: Canvas | None = None
) -> Any:
    """Draw the distances between the components of all runs, cluster by cluster, with a histogram of their density.

    Dark squares on the diagonal are components that recur. The histogram shows the local density of all components and
    the threshold: components to the right of it were left out.

    Parameters
    ----------
    found : Programs
    names : sequence, optional
        Names of the programs; by default their numbers, from 0.

    Examples
    --------
    >>> import partwise as pw
    >>> found = pw.consensus(np.eye(6) + 1, ranks=2, n_runs=3, random_state=0)
    >>> len(clustergram(found.at(2)).axes)
    4
    """
    if not isinstance(found, Programs) or found.spectra is None:
        raise ValueError(f"found has type {type(found).__name__}: give the Programs that Consensus.at returns")
    listed = range(found.rank) if names is None else list(names)
    if len(listed) != found.rank:
        raise ValueError(f"names has {len(listed)} entries, but there are {found.rank} programs")
    figure = figure or new_figure(7.6, 4.2)
    grid = figure.add_gridspec(2, 3, width_ratios=(0.25, 5, 3.6), height_ratios=(5, 0.25))
    distances = distances_between(found.spectra[found.kept])
    labels = found.labels[found.kept]
    order = np.concatenate([by_tree(distances, np.flatnonzero(labels == j)) for j in range(found.rank)])
    main = figure.add_subplot(grid[0, 1])
    drawn = main.imshow(distances[np.ix_(order, order)], cmap="viridis", aspect="auto", interpolation="nearest")
    main.set_axis_off()
    side = figure.add_subplot(grid[0, 0])
    colours = np.array([shade(COLOURS[j % len(COLOURS)]) for j in labels[order]])
    side.imshow(colours[:, None], aspect="auto", interpolation="nearest")
    side.set_xticks([])
    middles = [float(np.flatnonzero(labels[order] == j).mean()) for j in range(found.rank)]
    side.set_yticks(middles, [str(name) for name in listed], fontsize=8, parse_math=False)
    side.set_ylabel("program", fontsize=9)
    figure.colorbar(drawn, cax=figure.add_subplot(grid[1, 1]), orientation="horizontal", label="distance")
    draw_density(figure.add_subplot(grid[:, 2]), found)
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def draw_density(axis: Axes, found: Programs) -> None:
    """A histogram of the local density, with the threshold."""
    known = found.density[np.isfinite(found.density)]
    edges = np.linspace(0, max(1.0, float(known.max(initial=0))), BINS).tolist()
    axis.hist(known, bins=edges, color=INK)
    if found.density_threshold < axis.get_xlim()[1]:
        axis.axvline(found.density_threshold, color="k", linestyle="--", linewidth=1)
    kept = np.count_nonzero(found.kept)
    axis.set_xlabel("mean distance to nearest neighbours", fontsize=9)
    axis.set_ylabel("components of runs", fontsize=9)
    axis.set_title(f"{kept} of {len(found.kept)} kept", fontsize=9)
    axis.tick_params(labelsize=8)
    open_frame(axis)


def by_tree(distances: Array, which: Array) -> Array:
    """Rows ``which`` in the order of their average-linkage tree."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(which) < 3:
        return which
    inside = squareform(distances[np.ix_(which, which)], checks=False)
    return np.asarray(which[leaves_list(linkage(np.maximum(inside, 0), "average"))])


def shade(colour: str) -> tuple[float, ...]:
    """A colour as numbers."""
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


@documented
def clustermap(found: Connectivity, *, title: str | None = None, figure: Canvas | None = None) -> Any:
    """Draw how often two samples were in the same class, in the order of the tree of samples.

    Parameters
    ----------
    found : Connectivity

    Examples
    --------
    >>> import partwise as pw
    >>> found = pw.consensus(np.kron(np.eye(2), np.ones((3, 4))), ranks=2, n_runs=3, random_state=0)
    >>> len(clustermap(found.connectivity(2)).axes)
    2
    """
    if not isinstance(found, Connectivity):
        raise ValueError(f"found has type {type(found).__name__}: give what Consensus.connectivity returns")
    figure = figure or new_figure(5, 4.2)
    axis = figure.subplots()
    matrix = found.matrix[np.ix_(found.order, found.order)]
    drawn = axis.imshow(matrix, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    figure.colorbar(drawn, ax=axis, label="share of runs in the same class")
    few = found.sample_names is not None and len(found.order) <= 40
    names = [found.sample_names[i] for i in found.order] if few and found.sample_names is not None else []
    axis.set_yticks(range(len(names)), names, fontsize=7, parse_math=False)
    axis.set_xticks([])
    axis.set_xlabel("samples", fontsize=9)
    axis.set_title(f"cophenetic correlation {found.cophenetic:.3f}", fontsize=9)
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    return figure
