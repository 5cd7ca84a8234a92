"""
Gene programs of single cells
=============================

:func:`partwise.cells.sparse_nmf` follows scanpy's conventions: it reads an AnnData object and adds the programs
(``varm["NMFs"]``), their usage in each cell (``obsm["X_nmf"]``) and how they were found (``uns["nmf"]``). Here
counts of four cell types are generated. Each type has fifteen marker genes, and a stress program of ten genes is
active in a third of all cells, whatever their type.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import partwise as pw

rng = np.random.default_rng(0)
kind, stressed = rng.integers(4, size=600), rng.random(600) < 0.3
programs = np.zeros((5, 120))
for k in range(4):
    programs[k, 15 * k : 15 * k + 15] = rng.uniform(2, 8, 15)
programs[4, 60:70] = rng.uniform(3, 6, 10)
usage = np.column_stack([np.eye(4)[kind], stressed * rng.uniform(0.5, 1.5, 600)])
counts = rng.poisson((usage @ programs + 0.3) * rng.gamma(5, 0.2, (600, 1)))  # cells of different depth

adata = anndata.AnnData(sp.csr_matrix(1000 * counts / counts.sum(axis=1, keepdims=True)).log1p())
adata.var_names = [
    f"{'ABCD'[g // 15]}{g % 15}" if g < 60 else f"stress{g - 60}" if g < 70 else f"gene{g}" for g in range(120)
]
pw.cells.sparse_nmf(adata, 5, sparsity=0.6, random_state=0)
for j, program in enumerate(adata.varm["NMFs"].T):
    print(f"program {j}:", *adata.var_names[np.argsort(-program)[:6]])

# %%
# Cells are sorted by type, with stressed cells last within each. The stress program crosses all types.

order = np.lexsort((stressed, kind))
figure = plt.figure(figsize=(10, 4.4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.6))
pw.plotting.activations(adata.obsm["X_nmf"][order], title="usage, cells sorted by type", figure=left)
pw.plotting.gallery(
    adata.varm["NMFs"].T, kind="bars", feature_names=adata.var_names, top=7, columns=3, title="programs", figure=right
)
plt.show()
