"""Gene programs of exact sparsity for AnnData."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from partwise.data.stored import LIMIT
from partwise.engine.validation import Sparsity, as_bytes
from partwise.io.h5ad import as_rows, gene_mask
from partwise.io.write_h5ad import all_genes, fit_record, usage_columns

from .counts import matrix_in

__all__ = ["sparse_nmf"]


def sparse_nmf(
    adata: Any,
    n_components: int,
    *,
    sparsity: Sparsity,
    layer: str | None = None,
    mask_var: str | npt.ArrayLike | None = None,
    key_added: str | None = None,
    obs_columns: bool = False,
    copy: bool = False,
    **options: Any,
) -> Any:
    """Find gene programs of exactly the sparsity you specify.

    Parameters
    ----------
    adata : AnnData
        Cells × genes, nonnegative: counts, or log(1 + counts), but not centered. Sparse matrices stay sparse. Backed
        data larger than ``memory_limit`` are read in chunks.
    n_components : int
        Number of programs.
    sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity of each program over the genes; see `partwise.SparseNMF`.
    layer : str, optional
        Layer to use instead of ``adata.X``.
    mask_var : str or array of bool, optional
        Genes to use: a boolean column of ``adata.var``, such as "highly_variable", or an array. Programs are 0 at the
        others.
    key_added : str, optional
        Name of the results in ``obsm``, ``varm`` and ``uns``.
    obs_columns : bool
        Add the activations to ``obs`` as well, one column per program: "nmf_0", "nmf_1", …, or ``key_added`` with a
        number. ``sc.pl.umap(adata, color="nmf_0")`` draws them.
    copy : bool
        Return a copy with the results instead of changing ``adata``.
    **options
        Other parameters of `partwise.SparseNMF`.

    Returns
    -------
    AnnData or None
        ``obsm["X_nmf"]``: the activations of each cell. ``varm["NMFs"]``: the programs, one per column.
        ``uns["nmf"]``: parameters and results of the fit. All three are named ``key_added`` if given.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> adata = anndata.AnnData(np.random.default_rng(0).poisson(1.0, (30, 12)).astype(float))
    >>> sparse_nmf(adata, 3, sparsity=0.4, random_state=0)
    >>> adata.obsm["X_nmf"].shape, adata.varm["NMFs"].shape, adata.uns["nmf"]["sparsity"].round(6).tolist()
    ((30, 3), (12, 3), [0.4, 0.4, 0.4])
    """
    from partwise.estimators import SparseNMF  # imports scikit-learn

    X = matrix_in(adata, layer, "partwise.SparseNMF")
    model = SparseNMF(n_components, sparsity=sparsity, **options)
    genes = gene_mask(adata.var, mask_var)
    limit = as_bytes(model.memory_limit, "memory_limit")
    activations = model.fit_transform(as_rows(X, genes, LIMIT if limit is None else limit))
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    adata.obsm[key_added or "X_nmf"] = activations
    adata.varm[key_added or "NMFs"] = all_genes(model.components_, genes)
    if obs_columns:
        for name, usage in usage_columns(activations, key_added or "nmf").items():
            adata.obs[name] = usage
    where = {"layer": layer, "mask_var": mask_var if isinstance(mask_var, str) else None}
    adata.uns[key_added or "nmf"] = fit_record(model, where)
    return adata if copy else None
