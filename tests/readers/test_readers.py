"""Readers: columns and feature dicts mean what their formats say."""

import warnings

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.errors import DataWarning
from mlestruct.features import Shared, Tied
from mlestruct.readers import Attributes, read_columns
from mlestruct.readers.transitions import ForbiddenTags

TAGS = ["B-loc", "B-per", "I-loc", "I-per", "O"]


def test_columns_are_split_into_sentences(tmp_path):
    """Blank lines part sentences, one or several; a last sentence needs none; # is a token."""
    text = "-DOCSTART- O\n\n\na\tO\n#b\tB-x\n\n\n \nc O\n"
    expected = [[("a", "O"), ("#b", "B-x")], [("c", "O")]]
    (tmp_path / "some.conll").write_text(text, encoding="utf-8")
    assert read_columns(tmp_path / "some.conll") == expected
    assert read_columns(text.splitlines()) == expected
    assert read_columns(["a b c\n"], columns=(0, -1)) == [[("a", "c")]]
    assert read_columns(["a b\tO\n"], separator="\t") == [[("a b", "O")]]
    assert read_columns([]) == []


def test_ragged_or_short_lines_are_named():
    with pytest.raises(ValueError, match="line 3 has 1 columns, the lines before 2"):
        read_columns(["a O\n", "\n", "b\n"])
    with pytest.raises(ValueError, match="line 1 has 2 columns, and no column 3"):
        read_columns(["a O\n"], columns=(0, 3))


def test_attributes_follow_crfsuite():
    """Numbers, flags, text, lists and nested dicts; repeats add up; unseen ones are left out."""
    x = [{"w": "a", "up": True, "low": False, "n": 2.0, "is": ["p", "q"], "of": {"r": 0.5}}]
    attributes = Attributes.of([x])
    assert attributes.names == ["w:a", "up", "n", "is:p", "is:q", "of:r"]
    assert attributes.rows(x).toarray().tolist() == [[1, 1, 2, 1, 1, 0.5]]
    assert Attributes.of([[["a", "b", "a"]]]).rows([["a", "b", "a"]]).toarray().tolist() == [[2, 1]]
    assert attributes.rows([{"unknown": 3.0}]).nnz == 0
    with pytest.raises(ValueError, match=r"example 0, position 1: 'n' is nan"):
        attributes.rows([{"n": 1.0}, {"n": float("nan")}])
    with pytest.raises(ValueError, match="attribute 'n' has value None"):
        attributes.rows([{"n": None}])


def test_bio_chains_allow_exactly_the_well_formed():
    """Against the rule itself, over every sequence of three tags."""

    def well_formed(tags):
        before = ["O", *tags[:-1]]
        return all(
            not t.startswith("I-") or (b != "O" and b[2:] == t[2:])
            for b, t in zip(before, tags, strict=True)
        )

    free = ms.chain(3, len(TAGS))
    graph = ForbiddenTags.of(TAGS, "bio").applied(free)
    for states in np.ndindex(5, 5, 5):
        allowed = bool(graph.contains(free.encode(states)))
        assert allowed == well_formed([TAGS[k] for k in states]), states
    assert not ForbiddenTags.of(["O", "B-x"], "bio")


def sentences():
    X = [
        [{"word": w, "n": 0.5 * i} for i, w in enumerate(s.split())] for s in ("a b c", "b d", "c")
    ]
    y = [["O", "B-per", "I-per"], ["B-loc", "O"], ["O"]]
    return X, y


def test_feature_dicts_fit_as_arrays_do():
    """The same attributes as dicts and as matrices give the same weights; unseen words are fine."""
    X, y = sentences()
    attributes = Attributes.of(X)
    one = ms.SequenceModel(tol=1e-9, weights="all").fit(X, y)
    other = ms.SequenceModel(tol=1e-9, intercept=False).fit(
        [attributes.rows(x).toarray() for x in X], y
    )
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    assert len(one.predict([[{"word": "never"}, {"word": "a"}]])[0]) == 2
    with pytest.raises(ValueError, match="fitted to arrays"):
        other.predict(X)


def test_bio_models_predict_well_formed_sequences():
    X, y = sentences()
    model = ms.SequenceModel(constraints="bio", alpha=10.0).fit(X, y)
    tags = model.classes_.tolist()
    for tau in model.predict_marginals(X):
        assert tau[0, tags.index("I-per")] == 0
        np.testing.assert_allclose(tau.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="'bio'"):
        ms.SequenceModel(constraints="iob").fit(X, y)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([("O", "I-per"), ("0", "I-per")], "no label of training is '0'"),
        ([("O", "I-PER"), (None, "I-per ")], "no label of training is 'I-PER', 'I-per '"),
        ([(0, "I-per")], "no label of training is 0;"),
    ],
)
def test_rules_about_tags_that_never_occur_are_named(rules, words):
    with pytest.warns(DataWarning, match=words):
        ms.SequenceModel(constraints=rules, alpha=10.0).fit(*sentences())


@pytest.mark.parametrize("rules", [[("O", "I-per"), (None, "I-per")], "bio", None, []])
def test_rules_about_tags_that_occur_are_taken_in_silence(rules):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ms.SequenceModel(constraints=rules, alpha=10.0).fit(*sentences())


def test_a_scheme_that_no_label_follows_is_named():
    X, y = sentences()
    plain = [[tag.replace("-", "_") for tag in tags] for tags in y]
    with pytest.warns(DataWarning, match="begins with 'B-' or 'I-'; rules about it do nothing"):
        ms.SequenceModel(constraints="bio", alpha=10.0).fit(X, plain)


@pytest.mark.parametrize(
    ("rules", "words"),
    [(iter([("O", "I-per")]), "read only once"), ([("O", ["I-per"])], "text or a number")],
)
def test_rules_that_cannot_be_read_are_refused(rules, words):
    with pytest.raises(ValueError, match=words):
        ms.SequenceModel(constraints=rules, alpha=10.0).fit(*sentences())


def test_seen_weights_are_those_that_outcomes_use():
    """d counts observed (attribute, label) and (label, label) pairs; the others weigh 0."""
    X, y = sentences()
    model = ms.SequenceModel(weights="seen", tol=1e-8).fit(X, y)
    # word pairs a-O, b-Bper, c-Iper, b-Bloc, d-O, c-O; n is 0 at the first positions
    # and seen with B-per, I-per, O; transitions O>Bper, Bper>Iper, Bloc>O
    assert len(model.coef_) == 6 + 3 + 3
    batch = ms.Batch.of(model.structures(X), model.encode(X, y))
    features = model.features(batch, X)
    assert isinstance(features, Shared)
    tied = features.inner
    assert isinstance(tied, Tied)
    full = features.spread(model.coef_)
    np.testing.assert_allclose(tied.potentials(full), features.potentials(model.coef_))
    assert np.isfinite(model.score(X, y))
