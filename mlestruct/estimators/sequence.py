"""SequenceModel: a label per position, from features per position and learned transitions.

A SkipChainModel also ties positions at a distance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.errors import DataWarning, outside
from mlestruct.estimators.base import Decision
from mlestruct.estimators.examples import (
    Given,
    Ragged,
    columns_of,
    one_alone,
    width_of,
)
from mlestruct.estimators.labelled import Labelled, beside
from mlestruct.estimators.labels import numbered, tied_contrasts, tied_names
from mlestruct.features import Features, Shared, Tied
from mlestruct.features.base import HUGE
from mlestruct.learning.tied import EIGHT
from mlestruct.native._door import Sequences, label_sequences
from mlestruct.readers.feature_dicts import Attributes
from mlestruct.readers.transitions import Forbidden, ForbiddenTags, doubt
from mlestruct.structures.base import SHORT, Array, Ints, as_count, lasting, small
from mlestruct.structures.batch import Batch, Partial, pinned
from mlestruct.structures.graph import FactorGraph, chain, skip_chain

if TYPE_CHECKING:
    from mlestruct.statistics.identified import Named


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceModel(Labelled):
    """Chains: X is a list of (length, p) arrays or sparse matrices, y of labels per position.

    X may also hold CRFsuite-style lists of feature dicts (``attributes_`` is their dictionary).
    Labels may be anything hashable and sortable; ``classes_`` lists them. θ holds a weight per
    (feature, label), then one per (label, next label); on chains the likelihood is exact.
    ``intercept`` adds a constant feature, a weight per label: by default to arrays, and not to
    feature dicts, whose features are mostly such constants already.
    ``constraints`` are ``bio``, ``iobes`` or pairs (tag, next tag) that do not occur, with None
    for the sequence's beginning and end: neither learned from nor predicted. ``weights="seen"``,
    the default for feature dicts, keeps only weights that training outcomes use, as CRFsuite does;
    an unseen transition then weighs 0, and a void label uses none. ``"all"``, the default for
    arrays, keeps every weight. Labels may be void, None among them (see :class:`Labelled`).
    Sequences without a position are passed by.
    Other settings and fitted attributes as :class:`Estimator`.

    >>> X = [[{"word": w} for w in s.split()] for s in ("in Rome", "Rome is old")]
    >>> model = SequenceModel(alpha=0.1).fit(X, [["O", "B-LOC"], ["B-LOC", "O", "O"]])
    >>> model.predict([[{"word": "Rome"}, {"word": "is"}]])[0].tolist()
    ['B-LOC', 'O']
    """

    constraints: Forbidden = None
    intercept: bool | None = None
    weights: Literal["all", "seen"] | None = None
    learns = (*Labelled.learns, "attributes_", "_allowed", "_constant")
    dictionaries: ClassVar[tuple[str, ...]] = ("attributes_",)

    axes = 2

    def prepare(self, given: Given) -> Given:
        """The labels and the dictionary of attributes; which weights are kept is decided later."""
        if self.weights not in (None, "all", "seen"):
            raise ValueError(f"weights is 'all', 'seen' or None, not {self.weights!r}")
        self.attributes_ = None
        if not (named := _named(given.X)):
            self.n_features_in_ = width_of(given.X)
        given = super().prepare(given)
        if named:
            self.attributes_ = Attributes.of(given.X)
            self.n_features_in_ = len(self.attributes_)
            if self.n_features_in_ == 0:
                raise ValueError("there are no features: no position has an attribute")
        self._constant = self.attributes_ is None if self.intercept is None else self.intercept
        if self.constraints is not None:
            self._rules  # noqa: B018  (refuses constraints that are none)
            if (why := doubt(self.classes_.tolist(), self.constraints)) is not None:
                words = f"constraints: {why}; rules about it do nothing"
                warnings.warn(words, DataWarning, stacklevel=outside())
        self._allowed: Ints | None = None
        self._places: tuple[Any, ...] | None = None
        return given

    @property
    def _rules(self) -> ForbiddenTags:
        """What tags may not do."""
        return ForbiddenTags.of(self.classes_.tolist(), self.constraints)

    def taken(self, X: Any, y: Any) -> Given:
        """Without the sequences that have neither a position nor a label."""
        given, full = super().taken(X, y), []
        for m, x in enumerate(given.X):
            if isinstance(x, Mapping) and not hasattr(x, "shape"):  # one token
                raise one_alone(X)
            if isinstance(x, type) or not (hasattr(x, "__len__") or hasattr(x, "shape")):
                raise ValueError(f"example {m}: X is {x!r}; expected a row or dict per position")
            labels = () if given.y is None else given.y[m]
            sized = hasattr(labels, "__len__") and not isinstance(labels, type)
            if self.shape_of(x) != (0,) or not sized or len(labels):
                full.append(m)
        if len(full) == len(given.X):
            return given
        some = given.part(full)
        return replace(some, columns=columns_of(some.X))

    def encode(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        found = super().encode(X, y)
        rules = None if self.constraints is None else self._rules
        for m, outcome in enumerate([] if rules is None else found):
            states = outcome.observed if isinstance(outcome, Partial) else outcome
            why = rules.broken(states) if rules is not None and states.ndim == 1 else None
            if why is not None:
                raise ValueError(f"example {m}: {why}, by constraints={self.constraints!r}")
        return found

    def predict(
        self, X: Sequence[Any], decision: Decision = "map", *, allowed: Sequence[Any] | None = None
    ) -> list[Any]:
        """The most probable tags, or (``expected``) those with most expected right.

        ``allowed`` holds for every sequence a collection of tags per token, None for any tag.
        """
        labels = None
        if decision == "map" and allowed is None and hasattr(self, "coef_"):
            labels = self._labels(X)
        return super().predict(self._within(X, allowed), decision) if labels is None else labels

    def _within(self, X: Sequence[Any], allowed: Sequence[Any] | None) -> Any:
        """The examples, with outcomes of which the tags that are ``allowed`` are known."""
        given = self._given(X)
        if allowed is None:
            return given
        if not hasattr(allowed, "__len__") or len(allowed) != len(given.every):
            raise ValueError(
                f"allowed is a list for each of {len(given.every)} sequences, not {allowed!r:.80}"
            )
        anything = ([None] * self.shape_of(x)[0] for x in given.every)
        among = [each if own is None else own for own, each in zip(allowed, anything, strict=True)]
        return self._given(X, [[t if t is None else set(t) for t in own] for own in among])

    def _scored(
        self, given: Given, y: Sequence[Any] | None = None, *, level: bool = True
    ) -> tuple[Batch[Any], Array]:
        if y is not None or given.y is None:
            return super()._scored(given, y, level=level)
        batch, scores = super()._scored(given, given.y, level=level)
        return pinned(batch), scores  # to the tags that are allowed

    def _labels(self, X: Sequence[Any]) -> list[Any] | None:
        """Predictions, or None where chains alone do not say them or something is not as usual.

        Feature dicts without an oracle of one's own: a structure and a matrix for one sentence take
        twenty times as long as its labels.
        """
        kind, attributes = type(self), self.attributes_
        plain = kind.structures is SequenceModel.structures and kind.ties is SequenceModel.ties
        plain &= self.oracle is None and not self._constant and _named(X)
        if (
            attributes is None
            or not plain
            or not all(isinstance(x, (list, tuple)) and len(x) for x in X)
        ):
            return None
        lengths = [len(x) for x in X]
        start, index, data = attributes.entries(X)
        if np.abs(data).max(initial=0.0) > HUGE:
            return None  # what refuses such features says so
        states, rules = len(self.classes_), self._rules
        shape = len(start) - 1, self.n_features_in_
        nodes, pair = self._tables(states)
        found: Any = sp.csr_array((data, index, start.astype(np.int32)), shape) @ nodes
        node = np.zeros((shape[0], -(-states // EIGHT) * EIGHT))
        node[:, :states] = found if self._allowed is None else found.toarray()
        pair[rules.pairs] = -np.inf
        starts = np.concatenate([[0], np.cumsum(lengths)])
        node[starts[:-1, None], rules.first] = -np.inf
        node[starts[1:, None] - 1, rules.last] = -np.inf
        label = np.empty(len(node), np.int64)
        sequences = Sequences(len(lengths), starts, len(node), states, node.shape[1])
        if not label_sequences(sequences, node, pair, label):
            return None
        return Ragged(np.split(self.classes_[label], starts[1:-1]))

    def _tables(self, states: int) -> tuple[Any, Array]:
        """The weights of (attribute, label), sparse where only some are kept; of (label, next)."""
        theta, split = np.ascontiguousarray(self.coef_, dtype=float), self.n_features_in_ * states
        if self._allowed is None:
            return theta[:split].reshape(-1, states), theta[split:].reshape(states, states).copy()
        known: Any = getattr(self, "_places", None)
        if known is None or known[0] is not self._allowed:
            first = np.searchsorted(self._allowed, np.arange(self.n_features_in_ + 1) * states)
            label = (self._allowed[: first[-1]] % states).astype(np.int32)
            self._places = known = self._allowed, first.astype(np.int32), label
        _, first, label = known
        some, pair = len(label), np.zeros(states * states)
        pair[self._allowed[some:] - split] = theta[some:]
        nodes = sp.csr_array((theta[:some], label, first), (self.n_features_in_, states))
        return nodes, pair.reshape(states, states)

    def predict_marginals(
        self,
        X: Sequence[Any],
        *,
        allowed: Sequence[Any] | None = None,
        max_seconds: float | None = None,
    ) -> list[Array]:
        """The probability of every tag, (length, classes); of tags not ``allowed`` 0."""
        return super().predict_marginals(self._within(X, allowed), max_seconds=max_seconds)

    def k_best(
        self, X: Sequence[Any], k: int = 10, *, allowed: Sequence[Any] | None = None
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """The ``k`` most probable tag sequences of each example with their probabilities.

        Fewer where there are fewer. Exact: probabilities are shares of all sequences' sum.
        """
        from mlestruct.inference import marginals
        from mlestruct.inference.decoding import k_best

        if type(self).ties is not SequenceModel.ties:
            raise ValueError("k-best is for chains, and these sequences have more ties")
        k, given, found = as_count(k, "k", 1), self._within(X, allowed), list[Any]()
        if given.X:
            batch, scores = self._scored(given)
            log_z, states = marginals(batch, scores), len(self.classes_)
            for m in range(len(batch)):
                graph, part = batch.structure(m), scores[batch.coordinates(m)]
                score = np.where(graph.closed(), -np.inf, part)
                split = graph.node_start[-1]
                steps = score[split:].reshape(-1, states, states)
                tags, worth = k_best(score[:split].reshape(-1, states), steps, k)
                share = np.exp(worth - log_z.upper[m])
                found.append(list(zip(self.classes_[tags], share.tolist(), strict=True)))
        return given.answers(found, lambda x: [(self.classes_[:0], 1.0)])

    def shape_of(self, x: Any) -> tuple[int, ...]:
        return (int(x.shape[0]) if hasattr(x, "shape") else len(x),)

    def parts(self, x: Any, known: NDArray[np.bool_]) -> list[tuple[Any, NDArray[np.bool_]]]:
        """The stretches between positions that are not known."""
        edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
        places = [slice(a, b) for a, b in edges.reshape(-1, 2).tolist()]
        number = np.arange(len(known))
        return [(x[place], np.isin(number, number[place])) for place in places]

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        states, made, found = len(self.classes_), dict[int, FactorGraph](), []
        for x in X:
            (length,) = self.shape_of(x)
            if length not in made:  # short ones are the same in every call, with what they keep
                short = length * states**2 <= SHORT
                graph = small(chain, length, states) if short else chain(length, states)
                made[length] = graph if self.constraints is None else self._rules.applied(graph)
            found.append(made[length])
        return found

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Tied | Shared:
        if _named(X) != (self.attributes_ is not None):
            given, learned = "feature dicts", "arrays (length, features)"
            if self.attributes_ is not None:
                given, learned = "arrays, or words", "feature dicts, one for each position"
            raise ValueError(f"X holds {given}, but the model was fitted to {learned}")
        if self.attributes_ is None:
            width_of(X, self.n_features_in_)
        nodes = self.attributes_.stack(X) if self.attributes_ else list(X)
        tied = Tied.of(batch, nodes, self.ties(X))
        tied = replace(tied, table=len(self.classes_) ** 2)  # where no sequence has a transition
        if self._constant:
            tied = replace(tied, nodes=beside(tied.nodes, np.ones((tied.nodes.shape[0], 1))))
        if self.weights == "all" or (self.weights is None and self.attributes_ is None):
            return tied
        if self._allowed is None:
            self._allowed = np.flatnonzero(Shared.seen(tied, batch).place >= 0)
        return Shared.only(tied, self._allowed)

    def ties(self, X: Sequence[Any]) -> Any:
        """Features of all ties between positions, stacked; None is a constant."""
        return None

    def shape(self, x: Any, structure: FactorGraph, flat: Array) -> Array:
        """The labels' probabilities at every position, (length, classes)."""
        nodes, states = self.shape_of(x)[0], len(self.classes_)
        return flat[: nodes * states].reshape(nodes, states)

    def names(self) -> list[str]:
        """``feature: label`` and ``label → next label``."""
        self._check_fitted()
        names = tied_names(self._node_features(), self.classes_, self.tie_names(), "full")
        return names if self._allowed is None else [names[j] for j in self._allowed]

    def contrasts(self, against: int = 0) -> list[Named]:
        features, ties = self._node_features(), self.tie_names()
        inside = (len(features) - 1, 1) if self._constant else None
        found = tied_contrasts(features, self.classes_, ties, ref=against, inside=inside)
        if self._allowed is None:
            return found
        kept = [(one, one.combination[self._allowed]) for one in found]
        whole = [(one, c) for one, c in kept if np.abs(c).sum() == np.abs(one.combination).sum()]
        return [one._replace(combination=kept) for one, kept in whole]

    def _node_features(self) -> list[str]:
        """The features of positions by name, the constant last."""
        columns = self._columns or numbered(self.n_features_in_)
        features = self.attributes_.names if self.attributes_ else columns
        return [*features, *["constant"] * self._constant]

    def tie_names(self) -> list[str]:
        """What stands before ``label → next label`` for each feature of a tie."""
        return [""]

    def _notes(self, batch: Batch[Any], features: Features) -> list[str]:
        said = ["every label has a constant (intercept=False leaves it out)"] * self._constant
        return [*said, *super()._notes(batch, features)]

    def stored(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in self.dictionaries}
        packed = {name: None if value is None else value.packed() for name, value in known.items()}
        return super().stored() | packed

    def restore(self, learned: dict[str, Any]) -> None:
        super().restore(learned)
        for name in self.dictionaries:
            if learned[name] is not None:
                setattr(self, name, Attributes.unpacked(learned[name]))


