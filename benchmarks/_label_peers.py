"""Labels by our learners and by what a user would pick today: one protocol for all rows.

Every contender learns from the same examples and gives a probability for each label of each node
of the others, of which the largest is its answer. The last quarter of the examples learned from
chooses each contender's penalty (epochs, for networks) by log-loss, and it learns from all of them
again. CPU seconds of one thread hold tuning and predictions. What was added after test figures were
seen: neighbours' means for our models of superpixels, six labels without pairs, letters with their
ends marked and with random filters. A contender of ours is level where it is behind the best peer
by less than one standard error of the difference, over examples.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mlestruct as ms
from mlestruct.estimators.calibration import Calibration

Row = dict[str, Any]
Array = NDArray[np.float64]
Tables = list[Array]
TINY = 1e-12
KINDS = (("error", "error"), ("log_loss", "log-loss"), ("ece", "ECE"), ("seconds", "CPU s"))


class Task(NamedTuple):
    """Examples to learn from and to judge by; labels are numbers from 0 on."""

    name: str
    X: Sequence[Any]
    y: Sequence[Any]
    X_test: Sequence[Any]
    y_test: Sequence[Any]
    states: int
    penalties: tuple[float, ...]


Predict = Callable[[Sequence[Any]], Tables]
Fit = Callable[[Task, float], Predict]
"""(what to learn from, penalty) → probabilities of a list of examples."""


class Contender(NamedTuple):
    """A name, how it learns, and the penalties or epochs to choose from (None: the task's)."""

    name: str
    fit: Fit
    choices: tuple[float, ...] | None = None


class Figures(NamedTuple):
    """Means over the nodes, CPU seconds, and per example what differences are judged by."""

    error: float
    log_loss: float
    ece: float
    seconds: float
    each: dict[str, Array]


def compare(task: Task, ours: list[Contender], peers: list[Contender]) -> Iterator[Row]:
    """Every contender's figures, ours beside the best peer's; then whether one of ours is level."""
    theirs, our = dict[str, Figures](), dict[str, Figures]()
    for one in peers:
        if (found := figures(task, one)) is not None:
            theirs[one.name] = found
            yield from (row(task.name, f"{w}, {one.name}", getattr(found, k)) for k, w in KINDS)
    for one in ours:
        if (found := figures(task, one)) is None:
            continue
        our[one.name] = found
        for kind, what in KINDS:
            best = min(theirs, key=lambda peer, k=kind: getattr(theirs[peer], k), default=None)
            more = {} if best is None else beside(getattr(theirs[best], kind), best, found, kind)
            yield row(task.name, f"{what}, {one.name}", getattr(found, kind), **more)
    for kind, what in KINDS[:2] if theirs else ():
        yield level(task.name, kind, what, our, theirs)


def row(workload: str, quantity: str, ours: float, **more: Any) -> Row:
    return {"benchmark": "labels", "workload": workload, "quantity": quantity, "ours": ours} | more


def beside(peer: float, name: str, found: Figures, kind: str) -> Row:
    return {"peer": peer, "peer_name": name, "ratio": getattr(found, kind) / max(peer, TINY)}


def level(
    workload: str, kind: str, what: str, our: dict[str, Figures], theirs: dict[str, Figures]
) -> Row:
    """The best of ours against the best peer, up to one standard error."""
    ours, peer = (min(some, key=lambda one: getattr(some[one], kind)) for some in (our, theirs))
    a, b = our[ours], theirs[peer]
    nodes = a.each["nodes"]
    apart = (a.each[kind] - b.each[kind]) / nodes.mean()
    error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    value, least = getattr(a, kind), getattr(b, kind)
    more = beside(least, peer, a, kind)
    more |= {"target": f"≤ peer + {error:.2g}", "met": bool(value <= least + error)}
    return row(workload, f"best {what}: {ours}", value, **more)


def figures(task: Task, contender: Contender) -> Figures | None:
    """Tune, learn, predict, judge; None where its package is not installed."""
    begun = time.process_time()
    try:
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")
            tables = tuned(task, contender)
    except ModuleNotFoundError:
        return None
    return judged(tables, task.y_test, time.process_time() - begun)


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """Of BLAS and OpenMP, where threadpoolctl is installed, as it is with scikit-learn."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return contextlib.nullcontext()
    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def tuned(task: Task, contender: Contender) -> Tables:
    """Probabilities after the last quarter has chosen."""
    kept, choices = round(0.75 * len(task.X)), contender.choices or task.penalties
    if len(choices) > 1:
        part = task._replace(X=task.X[:kept], y=task.y[:kept])
        held = task.X[kept:], task.y[kept:]
        losses = [judged(contender.fit(part, c)(held[0]), held[1], 0.0).log_loss for c in choices]
        choices = (choices[int(np.argmin(losses))],)
    return contender.fit(task, choices[0])(task.X_test)


def judged(tables: Sequence[Any], y: Sequence[Any], seconds: float) -> Figures:
    """Figures of probabilities (nodes × labels) of every example."""
    each, sure, right = [], [], []
    for given, labels in zip(tables, y, strict=True):
        truth = np.asarray(labels).ravel()
        table = np.asarray(given).reshape(len(truth), -1)
        hit = table.argmax(axis=1) == truth
        lost = -np.log(np.maximum(table[np.arange(len(truth)), truth], TINY))
        each.append((float((~hit).sum()), float(lost.sum()), len(truth)))
        sure.append(table.max(axis=1))
        right.append(hit)
    wrong, lost, nodes = np.array(each, dtype=float).T
    ece = Calibration.of(np.clip(np.concatenate(sure), 0, 1), np.concatenate(right)).error
    means = wrong.sum() / nodes.sum(), lost.sum() / nodes.sum(), ece, seconds
    return Figures(*means, {"error": wrong, "log_loss": lost, "nodes": nodes})


def of_ours(
    make: Callable[..., Any],
    learner: str,
    name: str | None = None,
    view: Callable[[Any], Any] = lambda x: x,
    **settings: Any,
) -> Contender:
    """An estimator of the library, on examples as ``view`` shows them."""

    def fit(task: Task, penalty: float) -> Predict:
        model = make(learner=learner, alpha=penalty, **settings)
        model.fit([view(x) for x in task.X], task.y)

        def predict(X: Sequence[Any]) -> Tables:
            found = both(model, [view(x) for x in X])
            return [spread(p, range(p.shape[1]), task.states) for p in found]

        return predict

    return Contender(name or learner, fit)


def both(model: Any, X: Sequence[Any]) -> Tables:
    """Tables of both answers where a model says how probable each label is."""
    found = model.predict_marginals(X)
    if not isinstance(model, ms.MultiLabelModel):
        return [np.asarray(p) for p in found]
    return [np.stack([1 - p, p], axis=1) for p in found]


def spread(table: Any, classes: Any, states: int) -> Array:
    """A column for each label, in order; those that were not seen have probability 0."""
    rows = np.asarray(table).reshape(-1, len(classes))
    found = np.zeros((len(rows), states))
    found[:, np.asarray(classes)] = rows
    return found


def row_by_row(rows: Callable[[Any], Any], make: Callable[[float], Any], name: str) -> Contender:
    """A classifier of scikit-learn on every node's own row."""

    def fit(task: Task, penalty: float) -> Predict:
        model = make(penalty).fit(stacked(rows, task.X), np.concatenate([*map(np.ravel, task.y)]))

        def predict(X: Sequence[Any]) -> Tables:
            ends = np.cumsum([rows(x).shape[0] for x in X])[:-1]
            p = model.predict_proba(stacked(rows, X))
            return np.split(spread(p, model.classes_, task.states), ends)

        return predict

    return Contender(name, fit)


def stacked(rows: Callable[[Any], Any], X: Sequence[Any]) -> Any:
    import scipy.sparse as sp

    parts = [rows(x) for x in X]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def logistic(penalty: float) -> Any:
    """scikit-learn's, with the same penalty as alpha."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1 / penalty, max_iter=200)


def crfsuite(items: Callable[[Any], Any]) -> Contender:
    """sklearn-crfsuite on attributes; c2 = alpha / 2."""

    def fit(task: Task, penalty: float) -> Predict:
        from sklearn_crfsuite import CRF

        model = CRF(c1=0.0, c2=penalty / 2, all_possible_transitions=True, min_freq=-1e9)
        model.fit([items(x) for x in task.X], [[str(k) for k in labels] for labels in task.y])
        classes = [int(k) for k in model.classes_]

        def predict(X: Sequence[Any]) -> Tables:
            found = model.predict_marginals([items(x) for x in X])
            return [
                spread([[p[str(k)] for k in classes] for p in one], classes, task.states)
                for one in found
            ]

        return predict

    return Contender("CRFsuite", fit)


def torch_crf(task: Task, penalty: float) -> Predict:
    """pytorch-crf above linear scores, by L-BFGS; marginals are the normaliser's gradient."""
    import torch
    from torchcrf import CRF

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = CRF(task.states, batch_first=True).double()
    linear = torch.nn.Linear(task.X[0].shape[1], task.states, bias=False).double()
    weights = [*linear.parameters(), *layer.parameters()]

    def padded(X: Sequence[Any]) -> tuple[Any, Any]:
        rows = [torch.tensor(np.asarray(x, dtype=float)) for x in X]
        filled = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        lengths = torch.tensor([len(x) for x in X])
        return filled, torch.arange(filled.shape[1])[None] < lengths[:, None]

    x, mask = padded(task.X)
    tags = [torch.tensor(np.asarray(labels)) for labels in task.y]
    y = torch.nn.utils.rnn.pad_sequence(tags, batch_first=True)
    steps = torch.optim.LBFGS(weights, max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Any:
        steps.zero_grad()
        cost = -layer(linear(x), y, mask=mask, reduction="sum")
        cost = cost + 0.5 * penalty * sum((w**2).sum() for w in weights)
        cost.backward()
        return cost

    steps.step(loss)

    def predict(X: Sequence[Any]) -> Tables:
        rows, kept = padded(X)
        scores = linear(rows).detach().requires_grad_()
        log_z = layer._compute_normalizer(scores.transpose(0, 1), kept.transpose(0, 1)).sum()
        (tau,) = torch.autograd.grad(log_z, scores)
        return [tau[m, : len(one)].numpy() for m, one in enumerate(X)]

    return predict


def network(planes: Callable[[Any], Any], layers: Callable[[int], Any]) -> Fit:
    """A torch network by Adam, an example at a time; the penalty is its number of epochs."""

    def fit(task: Task, epochs: float) -> Predict:
        import torch

        def scores(x: Any) -> Any:
            found = net(x)
            return found[0].flatten(1).T if found.ndim == 4 else found

        torch.set_num_threads(1)
        torch.manual_seed(0)
        net, shuffle = layers(task.states), np.random.default_rng(0)
        steps = torch.optim.Adam(net.parameters(), lr=2e-3)
        x = [torch.tensor(planes(one), dtype=torch.float32) for one in task.X]
        y = [torch.tensor(np.asarray(labels).ravel(), dtype=torch.long) for labels in task.y]
        for _ in range(int(epochs)):
            for m in shuffle.permutation(len(x)):
                steps.zero_grad()
                torch.nn.functional.cross_entropy(scores(x[m]), y[m]).backward()
                steps.step()

        def predict(X: Sequence[Any]) -> Tables:
            with torch.no_grad():
                rows = [scores(torch.tensor(planes(one), dtype=torch.float32)) for one in X]
            return [torch.softmax(one.double(), dim=1).numpy() for one in rows]

        return predict

    return fit
