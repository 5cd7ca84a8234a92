"""Checks of an installed wheel; ``make package`` runs them in an empty environment, outside of the repository."""

import importlib.metadata
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import partwise as pw
from partwise.cli import main as partwise


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

    np.savetxt("x.csv", X, delimiter=",", header=",".join(f"f{j}" for j in range(30)), comments="")
    Path("pictures").mkdir()
    for i, pixels in enumerate(X.reshape(-1, 5, 6)):
        Image.fromarray((255 * pixels / X.max()).astype("uint8")).save(f"pictures/{i}.png")
    for data in ("x.csv", "pictures"):
        assert partwise(["fit", data, "-r", "3", "-s", "0.2", "--png", f"{data}.png", "--out", f"{data}.pw", "-q"]) == 0
        assert partwise(["show", f"{data}.pw", "--html", f"{data}.html"]) == 0
        assert "<svg" in Path(f"{data}.html").read_text(encoding="utf-8")
    assert partwise(["demo"]) == 0
    print(f"partwise {pw.__version__} works as installed")


if __name__ == "__main__":
    main()
