"""Figure 1, left: components of faces by PCA, ICA, dictionary learning, NMF and SSNMF."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from partwise.projections import hoyer_sparsity
from partwise.statistics import Array

from .experiment import Experiment, Tell, judged
from .mosaics import mosaics
from .race import DEFAULT, shared_start
from .rows import Rows, distinct, pick
from .sources import Source, few_digits, orl

OURS, SPARSITY = "ours, sparsity 0.7", 0.7


@dataclass(frozen=True)
class Size:
    """The size of the experiment; each method runs for at most ``updates`` iterations."""

    data: Callable[[], Source]
    rank: int
    seeds: int
    updates: int


def estimators(r: int, updates: int, seed: int) -> dict[str, Any]:
    """scikit-learn's estimators, with the parameters of its example of face decompositions."""
    from sklearn.decomposition import NMF, PCA, FastICA, MiniBatchDictionaryLearning

    dictionary = MiniBatchDictionaryLearning(
        r, alpha=0.1, max_iter=max(updates // 40, 1), batch_size=20, random_state=seed
    )
    return {
        "PCA": PCA(r, svd_solver="randomized", random_state=seed),
        "ICA": FastICA(r, whiten="arbitrary-variance", max_iter=updates, tol=1e-3, random_state=seed),
        "dictionary learning": dictionary,
        "NMF": NMF(r, init="nndsvda", max_iter=updates, random_state=seed),
    }


def run(size: Size, tell: Tell) -> Rows:
    """Fit all methods with each seed; one row per component."""
    from sklearn.exceptions import ConvergenceWarning

    source = size.data()
    rows: Rows = []
    for seed in range(size.seeds):
        for done, (method, estimator) in enumerate(estimators(size.rank, size.updates, seed).items()):
            tell((seed + done / 5) / size.seeds, f"seed {seed}: {method}")
            centred = source.X if method == "NMF" else source.X - source.X.mean(axis=0)
            began = perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # by ICA on these data
                estimator.fit(centred)
            rows += features(source, method, seed, estimator.components_, perf_counter() - began)
        tell((seed + 0.8) / size.seeds, f"seed {seed}: {OURS}")
        start = shared_start(source.X, size.rank, SPARSITY, seed)
        result = DEFAULT.fit(source.X, size.rank, SPARSITY, start, tol=0.05, max_iter=size.updates)
        rows += features(source, OURS, seed, result.components, float(result.times[-1]))
    return rows


def features(source: Source, method: str, seed: int, components: Array, seconds: float) -> Rows:
    """One row per component; if signs are arbitrary, they are chosen so that the sum is positive."""
    signs = np.where(components.sum(axis=1) < 0, -1.0, 1.0)
    return [
        {
            "data": source.name,
            "method": method,
            "seed": seed,
            "feature": j,
            "sparsity": float(hoyer_sparsity(feature)),
            "negative": float(np.mean(feature < 0)),
            "seconds": seconds,
            "image": feature.reshape(source.shape),
        }
        for j, feature in enumerate(components * signs[:, None])
    ]


def draw(rows: Rows) -> Any:
    """Draw the components of the first seed."""
    first = pick(rows, seed=0)
    sets = [
        (method, np.array([row["image"].ravel() for row in pick(first, method=method)]))
        for method in distinct(first, "method")
    ]
    title = f"{rows[0]['data']}: features of five factorizations (red: negative)"
    return mosaics(sets, rows[0]["image"].shape, title=title)


def verdict(rows: Rows) -> str:
    """PCA and ICA have components of both signs; NMF's are nonnegative and sparser; SSNMF's as sparse as requested."""

    def mean(method: str, column: str) -> float:
        return float(np.mean([row[column] for row in pick(rows, method=method)]))

    off = max(abs(row["sparsity"] - SPARSITY) for row in pick(rows, method=OURS))
    tests = [
        min(mean("PCA", "negative"), mean("ICA", "negative")) > 0.1,
        mean("NMF", "negative") == 0 and mean("NMF", "sparsity") > mean("PCA", "sparsity"),
        mean(OURS, "negative") == 0 and off < 1e-6,
    ]
    mixed = ", ".join(f"{m} {mean(m, 'negative'):.0%}" for m in ("PCA", "ICA", "dictionary learning"))
    sparse = ", ".join(f"{m} {mean(m, 'sparsity'):.2f}" for m in ("PCA", "ICA", "dictionary learning", "NMF"))
    return judged(
        tests,
        f"negative entries: {mixed}, NMF and SSNMF none; mean sparsity of a component: {sparse}, SSNMF "
        f"{mean(OURS, 'sparsity'):.2f}, as requested (to {off:.0e})",
    )


EXPERIMENT = Experiment(
    name="figure1_left",
    title="Faces: features of five factorizations",
    claim="NMF can give a sparse, parts-based representation, unlike PCA; the merit of each factorization depends on "
    "the task",
    full=Size(orl, 25, 5, 200),
    quick=Size(few_digits, 6, 1, 20),
    run=run,
    draw=draw,
    verdict=verdict,
)
