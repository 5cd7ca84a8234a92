"""
Digits for a classifier
=======================

:class:`partwise.SparseNMF` is a scikit-learn transformer. In a pipeline, its activations are the input of a
classifier, and the parameters of both can be searched together. The score is the accuracy on left-out digits, which
does not favour dense components, so that the search can compare sparsities.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import partwise as pw

images, digit = load_digits(return_X_y=True)
train, test, train_digit, test_digit = train_test_split(images, digit, test_size=0.4, random_state=0)
steps = make_pipeline(pw.SparseNMF(random_state=0), MaxAbsScaler(), LogisticRegression(max_iter=1000))
sparsities, sizes = [0.65, 0.75, 0.85], [8, 16]
grid = {"sparsenmf__sparsity": sparsities, "sparsenmf__n_components": sizes}
search = GridSearchCV(steps, grid, cv=3).fit(train, train_digit)
print(f"best: {search.best_params_}, accuracy on new digits {search.score(test, test_digit):.1%}")

# %%
# The components of the best model. Red components are evidence for the digit 3, blue ones against it.

best = search.best_estimator_
weights = best[-1].coef_[3]
figure = plt.figure(figsize=(10, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
axis = left.subplots()
for size in sizes:
    chosen = search.cv_results_["param_sparsenmf__n_components"] == size
    axis.plot(sparsities, search.cv_results_["mean_test_score"][chosen], "o-", label=f"{size} components")
axis.set(xlabel="sparsity", ylabel="accuracy on left-out digits", xticks=sparsities)
axis.legend(frameon=False)
order = np.argsort(weights)
axes = right.subplots(4, -(-len(order) // 4)).ravel()
for axis, j in zip(axes, order, strict=False):
    signed = best[0].components_[j].reshape(8, 8) * weights[j]
    axis.imshow(signed, cmap="RdBu_r", vmin=-abs(signed).max(), vmax=abs(signed).max())
for axis in axes:
    axis.set_axis_off()
right.suptitle("evidence against the digit 3 (blue) and for it (red)", fontsize=10)
plt.show()
