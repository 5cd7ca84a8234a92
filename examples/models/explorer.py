"""
A slider over the sparsity
==========================

:func:`partwise.explore` fits the same model at many sparsities, each from its neighbour, and writes a web page with a
slider. Every component keeps its place and colour from level to level. Click one to follow it over all levels, or click
a sample to see how its components add up. The page is one file that loads nothing, so it can be sent by mail.
"""

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

X, shape = pw.datasets.load_digits()
found = pw.explore(
    X, 16, sparsities=np.linspace(0.2, 0.9, 15), path="explore.html", part_shape=shape, title="Digits", random_state=0
)

# %%
# The error at each sparsity. It is lowest near the natural sparsity, that of the fit without a constraint.

print(f"natural sparsity: {found.natural:.2f}")
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
axis.plot(found.sparsities, found.errors, "o-", color="#0072b2")
axis.axvline(found.natural, color="#d55e00", linestyle="--", label="natural sparsity")
axis.set(xlabel="sparsity", ylabel="relative error")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
