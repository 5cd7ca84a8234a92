"""
Known components
================

A spectrometer measures mixtures of three substances over a background that has been measured alone. The background
and one substance are known: ``fixed_components`` keeps them exactly as they are, and the fit finds the other two
next to them. The sparsity applies to these two only: spectra with peaks cannot contain the background.
"""

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw

rng = np.random.default_rng(0)
wavelength = np.linspace(400, 700, 150)


def peak(centre, width):
    return np.exp(-(((wavelength - centre) / width) ** 2))


background = 0.4 + 0.3 * np.cos(wavelength / 60)
pure = np.array([peak(460, 15), peak(520, 20) + 0.5 * peak(600, 12), peak(560, 25)])
spectra = np.vstack([background, pure])
amounts = rng.gamma(2, 0.5, (80, 4))
amounts[:, 0] += 2  # the background is in every measurement
X = np.maximum(amounts @ spectra + 0.02 * rng.standard_normal((80, 150)), 0)

known = spectra[:2]
plain = pw.SparseNMF(4, random_state=0).fit(X)
model = pw.SparseNMF(4, sparsity=(0.5, None), fixed_components=known, random_state=0).fit(X)
assert (model.components_[:2] == known).all()
for name, fit in ("without", plain), ("with", model):
    print(f"{name} known components: cosines {pw.match_parts(spectra, fit.components_).cosines.round(3)}")

# %%
# The true spectra are grey. Without the known ones, the background is spread over all components.

figure = plt.figure(figsize=(9, 4), layout="constrained")
for axes, (title, fit) in zip(
    figure.subplots(2, 4, sharex=True), {"plain NMF": plain, "two components known": model}.items(), strict=True
):
    match = pw.match_parts(spectra, fit.components_)
    for axis, i, j in zip(axes, match.first, match.second, strict=True):
        axis.plot(wavelength, spectra[i] / spectra[i].max(), color="0.75", linewidth=5)
        axis.plot(wavelength, fit.components_[j] / fit.components_[j].max(), color="#0072b2")
        axis.set_yticks([])
    axes[0].set_ylabel(title)
for axis, name in zip(figure.axes, ("background", "known", "unknown", "unknown"), strict=False):
    axis.set_title(name, fontsize=10)
figure.supxlabel("wavelength (nm)", fontsize=10)
plt.show()
