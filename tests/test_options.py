"""One table of options: signatures, docstrings, type hints and flags agree with it."""

import argparse
import inspect
import subprocess
import sys

import pytest

import partwise as pw
from partwise.cli.model_options import CHECKPOINTING, add_flags
from partwise.engine.options import FLAGS, TABLE, WEIGHTS, Flag, Keywords, entries, entry, full_docstring, with_options
from partwise.recipes import RECIPES

FUNCTIONS = {**RECIPES, "cp": pw.cp}
CLASSES = {kind.__name__: kind for kind in (pw.SparseNMF, pw.MiniBatchSparseNMF, pw.SparseCP)}
WHOLE = FUNCTIONS | CLASSES
NOT_OF_TENSORS = {
    "loss",
    "memory_limit",
    "fixed_components",
    "fixed_activations",
    "missing",
    "observed",
    "negative",
    *WEIGHTS,
}


def sections(doc):
    """Each unindented line of the parameters, with the text below it."""
    head, _, rest = doc.partition("Parameters\n----------\n")
    own, _, after = rest.partition("\n\n")
    assert head
    assert after.startswith(("Returns\n-------", "Attributes\n----------"))
    return [line.split(" :")[0] for line in own.splitlines() if not line.startswith(" ")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_recipes_take_and_describe_all_of_them(name):
    left_out = NOT_OF_TENSORS if name == "cp" else set()
    shared = {p.name: p for p in inspect.signature(FUNCTIONS[name]).parameters.values() if p.name in TABLE}
    assert list(shared) == [option for option in TABLE if option not in left_out]
    for option, parameter in shared.items():
        assert parameter.default == TABLE[option].default
        type_ = Keywords.__annotations__[option].__origin__
        assert parameter.annotation == getattr(type_, "__forward_arg__", type_)
        assert parameter.kind is parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", WHOLE)
def test_every_parameter_is_described_once(name):
    told = [one for line in sections(inspect.getdoc(WHOLE[name])) for one in line.split(", ")]
    assert sorted(told) == sorted(inspect.signature(WHOLE[name]).parameters)


@pytest.mark.parametrize("name", CLASSES)
def test_estimators_have_the_same_defaults_or_document_others(name):
    doc = inspect.getdoc(CLASSES[name])
    for option, parameter in inspect.signature(CLASSES[name]).parameters.items():
        if option in TABLE and parameter.default != TABLE[option].default:
            assert entry(option, parameter.default) not in doc


def test_own_text_in_docstrings_is_kept():
    """a

    Parameters
    ----------
    X
    max_iter, tol : int, float
        Mine.

    Returns
    -------
    """
    doc = test_own_text_in_docstrings_is_kept.__doc__

    def made(X, max_iter=3, tol=0, n_threads=4, other=5): ...

    words = full_docstring(doc, {}, entries(inspect.signature(made)))
    assert sections(words) == ["X", "max_iter, tol", "n_threads"]
    assert "n_threads : int, default=4\n    Number of threads" in words
    assert "    Mine.\n" in words
    assert full_docstring(None, {}, {}) is None
    assert with_options(type("Bare", (), {"__init__": made})).__doc__ is None


def test_shared_sections_are_completed():
    doc = inspect.getdoc(pw.ssnmf)
    assert "Parameters\n----------\nX : array or SciPy sparse matrix" in doc
    assert doc.count("Returns\n-------\nResult\n") == doc.count("n_components : int\n") == 1
    assert inspect.getdoc(pw.cp).count("Returns\n-------\n") == 1


def test_no_other_names():
    with pytest.raises(TypeError, match=r"ssnmf does not take max_iters \(did you mean max_iter\?\); it takes X, "):
        pw.ssnmf([[1.0]], 1, max_iters=3)


def test_flags_come_from_the_table():
    parser = argparse.ArgumentParser()
    add_flags(parser, FLAGS | {"faithful": Flag(bool, "a switch")})
    given = {"max_iter": "7", "tol": "0.5", "init": "random", "fixed_components": "known.csv", "resume": "c.pw"}
    found = vars(
        parser.parse_args([word for name, text in given.items() for word in (f"--{name.replace('_', '-')}", text)])
    )
    assert (found["max_iter"], found["tol"], found["init"], found["resume_from"]) == (7, 0.5, "random", "c.pw")
    assert found["fixed_components"].name == "known.csv"
    assert all(found[name] is None for name in ("kkt_tol", "random_state", "checkpoint_every", "faithful"))
    text = " ".join(parser.format_help().split())
    for said in (
        "number of iterations (default: 1000)",
        "more than this share (default: 0.05)",
        "checkpoints (default: 10)",
        "--no-faithful",
    ):
        assert said in text
    assert set(CHECKPOINTING) < set(FLAGS) < set(TABLE)
    assert set(TABLE) - set(FLAGS) == {"callback", "observed"}  # no file holds them


def test_the_command_line_reads_the_table_before_it_loads_numpy():
    code = "import sys, partwise.cli.fit, partwise.cli.select; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
