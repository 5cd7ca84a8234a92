"""Files to read in tests."""

import numpy as np
import scipy.sparse as sp

AFFINE = np.diag([2.0, 2.0, 3.0, 1.0])


def dense(X):
    """X as an array, wherever it lies."""
    return X.toarray() if sp.issparse(X) else np.asarray(X[: X.shape[0]])


def save_images(folder, pixels, ending=".png"):
    from PIL import Image

    for i, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"i{i}{ending}")


def save_nifti(path, values, affine=AFFINE):
    import nibabel

    nibabel.Nifti1Image(np.asarray(values), affine).to_filename(path)
    return path
