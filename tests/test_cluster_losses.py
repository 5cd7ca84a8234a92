"""Dask arrays: lost activations, failing chunks, and cleaning up after a fit."""

import gc
import sys
import threading

import numpy as np
import pytest
from catalogues import one_at_a_time
from clusters import (  # noqa: F401  (fixtures)
    BAD,
    BAD_VALUES,
    ERRORS,
    FORMS,
    SHORT,
    assert_same,
    by_value,
    changed,
    chunked,
    cluster_data,
    dask,
    eventually,
    failing,
    fall_behind,
    fresh,
    lose_some,
    message_of,
    own_scheduler,
    small,
    stop,
    visits,
)

import partwise as pw
from partwise.data import as_data
from partwise.engine.starts import Zeros
from partwise.projections import Hoyer

by_value(sys.modules[__name__])


# Activations that are lost


def lose(kept):
    kept.clear()


@one_at_a_time(when=[(3, 4), (0,), (20,)], accident=[lose, lose_some, fall_behind])
def test_lost_activations_are_recomputed(accident, when, X):
    def spoil(iteration):
        if iteration.n_iter in when:
            assert visits.KEPT
            accident(visits.KEPT)

    options = {"sparsity": 0.5, "max_iter": max(when) + 2, "tol": 0, "random_state": 0}
    assert_same(pw.ssnmf(chunked(X), 4, callback=spoil, **options), pw.ssnmf(X, 4, **options))
    assert not visits.KEPT


def test_revival_survives_a_loss(X, rng):
    X[:, :8] = 0
    parts = np.array([Hoyer(0.7)(np.where(np.arange(24) < 8, rng.random(24), -10.0)) for _ in range(4)])
    options = {**SHORT, "sparsity": 0.7, "init": (rng.random((150, 4)), parts)}
    wanted = pw.ssnmf(X, 4, **options)
    assert wanted.components[:, 8:].max(axis=1).all()
    spoiled = pw.ssnmf(chunked(X), 4, callback=lambda it: visits.KEPT.clear(), **options)
    assert_same(spoiled, wanted)


def test_repeated_visit_gives_the_same_result(monkeypatch, X):
    """As when a worker's answer is lost in transit."""
    visit, seen = visits.visit, []

    def twice(*asked):
        answers = visit(*asked), visit(*asked)
        seen.append(answers[0].total is answers[1].total)
        return answers[1]

    monkeypatch.setattr(cluster_data, "visit", twice)
    assert_same(pw.ssnmf(chunked(X), 4, **SHORT), pw.ssnmf(X, 4, **SHORT))
    assert len(seen) > 6 * 6
    assert all(seen)


class Sieve(dict):
    """A dict that stores nothing."""

    def __setitem__(self, key, value):
        pass


def test_a_fit_whose_activations_are_lost_every_time_gives_up(monkeypatch, X):
    monkeypatch.setattr(visits, "KEPT", Sieve())
    with pytest.raises(RuntimeError, match=r"lost 5 times in one pass: check the workers' logs"):
        pw.ssnmf(chunked(X), 4, max_iter=30, tol=0, random_state=0)


def test_a_loss_at_the_very_end_does_not_cost_the_fit(monkeypatch, X):
    """The loss is after the last step, before its activations are collected."""
    sweep, losses = cluster_data.HeldThere.sweep, []

    def sweep_and_lose(held, step):
        answer = sweep(held, step)
        if step is visits.unchanged and not losses:
            losses.append(len(visits.KEPT))
            visits.KEPT.clear()
        return answer

    monkeypatch.setattr(cluster_data.HeldThere, "sweep", sweep_and_lose)
    assert_same(pw.ssnmf(chunked(X), 4, **SHORT), pw.ssnmf(X, 4, **SHORT))
    assert losses == [6]


