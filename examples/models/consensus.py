"""
Components that recur
=====================

A fit ends in a local minimum, which depends on its start. `partwise.consensus` fits from many starts, and clusters the
components of all fits: those that recur belong to the data, the others to their start. The data below have four
components.
"""

import matplotlib.pyplot as plt

import partwise as pw

X = pw.datasets.planted(80, 50, 4, sparsity=0.6, noise=0.2, random_state=0).X
found = pw.consensus(X, ranks=range(2, 8), n_runs=20, random_state=0)
print(found.table[["rank", "stability", "error"]].round(3).to_string(index=False))

# %%
# Up to rank 4 the error falls and all starts agree. After it, they find different components.

pw.plotting.ranks(found, figure=plt.figure(figsize=(6, 4.2), layout="constrained"))
plt.show()

# %%
# The distances between all components of the 20 fits at rank 4: each dark block is a component that recurs.

programs = found.at(4)
print(programs.in_words())
pw.plotting.clustergram(programs, figure=plt.figure(figsize=(6.5, 4.2), layout="constrained"))
plt.show()
