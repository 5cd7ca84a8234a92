"""
Topics of a text
================

The documents are the docstrings of NumPy and SciPy: technical prose that every installation has. scikit-learn
counts the words, and the sparse matrix is factorized as it is. Without a constraint, some topics are about few
words and others mix many. With ``sparsity=0.85``, all are equally concentrated, at almost no cost.
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from scipy import fft, interpolate, linalg, ndimage, optimize, signal, sparse, stats
from sklearn.feature_extraction.text import TfidfVectorizer

import partwise as pw

modules = [np, fft, interpolate, linalg, ndimage, optimize, signal, sparse, stats]
texts = {inspect.getdoc(getattr(module, name)) for module in modules for name in module.__all__}
documents = [re.split(r"\n(?:References|Examples|See Also)\n", text)[0] for text in sorted(filter(None, texts))]
words = TfidfVectorizer(min_df=10, max_df=0.1, stop_words="english", token_pattern=r"[a-z]{4,}")
X = words.fit_transform(documents)
print(f"{X.shape[0]} documents × {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} of the entries are stored")

free = pw.SparseNMF(8, random_state=0).fit(X)
topics = pw.SparseNMF(8, sparsity=0.85, random_state=0).fit(X)
for name, model in ("free", free), ("0.85", topics):
    least, most = model.sparsity_.min(), model.sparsity_.max()
    print(f"{name}: sparsity {least:.2f} to {most:.2f}, {model.score(X):.1%} explained")

# %%
# The strongest words of each topic.

names = words.get_feature_names_out()
figure = plt.figure(figsize=(10, 5), layout="constrained")
pw.plotting.gallery(topics, kind="bars", feature_names=names, top=8, columns=4, labels=False, figure=figure)
plt.show()
