"""Families: components that recur over several models, for example of different donors or data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..engine.metrics import specificity
from ..engine.names import check_unique
from ..engine.summary import as_matrix
from ..engine.validation import as_amount, as_choice
from ..statistics import Array
from .clustering import distances_between, silhouettes, unit_rows


class Member(NamedTuple):
    """A component of a model, both by number."""

    model: int
    component: int


@dataclass(frozen=True)
class Family:
    """Components of different models that are alike.

    Attributes
    ----------
    members : list of Member
        (model, component), at most one of each model.
    coverage : int
        The number of groups that have it: of models, or of donors if several models belong to one.
    groups : list
        Which groups these are.
    silhouette : float
        Mean silhouette of its members; nan for a single one.
    part : array of shape (features,)
        The mean of its members, each with unit norm, scaled to unit norm.
    """

    members: list[Member]
    coverage: int
    groups: list[Any]
    silhouette: float
    part: Array


@dataclass(frozen=True, repr=False)
class Families:
    """Families of components over several models, from `partwise.match`, those of largest coverage first.

    Attributes
    ----------
    families : list of Family
        Including components of a single group, which are not averaged into any other.
    labels : list of arrays
        For each model, the number of the family of each of its components.
    feature_names : array or None
        The features that all models have, in the order of the columns of their components.
    left_out : tuple of int
        For each model, the number of its features that are not used because another model does not have them.
    """

    families: list[Family]
    labels: list[Array]
    groups: list[Any]
    feature_names: Array | None = None
    left_out: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.families)

    def __getitem__(self, number: int) -> Family:
        return self.families[number]

    @property
    def shared(self) -> list[Family]:
        """Families with members in at least two groups."""
        return [family for family in self.families if family.coverage > 1]

    @property
    def private(self) -> list[Family]:
        """Families with members in one group only."""
        return [family for family in self.families if family.coverage == 1]

    @property
    def table(self) -> Any:
        """A pandas DataFrame with a row for each family."""
        import pandas as pd

        rows = [
            {
                "coverage": one.coverage,
                "groups": ", ".join(map(str, one.groups)),
                "members": len(one.members),
                "silhouette": one.silhouette,
            }
            for one in self.families
        ]
        return pd.DataFrame(rows)

    def features(self, family: int, top: int | None = None) -> Any:
        """The features of the mean component of a family with ``weight`` and ``specificity``, most specific first."""
        import pandas as pd

        weight = self.families[family].part
        specific = specificity(np.array([one.part for one in self.families]))[family]
        which = np.flatnonzero(weight)
        which = which[np.lexsort((weight[which], specific[which]))[::-1]][:top]
        names = which if self.feature_names is None else self.feature_names[which]
        return pd.DataFrame({"weight": weight[which], "specificity": specific[which]}, index=pd.Index(names))

    def __repr__(self) -> str:
        total = len(set(self.groups))
        lines = [f"{len(self)} families, {len(self.shared)} of them in more than one of {total} groups"]
        lines += ["family  coverage  members  silhouette  strongest features"]
        for number, one in enumerate(self.families):
            names = ", ".join(map(str, self.features(number, 5).index))
            alone = f" (only {one.groups[0]})" if one.coverage == 1 else ""
            score = "–" if one.silhouette != one.silhouette else f"{one.silhouette:.3f}"
            lines.append(f"{number:6}  {one.coverage:8}  {len(one.members):7}  {score:>10}  {names}{alone}")
        return "\n".join(lines)


def match(
    models: Sequence[Any], by: str = "names", *, groups: Sequence[Any] | None = None, min_cosine: float = 0.6
) -> Families:
    """Find the components that recur over several models.

    Components are compared by the cosine of their `specificity` within their own model, so that features which all
    components share do not make them alike. The most similar families are joined first (average linkage), as long as
    they are alike and have no model in common: two components of one model are never in the same family.

    Parameters
    ----------
    models : sequence of models, Programs, DataFrames or arrays
        Fitted estimators, results of `Consensus.at`, or components × features.
    by : {"names", "position"}
        Match features by name, using those that all models have, or by position.
    groups : sequence, optional
        The group of each model, for example its donor, if several models belong together. Coverage counts groups.
    min_cosine : float
        Families are joined if the mean cosine of their members is at least this.

    Returns
    -------
    Families

    Examples
    --------
    >>> import pandas as pd
    >>> first = pd.DataFrame([[4.0, 4, 0, 0], [0, 0, 4, 4]], columns=list("abcd"))
    >>> second = pd.DataFrame([[5.0, 4, 0, 1]], columns=list("dcba"))
    >>> found = match([first, second])
    >>> [family.members for family in found.shared]
    [[Member(model=0, component=1), Member(model=1, component=0)]]
    """
    as_choice(by, "by", ("names", "position"))
    least = as_amount(min_cosine, "min_cosine", 1)
    if not isinstance(models, Sequence) or isinstance(models, str) or len(models) < 2:
        raise ValueError("models must be a sequence of at least two models: [first, second, …]")
    whose = list(range(len(models))) if groups is None else list(groups)
    if len(whose) != len(models):
        raise ValueError(f"{len(whose)} groups for {len(models)} models: give one for each")
    parts, names, left_out = on_shared_features([components_of(model) for model in models], by)
    spectra = np.concatenate([unit_rows(one) for one in parts])
    owner = np.repeat(np.arange(len(parts)), [len(one) for one in parts])
    compared = unit_rows(np.concatenate([specificity(one) for one in parts]))
    labels = joined(compared @ compared.T, owner, least)
    return collected(spectra, compared, owner, labels, whose, names, left_out)


def components_of(model: Any) -> tuple[Array, Array | None]:
    """The components of a model, and the names of its features."""
    if hasattr(model, "components_"):
        return as_matrix(model.components_), getattr(model, "feature_names_in_", None)
    if hasattr(model, "programs"):  # of cells
        model = model.programs
    if hasattr(model, "components"):
        return as_matrix(model.components), getattr(model, "feature_names", None)
    names = [str(name) for name in model.columns] if hasattr(model, "columns") else None
    return as_matrix(model), None if names is None else np.array(names, dtype=object)


def on_shared_features(
    models: Sequence[tuple[Array, Array | None]], by: str
) -> tuple[list[Array], Array | None, tuple[int, ...]]:
    """All components on the features that all models have; and how many features of each model are left out."""
    if by == "position":
        sizes = {parts.shape[1] for parts, _ in models}
        if len(sizes) > 1:
            raise ValueError(f"models have {', '.join(map(str, sorted(sizes)))} features: match them by='names'")
        return [parts for parts, _ in models], None, (0,) * len(models)
    for number, (_, names) in enumerate(models):
        if names is None:
            raise ValueError(f"model {number} has no feature names: fit it to a DataFrame, or match by='position'")
        check_unique(names, f"model {number}")
    everywhere = set.intersection(*(set(map(str, names)) for _, names in models if names is not None))
    first = models[0][1]
    assert first is not None
    if not everywhere:
        raise ValueError("the models have no feature name in common: check that their names are of the same kind")
    kept = np.array([name for name in map(str, first) if name in everywhere], dtype=object)
    chosen = []
    for parts, names in models:
        assert names is not None
        place = {str(name): j for j, name in enumerate(names)}
        chosen.append(parts[:, [place[name] for name in kept]])
    return chosen, kept, tuple(parts.shape[1] - len(kept) for parts, _ in models)


def joined(cosines: Array, owner: Array, least: float) -> Array:
    """Labels of families: average linkage, where two components of the same model never meet."""
    size = len(owner)
    members = [[i] for i in range(size)]
    mean = cosines.copy()  # of the families that start at i and at j
    apart = owner[:, None] == owner  # includes the diagonal
    mean[apart] = -np.inf
    while True:
        i, j = divmod(int(np.argmax(mean)), size)
        if not mean[i, j] >= least:
            break
        a, b = len(members[i]), len(members[j])
        new = (a * mean[i] + b * mean[j]) / (a + b)  # −inf where either is apart
        new[i] = -np.inf
        members[i] += members[j]
        members[j] = []
        mean[i] = mean[:, i] = new
        mean[j] = mean[:, j] = -np.inf
    labels = np.empty(size, dtype=int)
    for number, which in enumerate(one for one in members if one):
        labels[which] = number
    return labels


def collected(
    spectra: Array,
    compared: Array,
    owner: Array,
    labels: Array,
    groups: list[Any],
    names: Array | None,
    left_out: tuple[int, ...],
) -> Families:
    """The families of these labels, those of largest coverage and most members first."""
    count = int(labels.max()) + 1
    scores = silhouettes(distances_between(compared), labels)
    start = np.searchsorted(owner, np.arange(len(groups)))
    found = []
    for number in range(count):
        which = np.flatnonzero(labels == number)
        whose = list(dict.fromkeys(groups[model] for model in owner[which]))
        members = [Member(int(owner[i]), int(i - start[owner[i]])) for i in which]
        score = float(scores[which].mean()) if len(which) > 1 else float("nan")
        part = unit_rows(spectra[which].mean(axis=0)[None])[0]
        found.append(Family(members, len(whose), whose, score, part))
    order = sorted(range(count), key=lambda k: (-found[k].coverage, -len(found[k].members), k))
    place = np.argsort(order)
    split = np.split(place[labels], start[1:])
    return Families([found[k] for k in order], split, groups, names, left_out)