def _named(X: Sequence[Any]) -> bool:
    """Whether positions are dicts, lists or sets of named attributes, not rows of numbers.

    An example is a list of positions; an array or a Series of objects is one too.
    """
    for x in X:
        objects = getattr(x, "dtype", None) == np.dtype(object) and x.ndim == 1
        if (objects or isinstance(x, (list, tuple))) and len(x):
            first = next(iter(x))
            if isinstance(first, (list, tuple, Set)):
                return all(isinstance(name, str) for name in first)
            return isinstance(first, Mapping)
    return False


Pairs = Iterable[tuple[int, int]]


def capitalised_pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of equal words of two letters or more that begin with a capital; no neighbours.

    >>> capitalised_pairs(["Mr", "Green", "met", "Mrs", "Green", "Green"])
    [(1, 4), (1, 5)]
    """
    places: dict[str, list[int]] = {}
    for i, word in enumerate(words):
        if len(word) > 1 and word[0].isupper():
            places.setdefault(word, []).append(i)
    return [(i, j) for same in places.values() for i, j in combinations(same, 2) if j > i + 1]


@dataclass(eq=False, repr=False)
class SkipChainModel(SequenceModel):
    """Sequences with extra ties: X and y as :class:`SequenceModel` takes them.

    ``skips(x)`` lists pairs of positions that are not neighbours: their labels are tied like
    those of neighbours, with weights of their own. ``edges(x, i, j)`` gives the tie of positions i
    and j a dict of attributes (4-cliques of two labels and two inputs); without it all ties of a
    kind have the same weights (2-cliques). Skips make cycles: only ``exact_mle`` is exact.
    Every weight is kept by default. Other settings and fitted attributes are those of
    :class:`SequenceModel`.

    >>> X = [["Green", "met", "Green"], ["it", "is", "Green"]]
    >>> model = SkipChainModel(capitalised_pairs, learner="lbp")
    >>> model = model.fit([[{"word": w} for w in x] for x in X], [[1, 0, 1], [0, 0, 1]])
    """

    weights: Literal["all", "seen"] | None = field(default="all", kw_only=True)
    dictionaries = ("attributes_", "ties_")
    skips: Callable[[Any], Pairs]
    edges: Callable[[Any, int, int], Any] | None = None

    def prepare(self, given: Given) -> Given:
        """The labels, and the dictionaries of both kinds of attributes."""
        given = super().prepare(given)
        self.ties_ = Attributes.of([self._ties(x) for x in given.X])
        return given

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        states, rules, found = len(self.classes_), self._rules, []
        for x in X:
            graph = skip_chain(self.shape_of(x)[0], states, self._skips(x))
            found.append(lasting(rules.applied(graph)))
        return found

    def ties(self, X: Sequence[Any]) -> sp.csr_array:
        return self.ties_.stack([self._ties(x) for x in X])

    def _skips(self, x: Any) -> Pairs:
        pairs = self.skips(x)
        if not isinstance(pairs, Iterable):
            raise ValueError(f"skips gave {pairs!r} for a sequence; expected pairs of positions")
        return pairs

    def _ties(self, x: Any) -> list[dict[str, Any]]:
        """The attributes of every tie, in the structure's order."""
        steps = [("chain", i, i + 1) for i in range(self.shape_of(x)[0] - 1)]
        pairs = [*steps, *(("skip", i, j) for i, j in self._skips(x))]
        if self.edges is None:
            return [{kind: True} for kind, _, _ in pairs]
        return [{kind: True, f"{kind} with": self.edges(x, i, j)} for kind, i, j in pairs]

    def tie_names(self) -> list[str]:
        return [f"{name}: " for name in self.ties_.names]
