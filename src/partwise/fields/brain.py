"""Sparse NMF of brain images, in the style of nilearn (``pip install 'partwise[brain]'``)."""

from __future__ import annotations

import inspect
import os
from typing import Any

from partwise.data import Chunked, Matrix
from partwise.engine.origins import Brain
from partwise.estimators import SparseNMF
from partwise.statistics import Array

__all__ = ["BrainNMF"]


class BrainNMF(SparseNMF):
    """`partwise.SparseNMF` for lists of NIfTI images, or for 4-D images.

    Each image, or volume of a 4-D image, is a sample. Each voxel in the brain mask is a feature.

    Parameters
    ----------
    n_components : int, default=10
    mask : image, path, or NiftiMasker, optional
        Brain mask. By default nilearn computes it from the images. A NiftiMasker may smooth and resample the images;
        otherwise they must have the shape and affine of the mask.
    **options
        Other parameters of `partwise.SparseNMF`, such as ``sparsity``.

    Attributes
    ----------
    masker_ : NiftiMasker
        Converts images to samples and back.
    mask_img_ : image
        The brain mask.
    components_img_ : 4-D image
        The components, one per volume.
    components_, sparsity_, …
        As in `partwise.SparseNMF`, with the voxels of the mask as features.

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
    )  # scikit-learn reads the parameters from the signature

    def inverse_transform(self, X: Any) -> Any:
        """Reconstruct images from activations, as one 4-D image."""
        return self.masker_.inverse_transform(super().inverse_transform(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model with its mask and affine; `partwise.load` returns it as a `partwise.SparseNMF` over voxels.

        The loaded model has ``components_img_``. Its samples are ``partwise.io.read(images, mask=model.origin_).X``.
        """
        plain = SparseNMF()
        plain.__dict__.update({name: value for name, value in vars(self).items() if name != "mask"})
        plain.save(path)

    def _validated(self, X: Any, reset: bool, observed: Any = None) -> Matrix | Chunked:
        """Convert images to samples × voxels."""
        if reset:
            self.masker_ = _fitted_masker(self.mask, X)
            self.mask_img_ = self.masker_.mask_img_
        if not hasattr(self.mask, "fit"):
            _check_space(X, self.mask_img_)
        samples = self.masker_.transform(X)
        return super()._validated(samples[None] if samples.ndim == 1 else samples, reset, observed)

    def _store_parts(self, components: Array) -> None:
        super()._store_parts(components)
        inside = self.mask_img_.get_fdata() > 0
        self.keep(origin=Brain(self.mask_img_.affine, inside.shape, inside))


def _fitted_masker(mask: Any, images: Any) -> Any:
    try:
        from nilearn.maskers import NiftiMasker
    except ImportError:
        raise ImportError("brain images need nilearn: pip install 'partwise[brain]'") from None
    from sklearn.base import clone

    masker = clone(mask) if hasattr(mask, "fit") else NiftiMasker(mask, standardize=None)
    return masker.fit(None if masker.mask_img is not None else images)


def _check_space(images: Any, mask: Any) -> None:
    """Raise if an image is in another space: spline resampling would create negative values."""
    import numpy as np
    from nilearn.image import load_img

    for i, image in enumerate(images if isinstance(images, list | tuple) else [images]):
        found = load_img(image)
        if found.shape[:3] != mask.shape or not np.allclose(found.affine, mask.affine, atol=1e-3):
            what = image if isinstance(image, str) else f"image {i}"
            raise ValueError(
                f"{what} (shape {found.shape[:3]}) and the mask (shape {mask.shape}) have different shapes or affines: "
                "resample one to the other (nilearn.image.resample_to_img)"
            )
