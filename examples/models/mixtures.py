"""
Mixtures: shares that sum to 1
==============================

Each pixel of this hyperspectral image is a mixture of three materials. With ``activations="simplex"`` the activations
of a pixel are nonnegative and sum to 1, so that they are shares, and the components are the spectra of the pure
materials.
"""

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

rng = np.random.default_rng(0)
side, bands = 30, np.linspace(400, 1000, 120)
materials = np.array([0.1 + np.exp(-0.5 * ((bands - c) / w) ** 2) for c, w in ((500, 50), (700, 100), (880, 60))])
rows, columns = np.mgrid[:side, :side] / side
fields = np.stack(
    [np.exp(-8 * ((rows - y) ** 2 + (columns - x) ** 2)) for y, x in ((0.2, 0.2), (0.3, 0.9), (0.9, 0.4))]
)
shares = (fields**2 / (fields**2).sum(axis=0)).reshape(3, -1).T
pixels = shares @ materials + 0.02 * np.abs(rng.standard_normal((side**2, len(bands))))

model = pw.SparseNMF(3, activations="simplex", tol=1e-3, random_state=0)
found = model.fit_transform(pixels)
match = pw.match_parts(materials, model.components_)
print(f"sums of the shares: {found.sum(axis=1).min():.6f} to {found.sum(axis=1).max():.6f}")
print(f"mean error of the shares: {np.abs(shares - found[:, match.second]).mean():.3f}")

# %%
# The true spectra are grey, the components blue. Below are the shares over the image, from white (0) to black (1).

figure, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", height_ratios=(1, 1.5))
for (top, below), i, j in zip(axes.T, match.first, match.second, strict=True):
    top.plot(bands, materials[i], color="0.75", linewidth=5)
    top.plot(bands, model.components_[j], color="#0072b2")
    top.set(xlabel="wavelength (nm)", ylim=(0, 1.3))
    below.imshow(found[:, j].reshape(side, side), cmap="gray_r", vmin=0, vmax=1)
    below.set_axis_off()
plt.show()
