"""The report, notebooks and ``partwise show``: they agree with the model, and run no scripts from the data."""

import base64
import copy
import functools
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import partwise as pw
from partwise.cli import main
from partwise.engine.origins import Sound
from partwise.engine.summary import asked_intervals, in_words, percent, summary
from partwise.pages.report import matched_order
from partwise.plotting import activations, gallery

EVIL = "<script>alert('x')</script>\"&"
SAMPLES, FEATURES, R = 15, 12, 4


@functools.cache
def fitted():
    rng = np.random.default_rng(0)
    X = rng.random((SAMPLES, 3)) @ rng.random((3, FEATURES))
    model = pw.SparseNMF(R, sparsity=[0.2, 0.3, 0.3, (0.1, 0.4)], max_iter=4, tol=0, random_state=0)
    activations = model.fit_transform(X)
    return model.keep(activations, [f"s{i}" for i in range(SAMPLES)], (3, 4))


@functools.cache
def result():
    rng = np.random.default_rng(0)
    return pw.ssnmf(rng.random((SAMPLES, FEATURES)), R, sparsity=0.3, max_iter=4, tol=0, random_state=0)


@pytest.fixture
def model():
    return copy.deepcopy(fitted())


class Page(HTMLParser):
    """The elements and the text of a page; rejects unclosed tags."""

    VOID = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text += data

    def all(self, tag, **wanted):
        wanted = {name.rstrip("_"): value for name, value in wanted.items()}
        return [a for t, a in self.elements if t == tag and wanted.items() <= a.items()]


def report(*arguments, **options):
    pytest.importorskip("matplotlib")
    from partwise.pages import report

    return report(*arguments, **options)


KINDS = {
    "images": {},
    "volumes": {"shape": (2, 3, 2)},
    "lines": {"shape": (FEATURES,)},
    "bars": {"shape": None, "kind": "bars"},
    "masked": {"mask": np.ones((4, 3))},
}


@pytest.mark.parametrize(
    ("source", "kind"), [("model", "images"), ("result", "lines"), *(("array", kind) for kind in KINDS)]
)
def test_every_component_has_a_card_and_a_row(kind, source, model):
    held = {"model": model, "result": result(), "array": result().components}[source]
    options = KINDS[kind] if kind != "images" else {"shape": (3, 4)}
    page = Page(report(held, **options))
    assert len(page.all("figure", class_="card")) == R
    assert [a["id"] for a in page.all("tr") if "id" in a] == [f"part-{j}" for j in range(R)]
    assert [a["href"] for a in page.all("a")] == [f"#part-{j}" for j in range(R)]
    assert len(page.all("figure", class_="chart")) == {"array": 0, "result": 2}.get(source, 3)
    assert "NaN" not in page.text


def test_page_shows_the_attributes_of_the_model(model):
    page = Page(report(model, title="Mine"))
    assert page.all("title") is not None
    for fact in summary(model).facts().values():
        assert fact in page.text
    assert "15 samples × 12 features" in page.text
    assert model.stop_reason_ in page.text
    for j in range(R):
        strongest = int(model.activations_[:, j].argmax())
        assert f"s{strongest}" in page.text
        assert percent(float(model.explained_[j])) in page.text
    labels = [a["aria-label"] for a in page.all("svg") if "aria-label" in a]
    assert "Sparsity: as requested, up to rounding" in labels


def test_pictures_show_the_components(model):
    image = pytest.importorskip("PIL.Image")
    page = Page(report(model))
    drawn = [a["src"] for a in page.all("img", class_="pixels")]
    assert len(drawn) == R
    for uri, part in zip(drawn, model.components_, strict=True):
        pixels = np.asarray(image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("L"), dtype=float)
        np.testing.assert_allclose(1 - pixels / 255, part.reshape(3, 4) / part.max(), atol=0.01)


