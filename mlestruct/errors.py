"""The exceptions and the warning of our own; whatever else is misused is a plain ValueError."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

REMOVED = {  # until version 0.3: names and settings that went, and what serves instead
    "mlestruct.Functions": "a class with potentials, moments, each, columns and select is features",
    "mlestruct.features.Functions": "a class that is mlestruct.features.Features serves",
    "mlestruct.features.Masked": "mlestruct.features.Shared.only leaves weights out",
    "mlestruct.features.NoFeatures": "Dense(np.zeros((batch.size, 0)), batch.offsets) serves",
    "mlestruct.features.crossed": "np.kron(parts, context[None]) is the table of all products",
    "mlestruct.oracle.BruteForce": "a function of the score that picks from a list is a solver",
    "JointModel.stability_": "predict at other scores says how far they move the marginals",
    "Flow.routes": "decode(vector) lists the arcs used; follow them from node to node",
    "mlestruct.features.with_intercept": "append a column of ones to the array",
    "StructuredModel(sense=)": "oracle=Solver(solve, sense='min') minimises, from mlestruct.oracle",
    "Estimator(one_standard_error=)": "GridSearchCV(refit=function) of scikit-learn has any rule",
    "Estimator(scoring=)": "GridSearchCV(scoring=) of scikit-learn takes any function",
    "Estimator(class_weight=)": "fit(node_weight=) takes scikit-learn's compute_sample_weight",
    "StructuredModel(feature_map=)": "an example may be a mapping with its 'features'",
    "RoommateModel(extra=)": "StructuredModel(structure=Matching(n)) takes features of your own",
    "evaluate(truth=)": "benchmarks compute scores that pairs were drawn by themselves",
    "evaluate(evidence=)": "evidence(X, y) is a method of its own",
    "engine='processes'": "engine='dask' works in processes of this machine, or on a cluster",
    "mlestruct.engine.Processes": "mlestruct.engine.Dask works in processes, with timeout=",
    "mlestruct.learners.streamed": "engine='dask' shares out what a fit needs over workers",
    "mlestruct.data.Stored": "engine='dask' shares out what a fit needs over workers",
    "Learner.states": "fit(batch, features, told=function) calls the function after every round",
    "FrankWolfe.run": "solve(dual, oracle, told=function) calls the function after every round",
    "mlestruct.learners.Model": "mlestruct.learners.Found is what a fit has come to",
    "mlestruct.engine.Shard": "engines ask parts of the examples, see mlestruct.engine.Engine",
    "mlestruct.engine.Running": "mlestruct.engine.Engine says what an engine opens",
    "Estimator.offset": "StructuredModel(bias=) takes what was known beforehand",
    "mlestruct.engine.Maker": "engines ask parts of the examples, see mlestruct.engine.Engine",
    "RoommateModel(weight=)": "leave pairs that are not to count out of their table",
    "RoommateModel(outcomes=)": "leave pairs that are not to count out of their table",
    "RoommateModel(unpaired=)": "notes_ counts people without a pair, who are left out",
    "mlestruct.roommates.RoommateSummary": "RoommateModel.summary() is a Summary as of others",
    "Plan.what_if": "assign(people, require=[pair]).objective is beside the plan's own objective",
    "mlestruct.roommates.WhatIf": "assign(people, require=[pair]) is a plan of its own",
    "mlestruct.roommates.PairContrast": "RoommateModel.effects() has an Interval of each contrast",
    "--outcomes": "leave pairs that are not to count out of their table",
    "--fix": "roommates.toml says what means no answer, and which spelling another one means",
    "--fixed": "the column fixed of a table of rooms names who is to be there",
    "--consent": "a table of --rules has lines that begin with allow",
    "mlestruct roommates generate": "data.roommates() makes tables in Python",
    "mlestruct warm": "kernels are compiled when the package is built",
    "mlestruct infer": "exact() and marginals() answer for a FactorGraph and its scores",
    "mlestruct.readers.uai": "exact() and marginals() answer for a FactorGraph and its scores",
    "--language": "report and page are in English",
    "mlestruct.doctor": "mlestruct.roommates.doctor examines tables",
    "intervals(tastes=)": "pairs are the units of a large matching, of a market's as of others",
    "GraphModel(clique_table=)": "StructuredModel(FactorGraph(cards, scopes)) has larger tables",
    "a graph's cliques": "StructuredModel(FactorGraph(cards, scopes)) has larger tables",
    "Report.of(language=)": "a report is in English",
    "mlestruct.readers.images.gaussian_noise": "NumPy adds normal numbers in one line",
    "mlestruct.readers.images.gradient_histograms": "papers/pixels.py has it",
    "mlestruct.readers.images.blurs": "scipy.ndimage.gaussian_filter smooths; see papers/pixels.py",
    "mlestruct.readers.images.centres": "scipy.cluster.vq.kmeans2; see papers/pixels.py",
    "mlestruct.readers.images.indicators": "scipy.cluster.vq.vq; see papers/pixels.py",
    "mlestruct.readers.bio_chain": "SequenceModel(constraints='bio') forbids malformed tags",
    "Graph.from_adjacency": "Graph.of(nodes, pairs, weights) has weights of edges as features",
    "mlestruct.metrics.f1": "sklearn.metrics.f1_score is F1 of labels",
    "mlestruct.metrics.EntityReport": "entity_f1(truth, predicted, kind) has the scores of a kind",
    "mlestruct.metrics.mcnemar": "papers/contrastive.py has it; scipy.stats.binomtest is the test",
    "mlestruct.metrics.Comparison": "papers/contrastive.py has it",
    "mlestruct.inference.mean_field.mean_field": "MeanFieldAscent().many(batch, scores) ascends",
    "mlestruct.inference.bounds.halves_interval": "statistics.Evidence tells log Z far closer",
    "mlestruct.inference.bounds.product_interval": "mean field's log Z is the same lower bound",
    "mlestruct.inference.exact.count_matchings": "the length of outcomes(structure) is the count",
    "mlestruct.inference.exact.matchings": "outcomes(Matching(nodes, edges)) lists them",
    "mlestruct.inference.grids": "exact(grid(rows, columns), scores) sums grids, too",
    "oracle='graph_cut_ortools'": "graph_cut and graph_cut_pymaxflow find the same cut",
    "oracle='qpbo_ortools'": "qpbo and qpbo_pymaxflow find the same vertex",
}


def refuse_removed(name: str, kind: type[Exception] = ValueError) -> None:
    """Raise if a name or a setting was removed, saying what serves instead."""
    if name in REMOVED:
        raise kind(f"{name} was removed: {REMOVED[name]}")


class Infeasible(ValueError):
    """No answer of the structure exists; the message names what makes it impossible.

    For matchings ``groups`` are odd sets of nodes that no allowed edge joins to each other, more
    of them than there are ``separators``, the nodes that could serve one each.
    """

    def __init__(
        self, message: str, separators: Sequence[Any] = (), groups: Sequence[Sequence[Any]] = ()
    ) -> None:
        super().__init__(message)
        self.separators, self.groups = separators, groups


class Unserved(ValueError):
    """An inference, or an entropy, that is not for a structure; another may be."""


class NotFitted(ValueError, AttributeError):
    """A model was asked before it was fitted; see :func:`not_fitted`."""


def not_fitted(model: object) -> Exception:
    """What to raise: scikit-learn's NotFittedError where it is installed, else our own.

    Both are a ValueError and an AttributeError, so that ``hasattr`` is False for what only a fit
    knows.
    """
    message = f"this {type(model).__name__} is not fitted yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return NotFitted(message)
    return cast(Exception, NotFittedError(message))


class ConvergenceWarning(UserWarning):
    """A fit, or probabilities, ended less precise than was asked for.

    The message says how far, what the likely cause is and what to do.
    """


def outside() -> int:
    """How many frames up from :func:`warnings.warn` the caller of this package is."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("mlestruct."):
        frame, level = frame.f_back, level + 1
    return level


