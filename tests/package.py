"""Checks of an installed wheel; ``make package`` runs them in an empty environment, outside of the repository."""

import importlib.metadata
import sys
from pathlib import Path

import numpy as np

import partwise as pw


def main():
    assert importlib.metadata.version("partwise") == pw.__version__
    assert "site-packages" in pw.__file__, pw.__file__
    assert "experiments" not in {path.name for path in Path(pw.__file__).parent.iterdir()}

    X = np.random.default_rng(0).random((40, 5)) @ np.random.default_rng(1).random((5, 30))
    model = pw.SparseNMF(5, sparsity=0.3, random_state=0, max_iter=500).fit(X)
    np.testing.assert_allclose(model.sparsity_, 0.3, atol=1e-10)
    model.save("model.pw")
    np.testing.assert_array_equal(pw.load("model.pw").transform(X), model.transform(X))
    assert sum(name.startswith("partwise") for name in sys.modules) > 10
    print(f"partwise {pw.__version__} works as installed")


if __name__ == "__main__":
    main()
