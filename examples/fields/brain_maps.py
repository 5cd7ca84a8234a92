"""
Brain maps
==========

:class:`partwise.brain.BrainNMF` takes NIfTI images and returns NIfTI images, as nilearn's decompositions do. Here
smooth blobs in an ellipsoid stand in for grey matter, with noise. A sparsity slightly above that of the blobs sets
weights to zero that only describe the noise, so that each map is one region. The activations say how strong it is in
each subject.
"""

import matplotlib.pyplot as plt
import nibabel
import numpy as np

import partwise as pw

data = pw.datasets.brain_volume(40, (30, 36, 30), parts=6, noise=0.1, random_state=2)
affine = np.diag([5.0, 5, 5, 1])
affine[:3, 3] = -72, -102, -62  # millimetres
scans = [nibabel.Nifti1Image(scan, affine) for scan in data.X.reshape(-1, *data.shape)]
mask = nibabel.Nifti1Image(data.X.any(axis=0).reshape(data.shape).astype(np.uint8), affine)

model = pw.brain.BrainNMF(6, mask=mask, sparsity=0.88, random_state=0)
activations = model.fit_transform(scans)
print(f"maps: {model.components_img_.shape}, activations: {activations.shape}")
blobs = pw.hoyer_sparsity(data.components[:, data.X.any(axis=0)], axis=1)
print(f"sparsity of the blobs: {blobs.min():.2f} to {blobs.max():.2f}")
print(f"explained: {model.score(scans):.1%}")

# %%
# Three slices through the peak of each map. ``model.components_img_.to_filename("maps.nii.gz")`` saves them.

pw.plotting.gallery(model, figure=plt.figure(figsize=(10, 3.4), layout="constrained"), columns=3)
plt.show()
