"""Every kind of data agrees with the dense array, leaves its input unchanged, and rejects bad values."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import KINDS, dense, locked, one_at_a_time, peak_of, random_factors, stats_of, tolerance

import partwise as pw
from partwise.data import as_data
from partwise.data.matrix import Arrangements
from partwise.data.products import LANES, LINE, padded
from partwise.data.sparse import wide_rows
from partwise.data.zeros import FEW, DenseChunk
from partwise.runtime.threads import fitting_threads
from partwise.statistics import gram


def test_every_kind_agrees_with_dense(problem, kind, rng):
    given = kind(problem.X)
    data, X = as_data(given), dense(given)
    tol, big = tolerance(data.dtype), np.abs(X).max()
    factors = random_factors(X.shape, problem.r, rng, data.dtype)
    assert data.shape == X.shape
    direct = np.linalg.norm(X - factors[0].astype(float) @ factors[1].T.astype(float)) ** 2
    assert data.squared_error(factors) == pytest.approx(direct, rel=tol)
    for mode, along in enumerate((X, X.T)):
        stats, wanted = data.statistics(factors, [gram(f) for f in factors], mode), stats_of(X, factors, mode)
        assert stats.cross.dtype == data.dtype
        assert stats.cross.flags.f_contiguous
        np.testing.assert_allclose(stats.cross, wanted.cross, rtol=tol, atol=tol * big)
        np.testing.assert_allclose(stats.gram, wanted.gram, rtol=tol)
        assert stats.sqnorm == data.sqnorm == pytest.approx(wanted.sqnorm, rel=tol)
        np.testing.assert_allclose(data.sqnorms(mode), np.sum(along**2, axis=1), rtol=tol)
        which = np.array([along.shape[0] - 1, 0])
        np.testing.assert_array_equal(data.vectors(mode, which), along[which].T)
        v = rng.random(along.shape[1])
        np.testing.assert_allclose(data.times(v, mode), along @ v, rtol=tol, atol=tol * big)


def test_dtypes_are_kept_and_other_numbers_become_double(kind, rng):
    given = kind(rng.random((3, 4)))
    single = getattr(given, "dtype", None) == np.float32
    assert as_data(given).dtype == (np.float32 if single else np.float64)
    assert as_data(as_data(given)).dtype == as_data(given).dtype


@one_at_a_time(problem=["planted"], kind=KINDS, init=["random", "samples", "nndsvd", "gradual"])
def test_the_input_is_untouched(problem, kind, init):
    given = kind(problem.X)
    before = pickle.loads(pickle.dumps(given))
    pw.ssnmf(given, 2, init=init, max_iter=2, random_state=0)
    pw.ssnmf(given, 2, sparsity=0.2, init=init, solver="pivot", max_iter=2, random_state=0)
    for name in ("data", "indices", "indptr", "coords") if sp.issparse(given) else ():
        np.testing.assert_array_equal(getattr(given, name, ()), getattr(before, name, ()))
    np.testing.assert_array_equal(dense(given), dense(before))


def test_dense_arrays_are_not_copied(rng):
    for X in (locked(rng.random((5, 6))), np.asfortranarray(rng.random((5, 6))), rng.random((5, 6)).astype(np.float32)):
        assert np.shares_memory(as_data(X).matrix, X)


@pytest.mark.parametrize("near", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray])
def test_the_error_is_right_where_statistics_cancel(form, near, rng):
    factors = random_factors((30, 20), 3, rng)
    exact = factors[0] @ factors[1].T
    X = exact * (1 + near * rng.random((30, 20)))
    assert as_data(form(X)).squared_error(factors) == pytest.approx(np.linalg.norm(X - exact) ** 2, rel=1e-3)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("near", [1e-2, 1e-4, 1e-6])
def test_the_error_of_sparse_data_near_a_perfect_fit(form, near, rng):
    factors = [np.asfortranarray(f * (rng.random(f.shape) < 0.3)) for f in random_factors((40, 30), 3, rng)]
    exact = factors[0] @ factors[1].T
    X = exact * (1 + near * rng.random(exact.shape))
    assert as_data(form(X)).squared_error(factors) == pytest.approx(np.linalg.norm(X - exact) ** 2, rel=1e-3)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_sparse_products_equal_dense_ones_at_any_rank(form, dtype, index, n_threads, monkeypatch, rng):
    monkeypatch.setattr("partwise.data.products.LEAST", 4)
    X = (rng.random((23, 31)) * (rng.random((23, 31)) < np.linspace(0, 1, 31))).astype(dtype)
    X[:, 9] = X[:2] = X[-1] = X[11] = 0  # empty rows and columns
    given = form(X)
    given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    data = as_data(given)
    with fitting_threads(np.inf, n_threads):
        for r in (1, 3, 4, 7, 8, 17, 50):
            for mode, along in enumerate((X, X.T)):
                rest = np.asfortranarray(rng.random((along.shape[1], r)).astype(dtype))
                found = data.cross(rest, mode)
                assert (found.dtype, found.flags.f_contiguous, found.shape) == (dtype, True, (len(along), r))
                np.testing.assert_allclose(found, along @ rest, rtol=tolerance(data.dtype))
                np.testing.assert_array_equal(data.cross(rest, mode), found.copy())
                assert not found[~along.any(axis=1)].any()


def test_padded_rows_begin_at_cache_lines():
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        for n, r in ((1, 1), (5, 8), (7, 17)):
            rows = padded((n, r), dtype)
            assert rows.shape == (n, -(-r // LANES) * LANES)
            assert rows.flags.c_contiguous
            assert rows.ctypes.data % LINE == 0
            assert not rows.any()


def scattered(size, entries, rng, form=sp.csr_array):
    i, j = rng.integers(0, size, (2, entries))
    return form(sp.coo_array((rng.random(entries), (i, j)), shape=(size, size)))


@pytest.mark.compiled
@one_at_a_time(init=["random", "samples", "nndsvd", "gradual"], form=[sp.csr_array, sp.csc_array])
def test_sparse_data_is_never_made_dense(form, init, rng):
    X = scattered(100_000, 500, rng, form)
    pw.ssnmf(scattered(20, 50, rng, form), 3, init=init, random_state=0, max_iter=2)  # imports are not counted
    factor = X.shape[0] * 3 * 8
    fit = {"sparsity": 0.9, "init": init, "max_iter": 3, "random_state": 0}
    assert peak_of(lambda: pw.ssnmf(X, 3, **fit)) < 40 * factor  # dense, X would take 33,000


@pytest.mark.compiled
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_fit_takes_a_few_factors_beyond_the_data(order, rng):
    X = np.array(rng.random((1500, 2000)), order=order)
    pw.ssnmf(X[:20, :20], 4, sparsity=0.3, random_state=0, max_iter=2)
    assert peak_of(lambda: pw.ssnmf(X, 4, sparsity=0.3, max_iter=3, random_state=0)) < 0.5 * X.nbytes


BAD = {
    "NaN": (np.nan, "NaN"),
    "infinite": (np.inf, "infinity"),
    "minus infinity": (-np.inf, "infinity"),
    "negative": (-0.25, r"X\[3, 1\] is -0.25"),
}


@one_at_a_time(dtype=[np.float64, np.float32], bad=BAD)
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, sp.coo_array])
def test_bad_values_are_named(form, dtype, bad, rng):
    value, message = BAD[bad]
    X = rng.random((5, 4)).astype(dtype)
    X[3, 1] = value
    with pytest.raises(ValueError, match=message) as caught:
        as_data(form(X))
    assert "row 3, column 1" in str(caught.value) or "X[3, 1]" in str(caught.value)


def test_the_first_bad_value_is_named(rng):
    X = rng.random((2000, 300))
    X[1700, 20] = X[1701, 3] = X[1999, 1] = np.nan
    with pytest.raises(ValueError, match="row 1700, column 20"):
        as_data(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"\(3,\)"),
        (np.float64(3), r"\(\)"),
        (np.ones((2, 3, 4)), r"\(2, 3, 4\)"),
        (np.ones((0, 3)), r"\(0, 3\)"),
        (np.ones((3, 0)), r"\(3, 0\)"),
        (sp.csr_array((0, 3)), r"\(0, 3\)"),
        (sp.coo_array(np.ones(3)), r"\(3,\)"),
        (np.ones((2, 2)) * 1j, "complex128"),
        (sp.csr_array(np.ones((2, 2)) * 1j), "complex128"),
        (np.array([["a", "b"]]), "<U1"),
        (np.array([["a", 1.0]], dtype=object), "'a'"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "datetime64"),
    ],
)
def test_non_matrices_are_rejected(X, message):
    with pytest.raises(ValueError, match=message):
        as_data(X)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("scale", "dtype"),
    [(1e200, float), (1e-200, float), (1e80, float), (1e-80, float), (1e12, np.float32), (1e-12, np.float32)],
)
def test_scales_whose_fourth_powers_overflow_are_refused(form, scale, dtype, rng):
    with pytest.raises(ValueError, match="rescale X"):
        as_data(form((scale * rng.random((4, 5))).astype(dtype)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("scale", "dtype"), [(1e75, float), (1e-75, float), (1e9, np.float32), (1e-9, np.float32)])
def test_scale_of_x_changes_only_the_scale_of_the_result(form, scale, dtype, rng):
    X, activations, components = rng.random((12, 9)), rng.random((12, 3)), rng.random((3, 9))
    fit = {"sparsity": 0.4, "max_iter": 5, "tol": 0, "random_state": 0}
    plain = pw.ssnmf(X, 3, init=(activations, components), **fit)
    scaled = pw.ssnmf(form((scale * X).astype(dtype)), 3, init=(scale * activations, components), **fit)
    assert scaled.relative_error == pytest.approx(plain.relative_error, rel=1e-5)
    np.testing.assert_allclose(scaled.components, plain.components, atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("mode", [0, 1])
def test_squares_of_single_precision_are_summed_in_double(form, mode, rng):
    X = rng.random((5000, 3) if mode else (3, 5000)).astype(np.float32)
    wanted = np.square(X.astype(float)).sum(axis=1 - mode)
    np.testing.assert_allclose(as_data(form(X)).sqnorms(mode), wanted, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-40])
def test_scales_at_the_ends_of_single_precision_are_refused_or_right(form, scale, rng):
    X = (scale * rng.random((12, 9))).astype(np.float32)
    try:
        result = pw.ssnmf(form(X), 3, sparsity=0.4, random_state=0)
    except ValueError as error:
        assert "rescale X" in str(error)  # noqa: PT017
    else:
        X, activations = (a.astype(float) / scale for a in (X, result.activations))
        direct = np.linalg.norm(X - activations @ result.components) / np.linalg.norm(X)
        assert result.relative_error == pytest.approx(direct, rel=1e-3)
        assert result.relative_error < 0.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_chunks_with_few_nonzeros_multiply_only_these(share, form, dtype, rng):
    X = form(np.where(rng.random((40, 30)) < share, rng.random((40, 30)), 0)).astype(dtype, order="K")
    chunk = DenseChunk(X, check=False)
    assert (chunk.nonzeros is not None) == (share < FEW)
    for mode, along in enumerate((X, X.T)):
        rests = [np.asfortranarray(rng.random((along.shape[1], r)), dtype=dtype) for r in (2, 90)]
        for rest, found in zip(rests, chunk.crosses(rests, mode), strict=True):
            np.testing.assert_allclose(found, along @ rest, rtol=tolerance(dtype))
            np.testing.assert_allclose(chunk.cross(rest, mode), along @ rest, rtol=tolerance(dtype))


def test_components_are_arranged_once_for_all_chunks_of_a_pass(rng):
    first, second = np.asfortranarray(rng.random((30, 2))), np.asfortranarray(rng.random((30, 3)))
    arrangements = Arrangements()
    for share in (0.05, 1.0, 0.05, 1.0):  # with few nonzeros and with many, which need other arrangements
        X = np.where(rng.random((20, 30)) < share, rng.random((20, 30)), 0)
        for rests in ([first, second], [second, first]):
            chunk = DenseChunk(X, check=False)
            chunk.arrangements = arrangements
            np.testing.assert_allclose(np.hstack(chunk.crosses(rests, 0)), X @ np.hstack(rests), rtol=1e-12)
    kept = arrangements.of([second, first], wide_rows)
    assert arrangements.of([second, first], wide_rows) is kept
    assert arrangements.of([first, second], wide_rows) is not kept


def test_as_many_nonzeros_as_allowed(rng):
    X = np.zeros((10, 20))
    X.flat[: int(FEW * X.size)] = 1
    assert DenseChunk(X).nonzeros.matrix.nnz == FEW * X.size
    X[-1, -1] = 1
    assert DenseChunk(X).nonzeros is None
    X[:] = 0
    X[3, 4] = np.nan  # appeared after the first pass: it must not be lost
    assert np.isnan(DenseChunk(X, check=False).cross(np.ones((20, 1), order="F"), 0)[3, 0])
