"""
Choosing n_components and sparsity
==================================

The data below has four components of sparsity 0.6, and noise. :func:`partwise.select` hides a tenth of the entries,
fits a model for each number of components (rank) and each sparsity to the rest, and measures how well it predicts
what was hidden. It also compares the components of several starts: if different starts find different components,
the data does not determine them.
"""

import matplotlib.pyplot as plt

import partwise as pw

X = pw.datasets.planted(80, 50, 4, sparsity=0.6, noise=0.2, random_state=0).X
found = pw.select(X, ranks=range(2, 8), sparsities=[None, 0.6, 0.8], n_splits=2, n_init=2, random_state=0)
print(found.table[["rank", "sparsity", "heldout_error", "stability"]].round(3).to_string(index=False))

# %%
# The error falls steeply up to rank 4 and not beyond it, and the stability falls after it. At that rank, a sparsity
# of 0.6 predicts as well as no constraint, and 0.8 far worse. Partwise marks no winner: look at both panels.

pw.plotting.selection(found, figure=plt.figure(figsize=(7, 5.2), layout="constrained"))
plt.show()
