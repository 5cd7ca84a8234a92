"""Gene programs across donors: programs of each donor, then families that recur."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from partwise.io.table import Table
from partwise.selection import Families, match
from partwise.selection import consensus as consensus_of
from partwise.selection.clustering import as_threshold
from partwise.selection.search import as_ranks

from .counts import as_counts, matrix_in, moments, overdispersed, prepared, scaled_rows


def programs(
    adata: Any,
    by: str,
    ranks: int | Iterable[int],
    n_runs: int = 10,
    *,
    n_top_genes: int = 2000,
    layer: str | None = None,
    density_threshold: float = 0.5,
    min_cosine: float = 0.6,
    key_added: str = "programs",
    check_counts: bool = True,
    **options: Any,
) -> Families:
    """Gene programs that recur over donors: consensus programs of each donor at each rank, then families.

    Programs of one donor alone are reported as such, and not averaged into any other.

    Parameters
    ----------
    adata : AnnData
        Raw counts, cells × genes.
    by : str
        Column of ``adata.obs`` with the donor, sample or batch of each cell.
    ranks : int or iterable of int
        Numbers of programs to fit for each donor. A program that recurs at several ranks is more reliable.
    n_runs : int
        Number of runs for each donor and rank.
    n_top_genes : int
        Number of over-dispersed genes, chosen on all cells, so that all donors have the same.
    layer : str, optional
        Layer with the counts, instead of ``adata.X``.
    density_threshold : float
        See `partwise.Consensus.at`. Ranks at which too few runs of a donor agree are left out.
    min_cosine : float
        See `partwise.match`.
    key_added : str
        Name of the results: ``varm[key]`` has the mean program of each family, 0 at other genes, and ``uns[key]`` the
        coverage, silhouette and members.
    check_counts : bool
        Refuse counts that are not whole numbers.
    **options
        Further parameters of `partwise.consensus`, such as ``sparsity`` and ``random_state``.

    Returns
    -------
    Families

    Examples
    --------
    >>> import anndata
    >>> rng = np.random.default_rng(0)
    >>> rates = np.kron(np.eye(2), np.full(10, 8.0))[rng.integers(2, size=60)] + 0.2
    >>> adata = anndata.AnnData(rng.poisson(rates).astype("float32"), {"donor": ["a", "b"] * 30})
    >>> [family.groups for family in programs(adata, "donor", 2, n_runs=5, random_state=0).shared]
    [['a', 'b'], ['a', 'b']]
    """
    X = matrix_in(adata, layer)
    if not isinstance(by, str) or by not in adata.obs:
        raise ValueError(f"by={by!r} is not a column of adata.obs; columns are: {', '.join(adata.obs) or 'none'}")
    donors = adata.obs[by].astype(object)
    if donors.isna().any():
        raise ValueError(f"adata.obs[{by!r}] has {int(donors.isna().sum())} missing values: name a donor for each cell")
    threshold, wanted = as_threshold(density_threshold), as_ranks(ranks)
    names = list(dict.fromkeys(donors))
    if len(names) < 2:
        raise ValueError(f"adata.obs[{by!r}] has one value, {names[0]!r}: programs across donors need at least two")
    counts = as_counts(X, check_counts)
    genes = common_genes(counts, [np.flatnonzero(donors == name) for name in names], n_top_genes)
    models, groups = [], []
    for name in names:
        rows = np.flatnonzero(donors == name)
        some = counts[rows][:, genes]
        filled = np.asarray(some.sum(axis=1)).ravel() > 0
        kept = some[filled]
        try:
            ready = prepared(kept, adata.obs_names[rows][filled], adata.var_names[genes], None, None, check_counts)
        except ValueError as error:
            raise ValueError(f"donor {name!r} ({len(rows)} cells) cannot be fitted, leave it out: {error}") from error
        table = Table(ready.matrix, "genes", str(name), tuple(ready.cells), tuple(ready.chosen_genes))
        found = consensus_of(table, wanted, n_runs, **{"precision": "single", **options})
        for rank in wanted:
            try:
                models.append(found.at(rank, threshold))
                groups.append(name)
            except ValueError:  # too few components recur at this rank
                continue
    if len(set(groups)) < 2:
        raise ValueError(f"fewer than two donors have programs at density_threshold={threshold:g}: raise it")
    families = match(models, "names", groups=groups, min_cosine=min_cosine)
    store(adata, key_added, families)
    return families


def common_genes(counts: Any, donors: list[Any], count: int) -> Any:
    """Over-dispersed genes on all cells, among those that every donor has counts of."""
    everywhere = np.all([np.asarray(counts[rows].sum(axis=0)).ravel() > 0 for rows in donors], axis=0)
    where = np.flatnonzero(everywhere)
    if not where.size:
        raise ValueError("no gene has counts in all donors: check the gene names")
    some = counts[:, where]
    totals = np.asarray(counts.sum(axis=1, dtype=float)).ravel()
    mean, variance = moments(scaled_rows(some, np.where(totals > 0, totals, 1.0) / 1e6))
    return where[overdispersed(mean, variance, count)]


def store(adata: Any, key: str, families: Families) -> None:
    """Write families to AnnData."""
    places = {str(name): j for j, name in enumerate(adata.var_names)}
    assert families.feature_names is not None
    parts = np.zeros((adata.n_vars, len(families)))
    parts[[places[name] for name in families.feature_names]] = np.array([one.part for one in families.families]).T
    adata.varm[key] = parts
    adata.uns[key] = {
        "coverage": np.array([one.coverage for one in families.families]),
        "silhouette": np.array([one.silhouette for one in families.families]),
        "donors": np.array([", ".join(map(str, one.groups)) for one in families.families]),
        "members": np.array([len(one.members) for one in families.families]),
    }
