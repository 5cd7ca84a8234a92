"""
Rare counts
===========

Poisson counts vary by the square root of their mean. The Kullback–Leibler divergence takes this into account, and the
squared loss does not. The fewer counts there are, the more it matters.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import partwise as pw

rng = np.random.default_rng(0)
truth = rng.gamma(0.2, 1.0, (6, 200))
rates = rng.gamma(0.5, 1.0, (500, 6)) @ truth
rates /= rates.mean()
means = (0.1, 0.3, 1, 3)
cosines = {"squared": [], "kullback-leibler": []}
for mean in means:
    counts = sp.csr_array(rng.poisson(mean * rates).astype(float))
    for loss, found in cosines.items():
        model = pw.SparseNMF(6, loss=loss, n_init=5, random_state=0).fit(counts)
        found.append(pw.match_parts(truth, model.components_).cosines.mean())
for loss, found in cosines.items():
    print(f"{loss}: {np.round(found, 3)}")

# %%
# How close the components are to the true ones. Each fit is the best of five starts.

figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
for (loss, found), colour in zip(cosines.items(), ("#d55e00", "#0072b2"), strict=True):
    axis.plot(means, found, "o-", color=colour, label=loss)
axis.set(xscale="log", xlabel="mean count", ylabel="mean cosine with the truth")
axis.set_xticks(means, [str(mean) for mean in means])
axis.minorticks_off()
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
