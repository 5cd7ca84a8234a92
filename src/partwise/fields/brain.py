"""Sparse NMF of brain images, in the style of nilearn (``pip install 'partwise[brain]'``)."""

from __future__ import annotations

import html
import inspect
import os
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from partwise.data import Chunked, Matrix
from partwise.engine.origins import Brain
from partwise.estimators import SparseNMF
from partwise.runtime.files import replacing
from partwise.statistics import Array

__all__ = ["BrainNMF"]

MASKING = ("smoothing_fwhm", "standardize", "target_affine", "mask_strategy", "memory")  # parameters of a NiftiMasker


class BrainNMF(SparseNMF):
    """`partwise.SparseNMF` for lists of NIfTI images, or for 4-D images.

    Each image, or volume of a 4-D image, is a sample. Each voxel in the brain mask is a feature.

    Parameters
    ----------
    n_components : int, default=10
    mask : image, path, or NiftiMasker, optional
        Brain mask. By default nilearn computes it from the images. Images must have the shape and affine of the mask,
        unless a NiftiMasker or ``target_affine`` resamples them.
    smoothing_fwhm : float, optional
        Full width at half maximum of a Gaussian filter, in mm.
    standardize : str, optional
        As in nilearn. An error is raised if it makes values negative, as z-scores do.
    target_affine : array of shape (3, 3) or (4, 4), optional
        The images and the mask are resampled to this affine.
    mask_strategy : str, default="background"
        How nilearn computes the mask, such as "epi" or "whole-brain-template".
    memory : joblib.Memory or str, optional
        Where nilearn caches masked images.
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

    def __init__(
        self,
        n_components: int = 10,
        *,
        mask: Any = None,
        smoothing_fwhm: float | None = None,
        standardize: Any = None,
        target_affine: Any = None,
        mask_strategy: str = "background",
        memory: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(n_components, **options)
        self.mask = mask
        self.smoothing_fwhm = smoothing_fwhm
        self.standardize = standardize
        self.target_affine = target_affine
        self.mask_strategy = mask_strategy
        self.memory = memory

    _inherited, _own = inspect.signature(SparseNMF.__init__), [*inspect.signature(__init__).parameters.values()]
    __init__.__signature__ = _inherited.replace(  # type: ignore[attr-defined]
        parameters=[*_inherited.parameters.values(), *_own[2:-1]]
    )  # scikit-learn reads the parameters from the signature

    def inverse_transform(self, X: Any) -> Any:
        """Reconstruct images from activations, as one 4-D image."""
        return self.masker_.inverse_transform(super().inverse_transform(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model with its mask and affine; `partwise.load` returns it as a `partwise.SparseNMF` over voxels.

        The loaded model has ``components_img_``. Its samples are ``partwise.io.read(images, mask=model.origin_).X``:
        smoothing and resampling are not stored.
        """
        plain = SparseNMF()
        plain.__dict__.update({name: value for name, value in vars(self).items() if name not in ("mask", *MASKING)})
        plain.save(path)

    def generate_report(self, **options: Any) -> BrainReport:
        """The HTML report of the fit, see `partwise.report`, as an object like nilearn's reports.

        Call ``save_as_html(path)``, or make it the last line of a notebook cell.
        """
        return BrainReport(self.report(**options))

    def _validated(self, X: Any, reset: bool, observed: Any = None, weights: Any = (None,) * 3) -> Matrix | Chunked:
        """Convert images to samples × voxels."""
        if reset:
            self.masker_ = self._fitted_masker(X)
            self.mask_img_ = self.masker_.mask_img_
        if not hasattr(self.mask, "fit") and self.target_affine is None:
            _check_space(X, self.mask_img_)
        samples = self.masker_.transform(X)
        if self.standardize and samples.min() < 0:
            raise ValueError(
                f"standardize={self.standardize!r} subtracts the mean of each voxel, which makes values negative: "
                "omit it"
            )
        return super()._validated(samples[None] if samples.ndim == 1 else samples, reset, observed, weights)

    def _fitted_masker(self, images: Any) -> Any:
        try:
            from nilearn.maskers import NiftiMasker
        except ImportError:
            raise ImportError("brain images need nilearn: pip install 'partwise[brain]'") from None
        settings, usual = ({name: getattr(model, name) for name in MASKING} for model in (self, BrainNMF()))
        if not hasattr(self.mask, "fit"):
            masker = NiftiMasker(self.mask, **settings)
        elif changed := [name for name, value in settings.items() if value is not usual[name]]:
            raise ValueError(f"mask is a NiftiMasker: set {changed[0]} there")
        else:
            masker = clone(self.mask)
        return masker.fit(None if masker.mask_img is not None else images)

    def _store_parts(self, components: Array) -> None:
        super()._store_parts(components)
        inside = self.mask_img_.get_fdata() > 0
        self.keep(origin=Brain(self.mask_img_.affine, inside.shape, inside))


@dataclass(frozen=True)
class BrainReport:
    """A report with the methods of nilearn's reports."""

    html: str

    def __str__(self) -> str:
        return self.html

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="800" style="border: 0"></iframe>'

    def save_as_html(self, file_name: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        with replacing(file_name) as fresh:
            fresh.write_text(self.html, encoding="utf-8")


def _check_space(images: Any, mask: Any) -> None:
    """Raise if an image is in another space, which nilearn would resample without being asked."""
    import numpy as np
    from nilearn.image import load_img

    for i, image in enumerate(images if isinstance(images, list | tuple) else [images]):
        found = load_img(image)
        if found.shape[:3] != mask.shape or not np.allclose(found.affine, mask.affine, atol=1e-3):
            what = image if isinstance(image, str) else f"image {i}"
            raise ValueError(
                f"{what} (shape {found.shape[:3]}) and the mask (shape {mask.shape}) have different shapes or affines: "
                "resample one to the other (nilearn.image.resample_to_img), or set target_affine"
            )