def test_nothing_is_loaded_and_nothing_foreign_runs(model):
    text = report(model)
    page = Page(text)
    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not any("style" in attributes for _, attributes in page.elements)
    assert all(a.get("src", "data:").startswith("data:") for _, a in page.elements)
    assert not page.all("link")
    outside = re.sub(r"data:image/png;base64,[\w+/=\s]*|<script.*?</script>", "", text, flags=re.DOTALL)
    addresses = set(re.findall(r"""(?:https?:)?//[\w.]+[^"'\s>]*""", outside))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, not places


@pytest.mark.parametrize("kind", ["images", "bars"])
def test_names_are_escaped(kind, model):
    model.feature_names_in_ = np.array([f"{EVIL}{i}" for i in range(FEATURES)], dtype=object)
    model.sample_names_ = np.array([f"{EVIL}{i}" for i in range(SAMPLES)], dtype=object)
    model.stop_reason_ = EVIL
    text = report(model, title=EVIL, **KINDS[kind])
    assert "<script>alert" not in text
    page = Page(text)
    assert len(page.all("script")) == 3
    assert text.count("</script>") == 3
    assert page.text.count(EVIL) > R


@pytest.mark.parametrize("kind", ["images", "bars"])
def test_control_characters_are_shown_as_escapes(kind, model):
    """Warnings are errors, so that a glyph that no font has would fail, too."""
    model.feature_names_in_ = np.array([f"\x1b[2J{i}" for i in range(FEATURES)], dtype=object)
    model.sample_names_ = np.array([f"\x07{i}" for i in range(SAMPLES)], dtype=object)
    text = report(model, title="\x1b", **KINDS[kind])
    assert not set("\x1b\x07") & set(text)
    assert r"<h1>\u001b</h1>" in text
    assert r"\u001b[2J0" in text
    gallery(model, kind="bars").savefig(io.BytesIO())
    activations(model).savefig(io.BytesIO())


def test_the_same_model_gives_the_same_page(model, tmp_path):
    text = report(model, tmp_path / "report.html")
    assert model.report(tmp_path / "own.html") == text == (tmp_path / "own.html").read_text(encoding="utf-8")
    assert model.report(title="Mine") == report(model, title="Mine")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text == report(copy.deepcopy(model))
    with pytest.raises(OSError, match="nowhere"):
        report(model, tmp_path / "nowhere" / "report.html")


def test_zero_components_and_samples():
    page = Page(report(np.zeros((2, 4)), activations=np.zeros((3, 2)), shape=(2, 2)))
    assert "none: all components are zero" in page.text
    assert len(page.all("figure", class_="card")) == 2


