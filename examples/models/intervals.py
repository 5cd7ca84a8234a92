"""
Intervals of sparsity
=====================

A tuple asks for an interval: ``sparsity=(0.6, 0.7)``. Each component takes the value in it that fits best. This costs
less than a single value, and no component becomes too dense or too sparse to interpret. A list has one number or
interval for each component, here for two broad components next to ten narrow ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

X, shape = pw.datasets.load_digits()
asked = {
    "no constraint": None,
    "interval (0.6, 0.7)": (0.6, 0.7),
    "a list: two of 0.4, ten of at least 0.7": [0.4] * 2 + [(0.7, None)] * 10,
}
models = {title: pw.SparseNMF(12, sparsity=s, random_state=0).fit(X) for title, s in asked.items()}
for title, model in models.items():
    print(f"{title}: sparsity {np.sort(model.sparsity_).round(2)}, {model.score(X):.1%} explained")

# %%
# The number above each component is its sparsity.

figure = plt.figure(figsize=(10, 4.2), layout="constrained")
for part, (title, model) in zip(figure.subfigures(1, 3, wspace=0.06), models.items(), strict=True):
    labels = [f"{s:.2f}" for s in model.sparsity_]
    pw.plotting.gallery(model, shape, columns=3, labels=labels, title=title, figure=part)
plt.show()
