"""The explorer: one model at many sparsities, on one page with a slider."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Chunked, Matrix
from ..engine.options import TABLE
from ..engine.origins import Origin, Sound
from ..engine.result import Result
from ..engine.stopping import Callback
from ..engine.summary import Summary, summary
from ..engine.validation import as_count, as_generator, as_path, as_penalty, as_verbosity, check_names, seed_of
from ..estimators import SparseNMF
from ..plotting.looks import look_of
from ..runtime.files import check_replaceable, replacing
from ..selection.heldout import Observed, hold_out
from ..selection.levels import LevelFits, as_sparsities, fit_levels
from ..selection.search import as_share
from .contents import Level, contents
from .frame import framed, quoted
from .packed import safe_json
from .provenance import call, provenance_html, versions
from .provenance import described as words_on

LEVELS = tuple(np.linspace(0.2, 0.9, 15).round(3).tolist())
SCRIPTS = ("explorer_pictures.js", "explorer_panels.js", "explorer.js")
SHOWN = 1e30  # browsers draw in single precision
LARGE = 20_000_000  # bytes: a page above this says how large it is


@dataclass(frozen=True)
class Exploration:
    """The fits of `explore`, and its page.

    Attributes
    ----------
    sparsities : tuple of float
        From low to high.
    results : tuple of Result
        The fit at each sparsity. Component j of one is matched with component j of its neighbours.
    free : Result
        The fit without a constraint.
    natural : float
        The median sparsity of its components.
    errors, heldout_errors : array
        The relative error at each sparsity, and that on held-out entries (None unless asked for).
    page : str
        The page, as HTML.
    """

    sparsities: tuple[float, ...]
    results: tuple[Result, ...]
    free: Result
    natural: float
    errors: npt.NDArray[np.float64]
    heldout_errors: npt.NDArray[np.float64] | None
    page: str = field(repr=False)


def explore(
    X: Any,
    n_components: int,
    sparsities: float | Iterable[float] = LEVELS,
    path: str | PathLike[str] | None = None,
    *,
    holdout: float | None = None,
    title: str | None = None,
    part_shape: Sequence[int] | None = None,
    kind: str | None = None,
    mask: npt.ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
    origin: Origin | None = None,
    observed: Any = None,
    callback: Callback | None = None,
    provenance: Mapping[str, str] | None = None,
    **options: Any,
) -> Exploration:
    """Fit the same model at many sparsities, and write a page with a slider over them.

    First X is factorized without a constraint. From there the levels are fitted outwards, each from its neighbours, so
    that components can be followed from level to level. A level stops when its error has settled, unless ``tol`` is
    given. The page is one HTML file that loads nothing. It shows the components at each level, their strongest samples
    and features, curves of the error over the sparsity, and, for single samples, how their components add up.

    Parameters
    ----------
    X : array or SciPy sparse matrix of shape (samples, features)
        Nonnegative, in memory.
    n_components : int
    sparsities : iterable of float
        Hoyer sparsities of the components.
    path : str or path, optional
        File to write.
    holdout : float, optional
        Share of the entries of X to hold out. All levels are then fitted a second time, without these entries, and
        their error on these entries is shown.
    title : str, optional
    part_shape, kind, mask
        How to plot a component, as ``shape``, ``kind`` and ``mask`` in `partwise.plotting.gallery`.
    feature_names, sample_names : sequences of str, optional
        By default the names in a DataFrame.
    origin : object, optional
        ``table.origin`` of data from files, as in `SparseNMF.keep`.
    observed, callback
        As in `ssnmf`.
    provenance : dict of str, optional
        Further facts to show, such as the name of the data file.
    **options
        Any parameter of `SparseNMF` except checkpoints. Limits such as ``max_iter`` apply to each fit, ``init`` and
        ``n_init`` to the one without a constraint.

    Returns
    -------
    Exploration
        The fits, and the page.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> found = explore(load_digits().data[:200], 6, [0.5, 0.7], part_shape=(8, 8), random_state=0)
    >>> [round(float(fit.sparsity.mean()), 3) for fit in found.results], "<html" in found.page
    ([0.5, 0.7], True)
    """
    own = [name for name in inspect.signature(explore).parameters if name != "options"]
    shared = [name for name in inspect.signature(SparseNMF).parameters if name not in (*own, "sparsity")]
    check_names(options, own + shared, "explore")
    levels = as_sparsities(sparsities)
    share = None if holdout is None else as_share(holdout)
    check_page(path, title, provenance)
    model = SparseNMF(n_components, sparsity=levels[-1], **options)
    for name in ("checkpoint", "resume_from"):
        if getattr(model, name) is not None:
            raise ValueError(f"{name} belongs to one fit, but explore makes many: omit it")
    model._recipe()
    data = model._validated(X, reset=True, observed=observed)
    if isinstance(data, Chunked):
        raise ValueError("explore needs X in memory, but this X is read in chunks: give a random subset of samples")
    if not 1 / SHOWN < data.peak < SHOWN and data.peak:
        raise ValueError(f"the largest value of X is {data.peak:g}, which the page cannot show: rescale X")
    rng = as_generator(model.random_state)
    seed = seed_of(rng, model.random_state)
    known = described(model, data, part_shape, mask, feature_names, sample_names, origin)
    look = look_of(known, part_shape, kind=kind, mask=mask)  # raises before any fit
    count = (len(levels) + as_count(model.n_init, "n_init")) * (1 if holdout is None else 2)
    with counted(count) if as_verbosity(model.verbose) else nullcontext(lambda: None) as advance:
        path_of = fits_of(model, levels, rng, callback, advance)
        fits = path_of(data)
        errors = None
        if share is not None:
            split = hold_out(Observed.of(data, False, None), share, rng)
            errors = [split.measured(composed(fit), fit.loss) for _, fit in path_of(split.seen).in_order()]
    asked = {"n_components": n_components, "sparsities": [*levels], "holdout": holdout}
    asked |= {"part_shape": None if part_shape is None else tuple(part_shape), "kind": kind, **options}
    asked = {name: value for name, value in asked.items() if value is not None}
    facts = {
        "versions": versions(),
        "data": words_on(data),
        "seed": "a generator was given" if seed is None else str(seed),
        "call": call("partwise.explore", asked, seed).replace("(", "(X, ", 1),
        **(provenance or {}),
    }
    heading = quoted("Sparsity explorer" if title is None else title)
    page = page_of(data, fits, errors, known, look, heading, facts)
    if path is not None:
        with replacing(path) as fresh:
            fresh.write_text(page, encoding="utf-8")
    held = None
    if errors is not None:
        held = np.array([e for e, (asked, _) in zip(errors, fits.in_order(), strict=True) if asked is not None])
    found = np.array([fit.relative_error for fit in fits.results])
    return Exploration(fits.sparsities, fits.results, fits.free, fits.natural, found, held, page)


def check_page(path: object, title: object, provenance: object) -> None:
    """Refuse what could not be written or shown on the page, before any fit."""
    target = as_path(path, "path")
    if target is not None:
        check_replaceable(target)
    if title is not None and not isinstance(title, str):
        raise ValueError(f"title={title!r}: give a string")
    if provenance is not None and not (
        isinstance(provenance, Mapping) and all(isinstance(word, str) for fact in provenance.items() for word in fact)
    ):
        raise ValueError(f"provenance={provenance!r}: give a dict of facts, {{name: text}}")


def described(
    model: SparseNMF, data: Matrix, shape: Any, mask: Any, features: Any, samples: Any, origin: Origin | None
) -> Summary:
    """What is known before the fits: names, shapes and the origin of samples."""
    blank = np.zeros((as_count(model.n_components, "n_components"), data.shape[1]))
    if features is None:
        features = getattr(model, "feature_names_in_", getattr(origin, "feature_names", None))
    if samples is None and isinstance(origin, Sound):
        samples = [f"{seconds:.3f} s" for seconds in origin.times(data.shape[0]).tolist()]
    if samples is not None and len(samples) != data.shape[0]:
        raise ValueError(f"{len(samples)} sample names for {data.shape[0]} samples: give one for each")
    if mask is None and shape is None:
        mask = getattr(origin, "mask", None)
        shape = getattr(origin, "shape", None) if mask is None else None
    return replace(
        summary(blank),
        n_samples=data.shape[0],
        feature_names=features,
        sample_names=samples,
        shape=None if shape is None else tuple(shape),
        mask=None if mask is None else np.asarray(mask).astype(bool),
        origin=origin,
    )


def fits_of(
    model: SparseNMF,
    levels: Sequence[float],
    rng: np.random.Generator,
    callback: Callback | None,
    advance: Callable[[], None],
) -> Callable[[Matrix], LevelFits]:
    """A function that fits all levels to data. Without a constraint, any method is ssnmf."""
    shared = {name: value for name, value in model.get_params(deep=False).items() if name in TABLE}
    del shared["random_state"], shared["init"]
    if model.tol is None:
        shared["tol"] = 0.0

    penalised = any(any(as_penalty(getattr(model, name), name)) for name in ("l1", "l2"))
    free = SparseNMF(**model.get_params(deep=False)).set_params(
        recipe="ssnmf",
        recipe_params=model.recipe_params if model.recipe == "ssnmf" else None,
        sparsity=(None, None) if penalised else None,  # of unit norm: penalties need a scale
    )

    def path_of(data: Matrix) -> LevelFits:
        def fit(sparsity: float | None, init: Any, callback: Callback | None) -> Result:
            asked = free if sparsity is None else model.set_params(sparsity=sparsity)
            recipe, own = asked._recipe()
            return recipe(data, model.n_components, **own, **shared, init=init, random_state=rng, callback=callback)

        return fit_levels(
            fit,
            levels,
            init=model.init,
            n_init=model.n_init,
            callback=callback,
            settle=model.tol is None,
            match=not isinstance(model.activation_sparsity, list | np.ndarray),  # one for each component
            advance=advance,
        )

    return path_of


def composed(fit: Result) -> list[Any]:
    """The two factors of a fit; a factor in the middle belongs to the activations."""
    return fit.factors if fit.middle is None else [fit.activations @ fit.middle, fit.factors[1]]


def counted(total: int) -> Any:
    """A progress line over so many fits."""
    from ..engine.progress import counting_line  # imports rich

    return counting_line("explore", total)


def page_of(
    data: Matrix,
    fits: LevelFits,
    heldout: Sequence[float] | None,
    known: Summary,
    look: Any,
    heading: str,
    facts: Mapping[str, str],
) -> str:
    """The page of these fits."""
    ordered = fits.in_order()
    errors: Sequence[float | None] = heldout or [None] * len(ordered)
    levels = [Level(data, asked, fit, error) for (asked, fit), error in zip(ordered, errors, strict=True)]
    page, arrays = contents(data, levels, known, look)
    block = arrays.text()
    left_out = page["left_out"]
    words = f"<p>This page does not hold {'; nor '.join(map(quoted, left_out))}.</p>" if left_out else ""
    if len(block) > LARGE:
        words += f"<p>It is large, {len(block) / 1e6:.0f} MB: give fewer levels or components for a smaller one.</p>"
    body = (
        f'<header><h1>{heading}</h1><p class="about"></p></header>\n<div id="explorer"><p>This page needs JavaScript, '
        f'and a browser of 2023 or later.</p></div>\n<aside class="left-out">{words}</aside>\n{provenance_html(facts)}'
    )
    return framed(heading, body, SCRIPTS, {"page-data": safe_json(page), "page-arrays": block})
