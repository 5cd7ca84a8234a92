"""What the explorer holds: numbers, names and pictures of all levels, as JSON and one block of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import Matrix, with_divergence
from ..engine.metrics import specificity
from ..engine.origins import Sound
from ..engine.result import Result
from ..engine.solving import evaluated
from ..engine.summary import Summary
from ..plotting.looks import Look
from ..statistics import Array
from .packed import STEPS, Arrays
from .views import PIXELS, Cuts, View, name_of, view_of

TOP = 8  # strongest samples and features of a component
THUMBNAILS = 800_000  # pixels of all samples that are shown in small
PICTURED = 600_000  # numbers about all samples that are shown: data, and activations at all levels
FEWEST, MOST = 16, 1000  # samples that are shown
TIMES = 600  # points of a time course
OUTSIDE = 255  # a pixel outside of the mask


class Level:
    """One fit: ``activations`` (with the factor D in the middle, if any), explained shares, and what it was asked."""

    def __init__(self, data: Matrix, asked: float | None, result: Result, heldout: float | None = None) -> None:
        self.asked, self.result, self.heldout = asked, result, heldout
        activations = result.activations if result.middle is None else result.activations @ result.middle
        source = data if result.loss == "squared" else with_divergence(data)
        found = evaluated(source, result.factors[1], np.array(activations, order="F"))
        self.components, self.activations = result.components, np.asarray(activations)
        self.error, self.explained = found.relative_error, found.explained
        self.sparsity = result.sparsity

    def strongest_samples(self, top: int) -> Array:
        """The samples with the largest activations of each component (r × top), strongest first."""
        return np.argsort(-self.activations, axis=0, kind="stable")[:top].T

    def facts(self) -> dict[str, Any]:
        """The numbers that the page shows."""
        counts = np.count_nonzero(self.components, axis=1)
        known = self.sparsity[~np.isnan(self.sparsity)]
        return {
            "asked": self.asked,
            "sparsity": float(np.median(known)) if known.size else None,
            "error": self.error,
            "explained": float(1 - self.error**2),
            "heldout": self.heldout,
            "nonzeros": float(counts.mean()),
            "iterations": self.result.n_iter,
            "parts": [
                {"sparsity": finite(s), "explained": float(e), "nonzeros": int(c)}
                for s, e, c in zip(self.sparsity, self.explained, counts, strict=True)
            ],
        }


def finite(value: float) -> float | None:
    """A number, or None for nan."""
    return float(value) if np.isfinite(value) else None


def contents(data: Matrix, levels: Sequence[Level], known: Summary, look: Look) -> tuple[dict[str, Any], Arrays]:
    """Everything that the page shows, and its arrays."""
    arrays = Arrays()
    view = view_of(look, known, [one.components for one in levels])
    width = view.rows(np.zeros((1, known.n_features))).shape[1]
    shown = shown_samples(levels, width)
    named = {int(i) for one in levels for i in np.unique(one.strongest_samples(TOP))} | set(shown.tolist())
    left_out = list(view.left_out)
    if len(shown) < data.shape[0]:
        left_out.append(f"the data and activations of {data.shape[0] - len(shown)} of {data.shape[0]} samples")
    rows, unseen = (np.concatenate(both) for both in zip(*(pictured(data, view, i) for i in shown), strict=True))
    rest = [i for i in by_strength(levels) if i not in set(shown.tolist())]
    page = {
        "kind": view.kind,
        "view": view.facts,
        "steps": STEPS,
        "counts": {"samples": data.shape[0], "features": data.shape[1], "components": known.n_components},
        "levels": [described(one, shown, view, arrays, known) for one in levels],
        "samples": shown.tolist(),
        "names": {str(i): name_of(known.sample_names, i, "sample") for i in sorted(named)},
        "originals": arrays.rows(rows),
        "unseen": arrays.bytes(unseen) if unseen.any() else None,
        "thumbnails": thumbnails(data, view, rest, arrays),
        "left_out": left_out,
        "times": times_of(known, data.shape[0]),
    }
    return page, arrays


def by_strength(levels: Sequence[Level]) -> list[int]:
    """The samples that are among the strongest of a component, those first that are so often."""
    scores = np.zeros(levels[0].activations.shape[0])
    for one in levels:
        for rank, samples in enumerate(one.strongest_samples(TOP).T):
            np.add.at(scores, samples, 1 / (1 + rank) ** 2)
    return [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] > 0]


def shown_samples(levels: Sequence[Level], width: int) -> Array:
    """Which samples the page holds: those that are often among the strongest of a component, then the first ones."""
    count = levels[0].activations.shape[0]
    each = width + 2 * len(levels) * levels[0].activations.shape[1]
    most = min(max(min(PICTURED // each, MOST), FEWEST), count)
    strongest = by_strength(levels)
    order = strongest + sorted(set(range(count)) - set(strongest))
    return np.sort(np.array(order[:most]))


def pictured(data: Matrix, view: View, sample: int) -> tuple[Array, Array]:
    """A sample as seen in the view, as one row; and where it is missing, because none of the entries is observed."""
    raw = data.raw(np.array([sample]))
    missing = np.isnan(raw)
    if not missing.any():
        row = view.rows(raw)
        return row, np.zeros(row.shape, dtype=bool)
    seen = view.rows(1.0 - missing)  # the share of each pixel that is observed
    return view.rows(np.where(missing, 0, raw)) / np.where(seen > 0, seen, 1), seen == 0


def thumbnails(data: Matrix, view: View, samples: Sequence[int], arrays: Arrays) -> dict[str, Any] | None:
    """Small pictures of the strongest samples whose data the page does not hold."""
    small = view.thumbnail()
    if small is None or not samples:
        return None
    kept = samples[: THUMBNAILS // PIXELS**2]
    drawn = [small.rows(pictured(data, view, i)[0]) for i in kept]
    return {"samples": kept, "view": small.facts, "rows": arrays.rows(np.concatenate(drawn))}


def described(one: Level, shown: Array, view: View, arrays: Arrays, known: Summary) -> dict[str, Any]:
    """A level: its numbers, and references to its arrays."""
    found = one.facts()
    found["weights"] = arrays.rows(view.rows(one.components))
    found["activations"] = arrays.floats(one.activations[shown])
    specific = specificity(one.components)
    samples = one.strongest_samples(TOP)
    for j, part in enumerate(found["parts"]):
        weights, active = one.components[j], one.activations[:, j]
        part["samples"] = [[int(i), float(active[i])] for i in samples[j] if active[i] > 0]
        order = np.argsort(-weights, kind="stable")[: 2 * TOP if view.kind in ("bars", "lines") else 0]
        part["features"] = [
            [name_of(known.feature_names, int(f), "feature"), float(weights[f]), float(specific[j, f])]
            for f in order
            if weights[f] > 0
        ]
        if view.kind == "bars":
            rare = np.argsort(-specific[j], kind="stable")[:TOP]
            part["specific"] = [
                [name_of(known.feature_names, int(f), "feature"), float(specific[j, f])]
                for f in rare
                if specific[j, f] > 0
            ]
        if isinstance(view, Cuts):
            part["place"] = view.words(view.peak(weights))
    if isinstance(view, Cuts):
        found["slices"] = arrays.bytes(np.stack([own_slices(view, weights) for weights in one.components]))
    if isinstance(known.origin, Sound):
        found["courses"] = arrays.rows(courses(one.activations))
    return found


def own_slices(view: Cuts, weights: Array) -> Array:
    """The slices of a component through its peak as bytes, relative to its maximum."""
    pixels = view.flat(weights, view.peak(weights))
    scaled = np.rint(np.nan_to_num(pixels) * (254 / (weights.max() or 1.0)))
    return np.where(np.isnan(pixels), OUTSIDE, scaled).astype(np.uint8)


def courses(activations: Array) -> Array:
    """The activations over time (r × points); if there are many samples, the largest of each group."""
    starts = np.linspace(0, len(activations), min(len(activations), TIMES), endpoint=False).astype(int)
    return np.maximum.reduceat(activations, starts, axis=0).T


def times_of(known: Summary, count: int) -> dict[str, Any] | None:
    """When the time courses end, in seconds, if samples follow each other."""
    return {"end": float(known.origin.times(count)[-1])} if isinstance(known.origin, Sound) else None
