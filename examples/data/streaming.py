"""
A stream of batches
===================

Samples arrive in batches and are seen once. :class:`partwise.MiniBatchSparseNMF` learns from each batch and
discards it. The components have exactly the requested sparsity after every batch, so they can be used at any time.
Here digits arrive 100 at a time, and the last 297 are kept to measure how well the components explain new samples.
"""

import matplotlib.pyplot as plt

import partwise as pw

X, shape = pw.datasets.load_digits()
stream, new = X[:1500], X[1500:]
model = pw.MiniBatchSparseNMF(12, sparsity=0.7, random_state=0)
scores, snapshots = [], {}
for seen in range(100, 1501, 100):
    model.partial_fit(stream[seen - 100 : seen])
    scores.append(model.score(new))
    if seen in (100, 500, 1500):
        snapshots[seen] = model.components_.copy()
whole = pw.SparseNMF(12, sparsity=0.7, random_state=0).fit(stream).score(new)
print(f"explained after one pass: {scores[-1]:.1%}; by a fit with all samples at once: {whole:.1%}")

# %%
# The first components after 100, 500 and 1500 samples, and the share of new samples that all explain.

figure = plt.figure(figsize=(10, 3.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
for row, (seen, components) in zip(left.subfigures(3, 1), snapshots.items(), strict=True):
    pw.plotting.gallery(components[:6], shape, columns=6, labels=False, title=f"{seen} samples", figure=row)
axis = right.subplots()
axis.plot(range(100, 1501, 100), scores, "o-", markersize=4, color="#0072b2", label="stream")
axis.axhline(whole, color="#d55e00", linestyle="--", label="all samples at once")
axis.set(xlabel="samples seen", ylabel="share of new samples explained")
axis.legend(frameon=False)
plt.show()