def test_page_of_large_components_stays_small(rng):
    assert len(report(rng.random((3, 50_000)))) < 100_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (5, 5)}, "components of shape (4, 12) do not fit images of 5 × 5 pixels"),
        ({"top": 0}, "top=0: give a whole number of at least 1"),
        ({"sample_names": ["a"]}, "1 sample names for 15 samples: give one for each"),
        (
            {"data": np.ones((15, 5))},
            "data have 15 samples and 5 features, but the model has 15 samples and 12 features",
        ),
        (
            {"data": np.ones((7, 12))},
            "data have 7 samples and 12 features, but the model has 15 samples and 12 features",
        ),
        ({"activations": [[1, 2, 3]]}, "activations have shape (1, 3): give samples × 4 components"),
    ],
)
def test_mismatched_arguments_are_rejected(model, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        report(model, **options)
    with pytest.raises(ValueError, match="there is no model: give at least one"):
        report([])


def test_single_sparsity_has_no_histogram(rng):
    found = pw.SparseNMF(3, sparsity=0.5, max_iter=4, tol=0, random_state=0).fit(rng.random((9, 8)))
    assert "Sparsity" not in {a.get("aria-label", "")[:8] for a in Page(report(found)).all("svg")}


def test_strongest_samples_have_pictures_if_data_are_given(model, rng):
    image = pytest.importorskip("PIL.Image")
    X = rng.random((SAMPLES, FEATURES))
    page = Page(report(model, data=X))
    drawn = page.all("img", class_="photo")
    assert len(drawn) == sum(min(5, np.count_nonzero(column)) for column in model.activations_.T)
    best = int(model.activations_[:, 0].argmax())
    pixels = np.asarray(image.open(io.BytesIO(base64.b64decode(drawn[0]["src"].partition(",")[2]))).convert("L"))
    np.testing.assert_allclose(pixels / 255, X[best].reshape(3, 4) / X[best].max(), atol=0.01)
    assert drawn[0]["alt"] == f"s{best}"
    assert "SHA-256" in page.text
    assert "SHA-256" not in Page(report(model)).text


@pytest.mark.parametrize("kind", ["volumes", "lines", "bars", "masked"])
def test_pictures_of_samples_for_all_kinds(kind, model, rng):
    page = Page(report(model, data=rng.random((SAMPLES, FEATURES)), **KINDS[kind]))
    assert bool(page.all("img", class_="photo")) == (kind in ("volumes", "masked"))


def test_sound_is_shown_over_time(rng):
    origin = Sound(8000, 22, 11)
    found = pw.SparseNMF(2, sparsity=0.4, max_iter=4, tol=0, random_state=0)
    found.keep(found.fit_transform(rng.random((20, 12))), origin=origin)
    page = Page(report(found))
    assert len([a for a in page.all("svg") if "over" in a.get("aria-label", "")]) == 2
    strongest = float(origin.times(20)[found.activations_[:, 0].argmax()])
    assert f"strongest at {strongest:.3g} s" in page.text
    peak = origin.frequencies[found.components_[0].argmax()]
    assert f"{peak:.6g}" in page.text


def test_provenance_repeats_the_fit(model):
    text = Page(report(model)).text
    options = "max_iter=4, n_components=4, random_state=0, sparsity=[0.2, 0.3, 0.3, (0.1, 0.4)], tol=0"
    for words in (f"partwise.SparseNMF({options}).fit(X)", f"Partwise {pw.__version__}", "numpy"):
        assert words in text
    model.keep(provenance={"command": f"partwise fit {EVIL}", "versions": "Partwise 0.0.1"})
    text = Page(report(model)).text
    assert f"partwise fit {EVIL}" in text
    assert "Partwise 0.0.1" in text
    with pytest.raises(ValueError, match="provenance must be a dict of str"):
        model.keep(provenance={"seed": 1})


def test_models_of_several_kinds_say_how_to_read_each(rng):
    sound = pw.SparseNMF(2, max_iter=3, tol=0).fit(rng.random((20, 12))).keep(origin=Sound(8000, 22, 11))
    images = pw.SparseNMF(2, max_iter=3, tol=0).fit(rng.random((20, 12))).keep(part_shape=(3, 4))
    text = Page(report([sound, images])).text
    assert text.count("Spectra from 0 to 4000 Hz") == text.count("Blank is zero") == 1


def test_models_side_by_side(model):
    other = copy.deepcopy(model)
    other.components_ = other.components_[::-1].copy()
    page = Page(report({"one": model, EVIL: other}))
    assert len(page.all("figure", class_="card")) == 2 * R  # side by side
    hrefs = [a["href"] for a in page.all("a")]
    assert hrefs[: 2 * R] == [f"#m0-part-{j}" for j in range(R)] + [f"#m1-part-{j}" for j in reversed(range(R))]
    assert {a["id"] for a in page.all("tr") if "id" in a} == {f"m{k}-part-{j}" for k in (0, 1) for j in range(R)}
    assert EVIL in page.text
    assert "fit 1" in Page(report([model, result()])).text
    assert len(Page(report([[1.0, 0.0], [0.0, 1.0]])).all("figure", class_="card")) == 2  # an array, not two models


def test_a_part_without_a_match_leaves_a_place_empty():
    parts = np.eye(3)
    assert matched_order(parts, parts[[2, 0]]) == [1, None, 0]
    assert matched_order(parts[[2, 0]], parts) == [2, 0, 1]
    assert matched_order(parts, parts[:, :2]) is None
    page = report({"one": parts, "two": parts[[2, 0]]}, kind="bars")
    left, right = re.findall(r'<div class="gallery.*?</section>', page, re.S)
    assert left.count("<div></div>") == 0
    places = re.findall(r'<div></div>|"#m1-part-\d', right)
    assert places == ['"#m1-part-1', "<div></div>", '"#m1-part-0']


def test_strongest_and_most_specific_features_are_two_lists():
    parts = np.array([[4.0, 3.0, 0.0], [4.0, 0.0, 3.0]])
    page = report(parts, feature_names=["shared", "own", "other"], kind="bars")
    lists = re.findall(r'<ol class="bars weights">(.*?)</ol>', page)
    names = [re.findall(r'class="name">(.*?)<', one) for one in lists]
    assert names == [["own"], ["other"], ["shared", "own"], ["own"], ["shared", "other"], ["other"]]


# what is known


@pytest.mark.parametrize(
    ("sparsity", "words"),
    [
        (None, "no constraint"),
        (0.7, "0.7"),
        ((0.2, 0.4), "between 0.2 and 0.4"),
        ((None, 0.4), "between 0 and 0.4"),
        ([0.5, 0.5, 0.5], "0.5"),
        ([0.5, None, 0.6], "between 0.5 and 0.6, one for each component"),
    ],
)
def test_constraints_in_words(sparsity, words):
    assert in_words(asked_intervals(sparsity, 3)) == words


def test_mean_sparsity_is_described_as_an_average(rng):
    model = pw.SparseNMF(3, sparsity=0.4, recipe="grouped", max_iter=2, tol=0, random_state=0).fit(rng.random((9, 8)))
    known = summary(model)
    assert (known.asked, known.asked_in_words) == (None, "0.4 on average")


def test_summary_equals_the_model(model):
    known = summary(model)
    assert summary(known) is known
    X = model.activations_ @ model.components_  # not the data, whose norm the relative error is about
    assert known.relative_error == pytest.approx(np.sqrt(1 - model.explained_.sum()))
    assert known.explained_in_all == pytest.approx(model.explained_.sum())
    assert known.n_samples == len(X)
    weights = [value for _, value in known.strongest_features(1, FEATURES)]
    assert weights == sorted(model.components_[1][model.components_[1] > 0], reverse=True)


def test_an_x_of_zeros_has_no_error():
    model = pw.SparseNMF(2, sparsity=0.5, random_state=0).fit(np.zeros((5, 4)))
    assert summary(model).relative_error == 0


# notebooks


def test_notebooks_show_results():
    page = Page(result()._repr_html_())
    assert "relative error" in page.text
    assert result().stop_reason in page.text


def test_notebooks_show_models_under_scikit_learns_diagram(model):
    plain = pw.SparseNMF(3)
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in shown
        assert model.stop_reason_ in shown
        assert shown.count("<img src=") == R
    assert "sk-top-container" in plain._repr_html_()
    assert 'class="partwise"' not in plain._repr_html_()
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")
    assert "SparseNMF" in make_pipeline(MinMaxScaler(), model)._repr_html_()


def test_notebooks_escape(model):
    model.stop_reason_ = EVIL
    assert "<script>alert" not in model._repr_html_()


# partwise show


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "parts.pw")
    return tmp_path / "parts.pw"