class DataWarning(UserWarning):
    """Data that were used as they are, and look as if they meant something else."""


class LostWorker(RuntimeError):
    """Workers ended or hung again and again; ``example`` is the one that costs them, if known."""

    def __init__(self, message: str, example: int | None = None) -> None:
        super().__init__(message)
        self.example = example

    def __reduce__(self) -> tuple[Any, ...]:
        return LostWorker, (str(self), self.example)


@contextmanager
def counting_from(first: int | list[int]) -> Iterator[None]:
    """Whatever is raised inside about some example counts as :func:`counted_from` says."""
    try:
        yield
    except Exception as error:
        raise counted_from(error, first) from error.__cause__


def counted_from(error: Exception, first: int | list[int]) -> Exception:
    """The same error, its "example m" counted from ``first`` on, in its message and its notes.

    A list has the number of every example.
    """

    def number(m: int) -> int:
        return first[m] if isinstance(first, list) else m + first

    def shifted(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        return re.sub(r"^example (\d+)", lambda found: f"example {number(int(found[1]))}", text)

    error.args = tuple(shifted(argument) for argument in error.args)
    if hasattr(error, "__notes__"):
        error.__notes__ = [shifted(note) for note in error.__notes__]
    return error


HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls, invisible signs, and those that turn the direction of what follows; not \\t and \\n."""


def visible(text: str) -> str:
    r"""The text with an escape where it has a sign that would be obeyed instead of seen.

    >>> visible("exe.\u202efdp") == r"exe.\u202efdp"
    True
    """
    return HIDDEN.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)
