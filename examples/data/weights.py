"""
Entries of different precision
==============================

Each entry of this table was measured with a precision of its own. With weights of 1/variance, the fit trusts the
precise entries. Without weights, the noise of the others spoils the components. All components have exactly the
requested sparsity in both fits.
"""

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

rng = np.random.default_rng(0)
places = np.arange(80)
truth = np.array([np.exp(-0.5 * ((places - c) / 4.0) ** 2) for c in (15, 35, 60)])
deviation = np.exp(rng.uniform(-5, 1, (60, 80)))  # known, from 0.007 to 2.7
X = np.maximum(rng.gamma(0.8, 1.0, (60, 3)) @ truth + deviation * rng.standard_normal((60, 80)), 0)

models = {
    "without weights": pw.ssnmf(X, 3, sparsity=0.65, random_state=0),
    "weights 1/variance": pw.ssnmf(X, 3, sparsity=0.65, weights=1 / deviation**2, random_state=0),
}
for name, fit in models.items():
    print(f"{name}: cosines with the true components {pw.match_parts(truth, fit.components).cosines.round(3)}")

# %%
# The true components are grey.

figure, axes = plt.subplots(2, 3, figsize=(9, 3.8), sharex=True, layout="constrained")
for row, (name, fit) in zip(axes, models.items(), strict=True):
    match = pw.match_parts(truth, fit.components)
    for axis, i, j in zip(row, match.first, match.second, strict=True):
        axis.plot(truth[i] / np.linalg.norm(truth[i]), color="0.75", linewidth=5)
        axis.plot(fit.components[j] / np.linalg.norm(fit.components[j]), color="#0072b2")
        axis.set_yticks([])
    row[0].set_ylabel(name)
plt.show()