def test_concurrent_fits_do_not_interfere(X):
    found = {}

    def fit(seed):
        found[seed] = pw.ssnmf(chunked(X), 4, **SHORT | {"random_state": seed}).components

    threads = [threading.Thread(target=fit, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        wanted = pw.ssnmf(X, 4, **SHORT | {"random_state": seed}).components
        np.testing.assert_allclose(found[seed], wanted, atol=1e-8)


# What a fit leaves behind


STARTED, ENDED, OVER = [], [], threading.Event()


class Straggler:
    """A step whose first chunk fails while the others are running; these end after the fit."""

    def __call__(self, chunk, activations):
        if chunk.first == 0:
            eventually(lambda: len(STARTED) == 5)
            raise ValueError("the first fails")
        STARTED.append(chunk.first)
        OVER.wait(timeout=30)
        ENDED.append(chunk.first)
        return activations, 0


@pytest.mark.filterwarnings("ignore:reached max_iter")
def test_nothing_is_left_after_a_fit(scheduler, X):
    model = pw.SparseNMF(4, max_iter=3, random_state=0)
    activations = model.fit_transform(chunked(X))
    assert not visits.KEPT
    model.score(chunked(X))
    result = pw.ssnmf(chunked(X), 4, **SHORT)
    assert not visits.KEPT
    assert activations.shape == result.activations.shape


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_after_an_error(error, X):
    with pytest.raises(error):
        pw.ssnmf(chunked(X), 4, **SHORT, callback=stop(error("enough")))
    assert eventually(lambda: not visits.KEPT)


def test_nothing_is_left_while_the_error_is_handled(X):
    """For example in a notebook, which keeps the last error with all its frames."""
    with pytest.raises(KeyboardInterrupt) as caught:
        pw.ssnmf(chunked(X), 4, **SHORT, callback=stop(KeyboardInterrupt("enough")))
    assert eventually(lambda: not visits.KEPT)
    assert "enough" in str(caught.value)


def test_a_chunk_that_ends_after_the_fit_leaves_nothing(X):
    with dask.config.set(scheduler="threads", num_workers=6):
        held = as_data(chunked(X)).hold(Zeros(4, np.dtype(float)), 4)
        with pytest.raises(ValueError, match="the first fails"):
            held.sweep(Straggler())
        del held
        gc.collect()
        OVER.set()
        assert eventually(lambda: len(ENDED) == len(STARTED) == 5)
    assert eventually(lambda: not visits.KEPT)


@pytest.mark.filterwarnings("error::ResourceWarning")
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_every_file_is_closed(X):
    pw.ssnmf(chunked(X), 4, **SHORT)
    gc.collect()


def test_the_input_is_untouched(X):
    before, given = X.copy(), chunked(X)
    graph = set(given.dask)
    pw.ssnmf(given, 4, **SHORT)
    np.testing.assert_array_equal(X, before)
    assert set(given.dask) == graph


# Chunks that fail


@one_at_a_time(name=ERRORS, init=["samples", "random"])
def test_a_chunk_that_cannot_be_computed_is_named(name, init, X):
    error = type(ERRORS[name])(*ERRORS[name].args)
    with pytest.raises(type(error)) as caught:
        pw.ssnmf(failing(X, error), 4, init=init, **SHORT)
    assert type(caught.value) is type(error)
    assert f"chunk {BAD} (samples 50 to 79)" in message_of(caught.value)
    if name in ("value", "runtime", "chunk"):
        assert f"chunk {BAD}" in str(caught.value)
        assert str(ERRORS[name]) in str(caught.value)


@one_at_a_time(bad=BAD_VALUES, form=["dense", "CSR matrix", "CSC matrix"], init=["samples", "random"])
def test_a_bad_value_is_named_by_chunk_and_row(bad, form, init, X):
    value, message = BAD_VALUES[bad]
    X[77, 3] = value
    for fit in (pw.ssnmf, lambda X, r, **options: pw.SparseNMF(r, **options).fit(X)):
        with pytest.raises(ValueError, match=message) as caught:
            fit(chunked(X, FORMS[form]), 4, init=init, **SHORT)
        assert "row 77, column 3" in str(caught.value) or "X[77, 3]" in str(caught.value)
        assert f"chunk {BAD} (samples 50 to 79)" in str(caught.value)


@one_at_a_time(ask=["transform", "score"], bad=BAD_VALUES, form=["dense", "CSR matrix"])
def test_new_samples_with_a_bad_value_are_refused_as_in_memory(ask, bad, form, X):
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    value, message = BAD_VALUES[bad]
    X[77, 3] = value
    with pytest.raises(ValueError, match=message):
        getattr(model, ask)(X)
    with pytest.raises(ValueError, match=message) as caught:
        np.asarray(getattr(model, ask)(chunked(X, FORMS[form])))
    assert f"chunk {BAD}" in str(caught.value)


def test_errors_of_chunks_in_transform_are_raised_unchanged(X):
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    with pytest.raises(RuntimeError, match="it cannot be read"):
        model.transform(failing(X, RuntimeError("it cannot be read"))).compute()


SHAPES = {
    "too few samples": lambda block: block[:-1],
    "too many samples": lambda block: np.vstack([block, block]),
    "too few features": lambda block: block[:, 1:],
    "too many features": lambda block: np.hstack([block, block]),
    "one sample, flat": lambda block: block[0],
    "none": lambda block: block[:0],
}


@one_at_a_time(shape=SHAPES, init=["samples", "random"])
def test_a_chunk_of_another_shape_than_declared_is_named(shape, init, X):
    given = changed(X, lambda block, number: SHAPES[shape](block) if number == BAD else block)
    with pytest.raises(ValueError, match=rf"chunk {BAD} .*shape .* instead of \(30, 24\)"):
        pw.ssnmf(given, 4, init=init, **SHORT)
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    with pytest.raises(ValueError, match=rf"chunk {BAD} .*shape .* instead of \(30, 24\)"):
        model.transform(given).compute()
