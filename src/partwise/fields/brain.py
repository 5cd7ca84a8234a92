"""Sparse NMF of brain images, in nilearn's manner (extra ``partwise[brain]``)."""

from __future__ import annotations

import inspect
import os
from typing import Any

from partwise.data import Chunked, Matrix
from partwise.estimators import SparseNMF
from partwise.statistics import Array

__all__ = ["BrainNMF"]


class BrainNMF(SparseNMF):
    """Parts of brain images: `partwise.SparseNMF` on lists of NIfTI images or on 4-D images.

    Each image (or volume of a 4-D image) is a sample, each voxel of the mask a feature.

    Parameters
    ----------
    n_components : int, default=10
    mask : image, path, or NiftiMasker, optional
        The voxels to take. Without one, nilearn computes it from the images. A NiftiMasker of your own may smooth,
        resample and so on; otherwise images must lie where the mask lies.
    **options
        All other parameters of `partwise.SparseNMF`, ``sparsity`` first of all.

    Attributes
    ----------
    masker_ : NiftiMasker
        What turned images into samples.
    mask_img_ : image
        The voxels that were taken.
    components_img_ : 4-D image
        The parts, one a volume.
    components_, sparsity_, …
        As in `partwise.SparseNMF`, over the voxels of the mask.

    Examples
    --------
    >>> import nibabel, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> images = [nibabel.Nifti1Image(rng.random((4, 4, 4)), np.eye(4)) for _ in range(6)]
    >>> model = BrainNMF(2, sparsity=0.3, mask=nibabel.Nifti1Image(np.ones((4, 4, 4)), np.eye(4))).fit(images)
    >>> model.components_img_.shape
    (4, 4, 4, 2)
    """

    def __init__(self, n_components: int = 10, *, mask: Any = None, **options: Any) -> None:
        super().__init__(n_components, **options)
        self.mask = mask

    _inherited = inspect.signature(SparseNMF.__init__)
    __init__.__signature__ = _inherited.replace(  # type: ignore[attr-defined]
        parameters=[*_inherited.parameters.values(), inspect.signature(__init__).parameters["mask"]]
    )  # spelled out, because scikit-learn reads the parameters from it

    def transform(self, X: Any, *, observed: Any = None) -> Array:
        """The activations of images, a row each: nonnegative least squares for the parts, solved exactly.

        ``observed`` (images × voxels) is True where a value is observed.
        """
        return super().transform(X, observed=observed)

    def inverse_transform(self, X: Any) -> Any:
        """The images that activations stand for, as one 4-D image."""
        return self.masker_.inverse_transform(super().inverse_transform(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model of the voxels, which `partwise.load` gives back as a `partwise.SparseNMF`.

        It knows where its voxels are, for pictures, but not in which space they lie:
        ``model.mask_img_.to_filename("mask.nii.gz")`` keeps that.
        """
        plain = SparseNMF()
        plain.__dict__.update({name: value for name, value in vars(self).items() if name != "mask"})
        plain.save(path)

    def _validated(self, X: Any, reset: bool, observed: Any = None) -> Matrix | Chunked:
        """Images as samples × voxels."""
        if reset:
            self.masker_ = _fitted_masker(self.mask, X)
            self.mask_img_ = self.masker_.mask_img_
        if not hasattr(self.mask, "fit"):
            _check_place(X, self.mask_img_)
        samples = self.masker_.transform(X)
        return super()._validated(samples[None] if samples.ndim == 1 else samples, reset, observed)

    def _store_parts(self, components: Array) -> None:
        super()._store_parts(components)
        self.components_img_ = self.masker_.inverse_transform(self.components_)
        self.part_mask_ = self.mask_img_.get_fdata() > 0  # for pictures and reports


def _fitted_masker(mask: Any, images: Any) -> Any:
    try:
        from nilearn.maskers import NiftiMasker
    except ImportError:
        raise ImportError("brain images need nilearn: pip install 'partwise[brain]'") from None
    from sklearn.base import clone

    if hasattr(mask, "fit"):
        masker = clone(mask)
        return masker.fit() if masker.mask_img is not None else masker.fit(images)
    masker = NiftiMasker(mask, standardize=None)
    return masker.fit() if mask is not None else masker.fit(images)


def _check_place(images: Any, mask: Any) -> None:
    """Refuse images that lie elsewhere: resampled by splines they would have negative values."""
    import numpy as np
    from nilearn.image import load_img

    for i, image in enumerate(images if isinstance(images, list | tuple) else [images]):
        found = load_img(image)
        if found.shape[:3] != mask.shape or not np.allclose(found.affine, mask.affine, atol=1e-3):
            what = image if isinstance(image, str) else f"image {i}"
            raise ValueError(
                f"{what} of shape {found.shape[:3]} does not lie where the mask of shape {mask.shape} lies: resample "
                "one to the other (nilearn.image.resample_to_img)"
            )