def test_show_prints_every_component(saved, model, capsys):
    assert main(["show", str(saved)]) == 0
    printed = capsys.readouterr().out
    for fact in ("15 samples × 12 features", f"{summary(model).relative_error:.4g}"):
        assert fact in printed
    rows = re.findall(r"│ +(\d+) │ +(\S+) │ +(\S+) % │ +(\d+) │", printed)
    assert [int(row[0]) for row in rows] == [0, 1, 2, 3]
    for (_, sparsity, share, count), part, explained in zip(rows, model.components_, model.explained_, strict=True):
        assert float(sparsity) == pytest.approx(float(pw.hoyer_sparsity(part)), abs=1e-4)
        assert float(share) == pytest.approx(100 * explained, abs=0.06)
        assert int(count) == np.count_nonzero(part)


def test_show_draws_and_writes(saved, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture, page = tmp_path / "parts.png", tmp_path / "report.html"
    assert main(["show", str(saved), "--png", str(picture), "--html", str(page), "--title", EVIL]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(Page(page.read_text(encoding="utf-8")).all("figure", class_="card")) == R
    assert str(page) in capsys.readouterr().out.replace("\n", "")


def test_show_compares_models_and_reads_samples(saved, model, tmp_path, monkeypatch, rng, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    model.save("other.pw")
    np.save("x.npy", rng.random((SAMPLES, FEATURES)))
    assert main(["show", str(saved), "other.pw", "--html", "both.html", "--data", "x.npy"]) == 0
    page = Page((tmp_path / "both.html").read_text(encoding="utf-8"))
    assert len(page.all("figure", class_="card")) == 2 * R
    assert page.all("img", class_="photo")
    assert "other.pw" in page.text
    assert main(["show", str(saved), "other.pw"]) == 2
    assert "several models are compared in a report: give --html" in capsys.readouterr().err
    assert main(["show", str(saved), "other.pw", "--html", "other.pw", "--force"]) in (1, 2)


def test_samples_with_negative_entries(rng):
    X = rng.random((12, 9)) - 0.1
    options = {"negative": "allow", "random_state": 0}
    for fitted in (pw.SparseNMF(2, **options).fit(X), pw.ssnmf(X, 2, **options)):
        assert "12 samples × 9 features" in pw.report(fitted, data=X)
    with pytest.raises(ValueError, match="Negative values in data"):
        pw.report(pw.SparseNMF(2, random_state=0).fit(np.abs(X)), data=X)


def test_fit_records_its_provenance(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", rng.random((SAMPLES, FEATURES)))
    assert main(["fit", "x.npy", "-r", "2", "-s", "0.3", "-q", "--max-iter", "3", "--seed", "1"]) in (0, 1)
    kept = pw.load("x.pw").provenance_
    assert kept["command"] == "partwise fit x.npy -r 2 -s 0.3 -q --max-iter 3 --seed 1"
    assert kept["data"].startswith("15 samples × 12 features, float64, SHA-256 ")
    assert kept["source"] == "x.npy"
    call = "partwise.SparseNMF(max_iter=3, n_components=2, random_state=1, sparsity=0.3).fit(X)"  # no defaults
    assert call in Page(report(pw.load("x.pw"))).text


def test_show_as_json(saved, model, capsys):
    assert main(["show", str(saved), "--json", "--top", "2"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [part["sparsity"] for part in record["components"]] == pytest.approx(model.sparsity_.tolist())
    assert (record["samples"], record["features"], record["iterations"]) == (SAMPLES, FEATURES, 4)
    assert all(len(part["features"]) == 2 for part in record["components"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.pw"], "nowhere.pw"),
        (["{}", "--shape", "5x5", "--png", "x.png"], "do not fit images of 5 × 5 pixels"),
        (["{}", "--html", "nowhere/x.html"], "nowhere"),
        (["{}", "--top", "0"], "--top 0: give a whole number of at least 1"),
    ],
)
def test_show_reports_errors_in_one_line(saved, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(saved.parent)
    assert main(["show", *(argument.format(saved) for argument in arguments)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("partwise: ")
    assert message in error
    assert error.count("\n") == 1


def test_bad_shape_is_rejected(saved, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["show", str(saved), "--shape", "3by4"])
    assert stop.value.code == 2
    assert "argument --shape: invalid shape value: '3by4'" in capsys.readouterr().err
