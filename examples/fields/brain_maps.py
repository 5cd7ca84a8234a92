"""
Brain maps
==========

:class:`partwise.brain.BrainNMF` takes NIfTI images and returns NIfTI images, as nilearn's decompositions do. Here
smooth blobs in an ellipsoid stand in for grey matter. Each component is a map with a sparsity between 0.8 and 0.95,
and the activations say how strong it is in each subject.
"""

import matplotlib.pyplot as plt
import nibabel
import numpy as np

import partwise as pw

data = pw.datasets.brain_volume(40, (30, 36, 30), parts=6, noise=0.02, random_state=2)
affine = np.diag([5.0, 5, 5, 1])
affine[:3, 3] = -72, -102, -62  # millimetres
scans = [nibabel.Nifti1Image(scan, affine) for scan in data.X.reshape(-1, *data.shape)]
mask = nibabel.Nifti1Image(data.X.any(axis=0).reshape(data.shape).astype(np.uint8), affine)

model = pw.brain.BrainNMF(6, mask=mask, sparsity=(0.8, 0.95), random_state=0)
activations = model.fit_transform(scans)
print(f"maps: {model.components_img_.shape}, activations: {activations.shape}")
print(f"sparsity: {np.sort(model.sparsity_).round(2)}")
print(f"explained: {model.score(scans):.1%}")

# %%
# Three slices through the peak of each map. ``model.components_img_.to_filename("maps.nii.gz")`` saves them.

pw.plotting.gallery(model, figure=plt.figure(figsize=(10, 3.4), layout="constrained"), columns=3)
plt.show()
