"""
Both sides sparse
=================

Each of these images shows a few of sixteen bars. A bar covers few pixels, and each bar is in few images: components
and activations are both sparse. With ``sparsity`` and ``activation_sparsity``, Partwise fits X ≈ activations · D ·
components, where both outer factors have the given sparsity. The small matrix D (``scaling_``) carries the scale.
Bars are not all equally frequent, so the activations get an interval.
"""

import matplotlib.pyplot as plt

import partwise as pw

truth = pw.datasets.bars(300)
pixels = pw.hoyer_sparsity(truth.components[0])
images = pw.hoyer_sparsity(truth.activations, axis=0)
print(f"a bar has sparsity {pixels:.2f} over the pixels, and {images.min():.2f} to {images.max():.2f} over the images")

model = pw.SparseNMF(16, sparsity=pixels, activation_sparsity=(0.6, 0.75), random_state=0)
activations = model.fit_transform(truth.X)
cosines = pw.match_parts(model.components_, truth.components).cosines
print(f"smallest cosine between a bar and its component: {cosines.min():.3f}")

# %%
# On the left the components. On the right their activations in the first 60 images: most are zero.

figure = plt.figure(figsize=(10, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.1, 1))
pw.plotting.gallery(model, truth.shape, labels=False, title=f"components, sparsity {pixels:.2f}", figure=left)
pw.plotting.activations(activations[:60], title="activations, sparsity 0.6 to 0.75", figure=right)
plt.show()
