"""Numbers of any type and memory layout give the plain array's answer, or are refused by name.

Every public function and method that takes numbers is found by walking the public names and what
the manual imports. Scenarios
call them; each first call is repeated with its arrays in other types and layouts. What no scenario
reaches fails ``test_every_public_function_that_takes_numbers_is_tried``, unless ``EXEMPT`` says
why it may be left out.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import inspect
import itertools
import re
import sys
import types
import warnings
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mlestruct as ms
from mlestruct.families.contrastive.belief_optimisation import belief_optimisation
from mlestruct.families.fitting.condensed import Condensed
from mlestruct.families.fitting.losses import errors, variables
from mlestruct.families.fitting.truncated import Messages, beliefs
from mlestruct.families.joint.prediction import Mixture
from mlestruct.features import per_table
from mlestruct.inference import bounds
from mlestruct.inference.mean_field import MeanFieldAscent
from mlestruct.inference.routine import ROUTINES
from mlestruct.inference.sampling import gibbs, perturb_and_map, sample_matchings
from mlestruct.inference.sum_product import SumProduct
from mlestruct.lazy import homes
from mlestruct.learning import bcfw, frank_wolfe
from mlestruct.learning.dual import Dual
from mlestruct.learning.loop import Found
from mlestruct.oracle import Counted, Solver, Validated, load
from mlestruct.oracle.registry import CATALOGUE
from mlestruct.structures.base import Structure, one_of
from mlestruct.testing import vertices

DOCS = Path(ms.__file__).parents[1] / "docs"
IMPORTED = re.compile(r"^from (mlestruct[\w.]*) import (\([^)]*\)|[\w, ]*)$", re.MULTILINE)
TAKES_NUMBERS = re.compile(r"\b(Array|ArrayLike|NDArray\[Any\]|NDArray\[np\.float64\])")
BY_NAME = {"X", "y", "matrix", "nodes", "factors", "outcome", "observed"}
LABELS = {"y", "labels", "truth", "first", "second", "predicted"}  # text may be one, a mask too
BASES = "mlestruct", "mlestruct_oracles"
REFUSED = re.compile(
    r"number|integer|mask|dtype|mode|label|outcome|partner|pairs|features", re.IGNORECASE
)

HOOK = "a step of fit and predict, which are tried"
MADE = "made by the library or by a class method, which is tried"
EXEMPT = {
    **{
        f"*.{name}.__init__": MADE
        for name in (
            "Batch",
            "Entropy",
            "Marginals",
            "Decoded",
            "Calibration",
            "Regulariser",
            "Views",
            "Constraints",
            "Dense",
            "Sparse",
            "Tied",
            "Pairs",
            "Found",
            "SumProduct",
            "Graph",
            "Examples",
            "Partial",
        )
    },
    **{
        f"mlestruct.{package}.*.{name}": HOOK
        for package in ("estimators", "roommates.model")
        for name in (
            "taken",
            "offset",
            "present",
            "shape",
            "encode",
            "structures",
            "ties",
            "prepare",
            "features",
            "learn_labels",
            "weights_of_labels",
            "counted",
            "examples",
            "recalibrated",
            "log_z",
        )
    },
    "mlestruct.estimators.*.__init__": "bounds are a setting, read by Regulariser.of",
    "mlestruct.roommates.model.*.__init__": "bounds are a setting, read by Regulariser.of",
    "mlestruct.structures.batch.Batch.rows": "rows of the library's own flat arrays",
    "mlestruct.structures.batch.Batch.totals": "sums of the library's own flat arrays",
    "mlestruct.structures.base.Constraints.slack": "a step of contains, which is tried",
    "mlestruct.structures.graph_edges.Degrees.slack": "a step of contains, which is tried",
    "mlestruct.structures.batch.Batch.select": "positions, as NumPy takes them",
    "mlestruct.structures.entropy.Entropy.drop": "flags, not numbers",
    "mlestruct.features.pairs.Pairs.squares": "reads nothing",
    "mlestruct.features.tied.Tied.tables": "a step of moments, which is tried",
    "mlestruct.inference.sum_product.SumProduct.above[value]": "is not read",
    "mlestruct.oracle.solver.tells_best_from_worst": "a step of fit, asked with its own scores",
    "mlestruct.scorers.*": "ask the model's score, evidence or calibration, which are tried",
    "mlestruct.families.joint.prediction.Mixture.__init__": "checked, and read as floats later",
    "mlestruct.features.base.Sparse.of": "scipy.sparse keeps the arrays",
    "mlestruct.data.*": "generators of examples",
    "mlestruct.roommates.students.*": "generators of examples",
    "mlestruct.roommates.frames.*": "cells of files, not arrays",
    "mlestruct.roommates.reading.*": "cells of files, not arrays",
    "mlestruct.readers.feature_dicts.*": "features are mappings",
    "mlestruct.readers.graphs.Graph.paint": "hands its values on, whatever they are",
    "mlestruct.readers.graphs.from_networkx": "nodes are names",
    "mlestruct.plot.sequence[outcome]": "labels of any kind",
    "mlestruct.readers.graphs.to_networkx[nodes]": "nodes are names",
    "mlestruct.testing.*": "asks structures and solvers, which are tried",
    "mlestruct.structures.base.Structure.*[observed]": "each kind of structure has its own",
    "mlestruct.structures.base.Structure.encode": "each kind of structure has its own",
    "mlestruct.structures.base.Structure.decode": "each kind of structure has its own",
    "mlestruct.structures.base.Structure.counting": "each kind of structure has its own",
    "mlestruct.structures.base.Structure.bound": "the default reads nothing",
}

MEANT = {  # bytes of a picture are shares of 255
    ("mlestruct.readers.graphs.Graph.from_regions(image)", "uint8"),
    ("mlestruct.estimators.labelled.Weighable.fit(X)", "uint8"),
}
LENT = {
    "mlestruct.structures.entropy.Entropy.views",
    "mlestruct.features.base.Dense.of",  # features may be a file in memory
    "mlestruct.features.base.as_features",
    "mlestruct.readers.graphs.Graph.from_regions",
    "mlestruct.readers.graphs.Graph.of",
    "mlestruct.oracle.solver.pin",
    "mlestruct.structures.base.Structure.levelled",
}
"""What hands arrays on inside of the library, which copies where it keeps them."""


def _exempt(name, parameter):
    """Why a parameter need not be tried, or None."""
    full = (name, f"{name}[{parameter}]")
    return next((why for one, why in EXEMPT.items() if any(_like(n, one) for n in full)), None)


def _like(name, pattern):
    return fnmatch(name, pattern.replace("[", "[[]"))


def _functions():
    """Owner, attribute and numeric parameters of every public function, by its name."""
    found = {}

    def take(owner, attribute, function, name):
        if isinstance(function, classmethod | staticmethod):
            function = function.__func__
        if not isinstance(function, types.FunctionType):
            return
        numbers = []
        for one in inspect.signature(function).parameters.values():
            kind = str(one.annotation)
            if "Callable" not in kind and (TAKES_NUMBERS.search(kind) or one.name in BY_NAME):
                numbers.append(one.name)
        if numbers:
            found[name] = owner, attribute, numbers

    def enter(thing):
        if inspect.isclass(thing):
            for base in thing.__mro__:
                ours = base.__module__.split(".")[0] in BASES
                if ours and not vars(base).get("_is_protocol"):
                    for attribute, value in vars(base).items():
                        if attribute == "__init__" or not attribute.startswith("_"):
                            name = f"{base.__module__}.{base.__qualname__}.{attribute}"
                            take(base, attribute, value, name)
        elif isinstance(thing, types.FunctionType):
            take(None, thing, thing, f"{thing.__module__}.{thing.__name__}")

    packages = sorted(name for name, home in homes("mlestruct").items() if home == "mlestruct")
    for module in [ms, *(importlib.import_module(f"mlestruct.{name}") for name in packages)]:
        own = [name for name in vars(module) if not name.startswith("_")]
        for name in getattr(module, "__all__", own):
            thing = getattr(module, name)
            if getattr(thing, "__module__", module.__name__).startswith("mlestruct"):
                enter(thing)
    for page in sorted(DOCS.rglob("*.md")):
        for module, names in IMPORTED.findall(page.read_text(encoding="utf-8")):
            for name in re.findall(r"\w+", names):
                enter(getattr(importlib.import_module(module), name))
    places = [entry.place for entry in CATALOGUE.values()] + [place for place, *_ in ROUTINES]
    for module, name in (place.split(":") for place in places):
        enter(getattr(importlib.import_module(module), name))
    return found


FUNCTIONS = _functions()


def _strided(a):
    wide = np.full((*a.shape, 3), 7, dtype=a.dtype)
    wide[..., 1] = a
    return wide[..., 1]


def _misplaced(a):
    room = np.zeros(a.nbytes + 1, dtype=np.uint8)
    out = room[1:].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out


def _reversed(a):
    back = (slice(None, None, -1),) * a.ndim
    return a[back].copy()[back]


def _fortran(a):
    return np.asfortranarray(a) if a.ndim > 1 else _column(a)


def _column(a):
    table = np.full((*a.shape, 2), 5, dtype=a.dtype)
    table[..., 0] = a
    return table[..., 0]


def _read_only(a):
    out = a.copy()
    out.flags.writeable = False
    return out


LAYOUTS = {
    "reversed": _reversed,
    "strided": _strided,
    "column": _column,
    "Fortran order": _fortran,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "read-only": _read_only,
    "not aligned": _misplaced,
    "mask of nothing": lambda a: np.ma.array(a, mask=False),
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()),
}
KINDS = ["float32", "float16", "longdouble", "int8", "int16", "int32", "int64", "uint8", "uint64"]
KINDS += ["bool", ">f4", ">i2"]
WRONG = {
    "masked": lambda a: np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == 0),
    "complex": lambda a: a + 1j,
    "text": lambda a: np.full(a.shape, "many"),
    "objects": lambda a: np.full(a.shape, {}, dtype=object),
}
VARIANTS = [*LAYOUTS, *KINDS, *WRONG]


def _each(value, change):
    """``value`` with every array in it changed: arrays, lists of arrays and mappings of them."""
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(_each(one, change) for one in value)
    if isinstance(value, dict):
        return {name: _each(one, change) for name, one in value.items()}
    return value


def _arrays(value):
    found = []
    _each(value, lambda a: found.append(a) or a)
    return [a for a in found if a.size and a.dtype.kind in "iuf"]


def _of_kind(kind):
    """The numbers as that type holds them, as the plain array has them and as the type has them."""
    dtype = np.dtype(kind)

    def short(a):
        if dtype.kind in "iub" and a.dtype.kind == "f":
            if not np.isfinite(a).all():
                raise _Unfit
            a = np.rint(a) if dtype.kind != "u" else np.rint(np.abs(a))
        if dtype.kind == "u" and (a < 0).any():
            raise _Unfit
        if dtype.kind == "b" and not np.isin(a, (0, 1)).all():
            raise _Unfit
        if dtype.kind in "iu" and a.size and np.abs(a).max() > np.iinfo(dtype).max:
            raise _Unfit
        return a.astype(dtype)

    return (lambda a: short(a).astype(a.dtype)), short


class _Unfit(Exception):
    """These numbers are none of that type."""


def _numbers(found, depth=0, seen=()):
    """All numbers in an answer, in a fixed order."""
    if depth > 5 or id(found) in seen or callable(found):
        return []
    seen = (*seen, id(found))
    if sp.issparse(found):
        return [found.toarray()]
    if isinstance(found, np.ndarray):
        if found.dtype.kind in "biuf":
            return [np.asarray(found)]
        return [str(found.tolist())]
    if isinstance(found, bool | int | float | str | np.number | np.bool_) or found is None:
        return [found]
    if isinstance(found, set | frozenset):
        return [sorted(map(repr, found))]
    if isinstance(found, Structure):
        return [found.key]
    if isinstance(found, Found):
        return _numbers((found.theta, found.certificate.gap), depth, seen)
    if hasattr(found, "coef_"):
        return _numbers(found.coef_, depth, seen)
    if isinstance(found, dict):
        parts = [value for _, value in sorted(found.items(), key=lambda pair: str(pair[0]))]
    elif isinstance(found, list | tuple):
        parts = found
    elif dataclasses.is_dataclass(found):
        names = [field.name for field in dataclasses.fields(found)]
        parts = [
            getattr(found, name)
            for name in names
            if not re.search("second|history|asking|cost", name)
        ]
    else:
        return []
    return [number for part in parts for number in _numbers(part, depth + 1, seen)]


def _same(one, other):
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        numeric = all(isinstance(x, np.ndarray | float | int | np.number) for x in (a, b))
        if not numeric:
            if a != b:
                return False
        elif np.shape(a) != np.shape(b) or not np.allclose(
            np.asarray(a, float), np.asarray(b, float), rtol=1e-9, atol=1e-9, equal_nan=True
        ):
            return False
    return True


class Trial:
    """Tries the first call of every public function again, with other arrays.

    A function is tried once per type of its owner; calls inside a trial are not tried themselves.
    """

    def __init__(self, monkeypatch, seed, share):
        self.rng, self.share = np.random.default_rng(seed), share
        self.busy, self.cases = False, 0
        self.seen, self.reached, self.faults = set(), set(), []
        modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] in BASES]
        modules.append(sys.modules[__name__])
        for name, (owner, attribute, numbers) in FUNCTIONS.items():
            numbers = [one for one in numbers if _exempt(name, one) is None]
            if not numbers:
                continue
            if owner is not None:
                given = vars(owner)[attribute]
                if isinstance(given, classmethod | staticmethod):
                    new = type(given)(self.wrapped(name, given.__func__, numbers))
                else:
                    new = self.wrapped(name, given, numbers)
                monkeypatch.setattr(owner, attribute, new)
                continue
            new = self.wrapped(name, attribute, numbers)
            for module in modules:
                for key in [key for key, value in vars(module).items() if value is attribute]:
                    monkeypatch.setattr(module, key, new)

    def wrapped(self, name, function, numbers):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def tried(*args, **named):
            if not self.busy:
                try:
                    bound = signature.bind(*args, **named)
                except TypeError:
                    return function(*args, **named)
                for parameter in numbers:
                    given = bound.arguments.get(parameter)
                    kind = type(args[0]) if args and signature.parameters.get("self") else None
                    key = name, kind, parameter
                    if key not in self.seen and _arrays(given):
                        self.seen.add(key)
                        self.reached.add((name, parameter))
                        if not self.share:
                            continue
                        self.busy = True
                        try:
                            self.vary(name, function, bound, parameter)
                        finally:
                            self.busy = False
            return function(*args, **named)

        return tried

    def answer(self, function, bound, parameter, given):
        """Numbers of the answer, or the error."""
        arguments = dict(bound.arguments)
        arguments[parameter] = given
        again = inspect.BoundArguments(bound.signature, arguments)
        rngs = {id(a): copy.deepcopy(a) for a in again.args if isinstance(a, np.random.Generator)}
        args, named = [rngs.get(id(a), a) for a in again.args], again.kwargs
        fresh = function.__name__ == "__init__"
        if fresh:
            args[0] = object.__new__(type(args[0]))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = function(*args, **named)
                found = next(found) if isinstance(found, types.GeneratorType) else found
            except Exception as error:
                return error
        return _numbers(list(vars(args[0]).values()) if fresh else found)

    def vary(self, name, function, bound, parameter):
        given = bound.arguments[parameter]
        plain = _each(given, lambda a: np.array(a, order="C"))
        usual = self.answer(function, bound, parameter, plain)
        if isinstance(usual, Exception):
            return  # the scenario's own mistake is seen when the function is called
        first = copy.deepcopy(usual)
        arrays = [one for one in usual if isinstance(one, np.ndarray)]
        lent = any(np.shares_memory(one, own) for one in arrays for own in _arrays(plain))
        if lent and name not in LENT and not name.endswith("__init__"):
            self.faults.append(f"{name}({parameter}): the answer is the caller's memory")
        count = -int(-self.share * len(VARIANTS) // 1)
        for number in self.rng.permutation(len(VARIANTS))[:count]:
            variant, what = VARIANTS[number], f"{name}({parameter})"
            try:
                expected, changed = usual, plain
                if variant in KINDS:
                    rounded, short = _of_kind(variant)
                    expected = _each(plain, rounded)
                    changed = _each(plain, short)
                    expected = self.answer(function, bound, parameter, expected)
                else:
                    change = LAYOUTS.get(variant) or WRONG[variant]
                    changed = _each(plain, change)
            except _Unfit:
                continue
            except ValueError:
                continue
            self.cases += 1
            kept = repr(changed)
            found = self.answer(function, bound, parameter, changed)
            if repr(changed) != kept:
                self.faults.append(f"{what}, {variant}: the argument was overwritten")
            self.judge(what, variant, parameter, expected, found)
        if not _same(first, usual):
            self.faults.append(f"{name}({parameter}): later calls overwrote an answer")

    def judge(self, what, variant, parameter, expected, found):
        if (variant in WRONG and parameter in LABELS) or (what, variant) in MEANT:
            return
        if isinstance(found, Exception):
            clear = isinstance(found, ValueError | TypeError)
            clear &= bool(REFUSED.search(str(found))) or parameter in str(found)
            if not clear and not (
                isinstance(expected, Exception) and type(expected) is type(found)
            ):
                self.faults.append(f"{what}, {variant}: {type(found).__name__}: {found}")
        elif variant in WRONG:
            self.faults.append(f"{what}, {variant}: not refused")
        elif isinstance(expected, Exception):
            self.faults.append(f"{what}, {variant}: answers, the plain array {expected!r}")
        elif not _same(expected, found):
            self.faults.append(f"{what}, {variant}: another answer")


# What is called.

STRUCTURES = {
    "chain": lambda: ms.chain(4, 3),
    "tree": lambda: ms.tree([(0, 1), (1, 2), (1, 3)], [2, 3, 2, 2]),
    "grid": lambda: ms.grid(3, 3),
    "order 3": lambda: ms.FactorGraph([2, 3, 2], [(1, 0, 2), (0, 1)]),
    "perfect": lambda: ms.BipartiteMatching(3),
    "partial": lambda: ms.BipartiteMatching(2, 4, "partial", forbidden=[(0, 0)]),
    "general": lambda: ms.Matching(6),
    "general partial": lambda: ms.Matching(5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], "partial"),
    "paths": lambda: ms.Paths([(0, 1), (0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 0, 3),
    "groups": lambda: ms.Custom(6, exactly_one=[[0, 1, 2], [3, 4, 5]], shape=(2, 3)),
    "b-matching": lambda: ms.BMatching.bipartite(
        3, 3, np.array([1.0, 2.0, 1.0]), np.array([2.0, 1.0, 1.0])
    ),
    "flow": lambda: ms.Flow([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], {0: 1, 3: -1}),
    "ising": lambda: ms.Ising(4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "regions": lambda: ms.RegionGraph([2, 2, 2], [(0, 1), (1, 2)]),
    "clusters": lambda: ms.ClusterGraph([2, 2, 2], [(0, 1), (1, 2)], [(0, 1, (1,))]),
}


def _structure(name, rng):
    """All that a structure, its batches, entropies, routines and solvers are asked."""
    s = STRUCTURES[name]()
    tables = one_of(s, "RegionGraph")
    listed = vertices(s, itertools.product(*map(range, s.cards)) if tables else None)
    pick = listed[rng.integers(len(listed), size=3)]
    outcomes = [s.decode(v) for v in pick]
    for outcome in outcomes:
        s.encode(outcome if not isinstance(outcome, list) else np.array(outcome))
    tau, vertex = rng.dirichlet(np.ones(len(listed))) @ listed, pick[0]
    s.contains(tau), s.in_hull(tau), s.loss(vertex), s.gain(tau)
    s.right(vertex, outcomes[1]), s.levelled(rng.standard_normal((2, s.size, 3)))
    s.right(np.where(np.arange(s.size) < 2, np.nan, vertex), outcomes[1]) if hasattr(
        s, "cards"
    ) and one_of(s, "FactorGraph") else None
    counts = s.counting()
    s.convex(counts), s.bound(counts), s.folded(counts), s.views().coefficients(counts)
    if s.stated is not None:
        s.stated.slack(tau)
    if one_of(s, "FactorGraph"):
        s.counting(np.full(s.n_factors, 0.3)), s.payments(counts)
        s.weighed(rng.random(s.n_nodes) + 1), s.clamp(np.full(s.n_nodes, -1))
        ms.learners.match_moments(s, tau)
    elif one_of(s, "BipartiteMatching", "Matching"):
        s.counting(np.full(s.n_nodes, 0.3))
    elif one_of(s, "Paths"):
        s.counting(np.full(len(s.inner), 0.3))
    elif one_of(s, "Ising"):
        s.counting(np.full(s.size, 0.3))
    elif one_of(s, "RegionGraph"):
        s.counting(counts)
    elif one_of(s, "Custom"):
        s.counting(np.array([0.3, 0.4]))
    if one_of(s, "RegionGraph", "ClusterGraph"):
        s.clamp(np.full(len(s.cards), -1))
    elif one_of(s, "BipartiteMatching"):
        s.clamp(np.full(s.rows, -1))
    elif one_of(s, "Custom"):
        s.clamp(np.full(s.size, -1))
    elif one_of(s, "Matching", "BMatching"):
        s.clamp(np.asarray(s.ends[vertex > 0][:1]))
    elif one_of(s, "Flow", "Paths"):
        s.clamp(np.flatnonzero(vertex)[:1])

    weight, bias = np.array([1.0, 2.0, 3.0]), rng.standard_normal(3 * s.size)
    batch = ms.Batch.of(s, outcomes, weight=weight, bias=bias)
    score, taus = 2 * rng.standard_normal(batch.size), np.tile(tau, 3)
    batch.observed(score), batch.totals(score), batch.rows(score, np.arange(3))
    batch.select(np.array([0, 2]))
    entropy = ms.Entropy.of(batch)
    entropy.each(taus), entropy.grad(taus), entropy.views(taus)
    solver = s.default_oracle or "simplices"
    ms.marginals(batch, score, None if s.default_oracle else solver)
    ms.inference.best(batch, score, solver), ms.inference.decode(batch, score, solver)
    if not one_of(s, "RegionGraph", "Custom"):
        ms.exact(batch, score), ms.exact(s, score[: s.size])
    if one_of(s, "FactorGraph", "Paths"):
        ms.sample(s, score[: s.size], 4, np.random.default_rng(0))
    for place, *kinds in ROUTINES:
        module, kind = place.split(":")
        kind = getattr(importlib.import_module(module), kind)
        by = kind.serve(entropy) if one_of(s, *kinds) else None
        if by is not None:
            found = by.many(batch, score)
            by.above(batch, score, found.warm, found.log_z)
    for kind, entry in CATALOGUE.items():
        if one_of(s, entry.serves):
            try:
                load(kind).many(batch, score)
            except (ValueError, ImportError, RuntimeError):  # not of its kind, or not installed
                continue
    oracle = load(solver)
    own = Validated(oracle)
    for wrapped in (own, Counted(oracle)):
        wrapped.many(batch, score)
    Solver(lambda given: listed[(listed @ given.ravel()).argmax()].reshape(s.shape)).many(
        batch, score
    )
    ms.oracle.attained(score[: s.size], vertex), ms.oracle.pin(s, score[: s.size])

    features = ms.Dense.of(batch, rng.standard_normal((batch.size, 4)))
    ms.Dense.of(batch, [rng.standard_normal((s.size, 2)) for _ in range(3)])
    regulariser = ms.Regulariser.of(
        4, np.full(4, 2.0), prior=np.zeros(4), l1=np.full(4, 0.1), upper=np.full(4, 9.0)
    )
    theta, r = rng.standard_normal(4), rng.standard_normal(4)
    _asked(features, theta, taus)
    regulariser.value(theta), regulariser.grad(theta), regulariser.weights(r)
    regulariser.conj(r), regulariser.bracket(theta, r)
    dual = Dual(batch, features, entropy, regulariser)
    ms.certificate(dual, own, theta, taus, at=taus, mixture=True)
    ms.FrankWolfe(tol=1e-2).solve(dual, own, taus)
    frank_wolfe.FrankWolfe(tol=1e-2).solve(dual, own, taus)
    bcfw.BCFW(rounds=2).solve(dual, own, taus)


def _asked(features, theta, tau):
    features.potentials(theta), features.moments(tau), features.each(tau), features.squares(tau)
    features.select(np.array([1, 0]))


def _features(rng):
    graph = ms.chain(3, 2)
    batch = ms.Batch.of(graph, count=2)
    tau, matrix = rng.random(batch.size), rng.standard_normal((batch.size, 3))
    ms.features.as_features(batch, matrix)
    dense = ms.Dense.of(batch, matrix)
    sparse = ms.Sparse.of(batch, sp.csr_array(matrix))
    _asked(sparse, np.ones(3), tau)
    tied = ms.Tied.of(batch, rng.standard_normal((6, 2)), rng.standard_normal((4, 2)))
    one = ms.Tied.of(batch, rng.standard_normal((6, 2)), rng.standard_normal((4, 1)))
    for features in (tied, one):
        _asked(features, rng.standard_normal(features.d), tau)
    tied.tables(tau)
    masked = ms.features.Shared.only(dense, np.array([True, False, True]))
    _asked(masked, np.ones(2), tau)
    masked.spread(np.ones(2)), masked.gather(np.ones(3))
    _asked(ms.features.Shared.of(dense, np.ones((3, 1))), np.ones(1), tau)

    people, four = np.array([[0, 1], [2, 1], [0, 0], [2, 0]]), ms.Batch.of(ms.Matching(4))
    asked = [
        ms.Question.ordinal("noise", range(3), np.array([0.0, 1.0, 3.0])),
        ms.Question.categorical("diet", ["any", "none"]),
    ]
    pairs = ms.Pairs.of(four, [people], asked)
    theta, tau = rng.standard_normal(pairs.d), rng.random(6)
    pairs.potentials(theta), pairs.moments(tau), pairs.each(tau)
    pairs.gram(np.ones(1), np.ones(1)), pairs.weighted(tau)


def _made(rng):
    """Structures of settings that are arrays."""
    fixed = np.full(4, -1)
    ms.chain(2, 2).refix(np.full(8, -1, dtype=np.int8))
    ms.FactorGraph([2, 2], [], fixed=fixed), ms.BipartiteMatching(2, fixed=fixed)
    ms.Matching(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), fixed=fixed)
    ms.BMatching(
        4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.ones(4), exact=np.zeros(4), fixed=fixed
    )
    ms.Paths([(0, 1), (0, 1), (1, 2), (1, 2)], 0, 2, fixed=fixed)
    ms.Flow([(0, 1), (0, 2), (1, 3), (2, 3)], {0: 1, 3: -1}, fixed=fixed)
    ms.Ising(4, [(0, 1), (1, 2), (2, 3), (3, 0)], fixed=fixed)
    ms.Custom(4, A=np.ones((2, 4)), lower=np.zeros(2), upper=np.full(2, 3.0), fixed=fixed)
    ms.RegionGraph([2, 2], [(0, 1)], fixed=fixed)
    ms.ClusterGraph([2, 2], [(0, 1)], [], fixed=fixed)
    ms.Regulariser.of(2, lower=np.full(2, -1.0))


def _manual(rng):
    """What the manual imports from deeper modules."""
    graph = ms.grid(2, 3)
    batch = ms.Batch.of(graph, np.zeros((2, 6), dtype=int))
    score, tau = rng.standard_normal(batch.size), np.tile(graph.interior(), 2)
    MeanFieldAscent().many(batch, score, tau), belief_optimisation(batch, score, start=tau)
    bounds.outcome_interval(batch, score)
    draws = np.random.default_rng(0)
    gibbs(graph, score[: graph.size], 2, draws, start=np.zeros(6, dtype=int))
    perturb_and_map(graph, score[: graph.size], 2, draws)
    start = np.eye(3).ravel()
    sample_matchings(ms.BipartiteMatching(3), rng.standard_normal(9), 2, draws, start=start)
    tables = per_table(batch, rng.standard_normal((12, 2)), rng.standard_normal((14, 1)))
    _asked(tables, rng.standard_normal(tables.d), tau)
    tables.sums(tau)
    mixture = Mixture(0.5, [0.0, 1.0], [1.0, 1.0])
    mixture.log_likelihood(rng.random(5)), mixture.estimates(rng.random(5))
    condensed, weight = Condensed(), np.ones(batch.size)
    found = condensed.minimise(batch, score, weight)
    condensed.respond(batch, weight, found.tau, rng.standard_normal(batch.size))
    one = score[: graph.size].reshape(1, 1, -1)
    Messages().run(graph, one, 3, True), errors(found.tau, variables(batch))
    beliefs(batch, [score], Messages(), 3)


def _others(rng):
    image = rng.random((5, 4, 2))
    ms.images.windows(image, 1)
    ms.images.coin_noise(np.rint(image), 0.2, 0)
    true = rng.integers(0, 2, 12)
    ms.metrics.wilson(rng.random(3), np.array([3.0, 5.0, 9.0]))
    share = rng.random(12)
    ms.estimators.Calibration.of(share, true), ms.estimators.Calibration.of(share, true, rare=True)
    matching = ms.Matching(4)
    ms.graphs.to_networkx(matching, rng.random(6), np.array([1, 0, 3, 2]))
    nodes, edges = rng.random((4, 2)), np.array([[0, 1], [1, 2], [2, 3]])
    ms.Graph.of(nodes, edges, rng.random((3, 1)))
    regions = np.repeat(np.arange(4), 5).reshape(4, 5)
    graph = ms.Graph.from_regions(regions, rng.random((4, 5, 3)))
    graph.paint(rng.random(4))
    ms.readers.region_labels(regions, regions % 2)
    import matplotlib.pyplot as plt

    ms.plot.matrix(rng.random((3, 3)), outcome=np.array([0, 1, 2]))
    ms.plot.sequence(rng.random((3, 2)), outcome=np.array([0, 1, 1]))
    ms.plot.picture(rng.random((3, 3, 2)))
    plt.close("all")


def _learned(model, X, y, rng):
    count = len(X)
    model.fit(X, y, sample_weight=np.arange(1.0, count + 1))
    model.predict(X), model.predict_marginals(X), model.potentials(X), model.decode(X)
    model.score(X, y, sample_weight=np.arange(1.0, count + 1)), model.log_likelihood(X, y)
    model.sample(X, 2), model.calibration(X, y)
    if not isinstance(model, ms.MatchingModel):
        return  # the same functions for all, and other kinds take seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.intervals(X, y, sample_weight=np.arange(1.0, count + 1))
        model.evidence(X, y)


def _sequences(rng):
    X = [rng.standard_normal((n, 2)) for n in (3, 4, 2, 5, 3, 4)]
    y = [rng.integers(0, 2, len(x)) for x in X]
    _learned(ms.SequenceModel(), X, y, rng)
    model = ms.SequenceModel().fit(X, y, node_weight=[np.ones(len(x)) for x in X])
    model.k_best(X, 2)
    _learned(ms.SkipChainModel(skips=lambda x: [(0, len(x) - 1)] if len(x) > 2 else []), X, y, rng)


def _matchings(rng):
    X = rng.standard_normal((8, 3, 3, 2))
    y = np.array([rng.permutation(3) for _ in range(8)])
    _learned(ms.MatchingModel(), X, y, rng)


def _grids(rng):
    X, y = rng.standard_normal((5, 3, 3, 2)), rng.integers(0, 2, (5, 3, 3))
    _learned(ms.GridModel(), X, y, rng)


def _graphs(rng):
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    X = [(rng.standard_normal((3, 2)), edges) for _ in range(6)]
    _learned(ms.GraphModel(), X, [rng.integers(0, 2, 3) for _ in X], rng)


def _multi_label(rng):
    X, y = rng.standard_normal((12, 2)), rng.integers(0, 2, (12, 3))
    _learned(ms.MultiLabelModel(), X, y, rng)


def _own_solver(rng):
    s = ms.Custom(6, exactly_one=[[0, 1, 2], [3, 4, 5]])
    X = rng.standard_normal((8, 6, 2))
    y = np.array([np.eye(3)[rng.integers(0, 3, 2)].ravel() for _ in X])

    def best(score):
        vertex = np.zeros(6)
        vertex[score[:3].argmax()] = vertex[3 + score[3:].argmax()] = 1.0
        return vertex

    _learned(ms.StructuredModel(s, oracle=best), X, y, rng)


def _joint(rng):
    labels = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1]])
    model = ms.JointModel(ms.grid(2, 2), Mixture(1.0, [0.0, 1.0], [1.0, 1.0]), smoothing=0.1).fit(
        labels
    )
    noisy = labels + 0.3 * rng.standard_normal(labels.shape)
    model.predict(noisy), model.predict_marginals(noisy)


SCENARIOS = {name: functools.partial(_structure, name) for name in STRUCTURES}
SCENARIOS |= {
    "features": _features,
    "settings": _made,
    "manual": _manual,
    "images, metrics, graphs": _others,
    "sequences": _sequences,
    "matchings": _matchings,
    "grids": _grids,
    "graphs": _graphs,
    "several labels": _multi_label,
    "own solver": _own_solver,
    "joint": _joint,
}


QUICK = [
    name
    for name in SCENARIOS
    if name in {*STRUCTURES, "features", "settings", "manual", "matchings"}
]
DRAWN = 0.05  # of the variants in an ordinary run, at least one a parameter


def _tried(monkeypatch, names, share, seed=0):
    trial = Trial(monkeypatch, seed, share)
    for name in names:
        SCENARIOS[name](np.random.default_rng(seed))
    return trial


@pytest.mark.parametrize("name", QUICK)
def test_other_types_and_layouts_give_the_plain_answer(name, monkeypatch):
    """A draw of variants: the same numbers come out, or an error names what is wrong."""
    trial = _tried(monkeypatch, [name], DRAWN)
    assert not trial.faults
    assert trial.cases > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_type_and_layout_gives_the_plain_answer(name, monkeypatch):
    trial = _tried(monkeypatch, [name], 1.0)
    assert not trial.faults
    assert trial.cases > 0


def test_every_public_function_that_takes_numbers_is_tried(monkeypatch):
    """A function that is new, and neither called above nor exempt with a reason, fails here."""
    trial = _tried(monkeypatch, SCENARIOS, 0.0)
    public = {(name, one) for name, (_, _, numbers) in FUNCTIONS.items() for one in numbers}
    left = sorted(one for one in public - trial.reached if _exempt(*one) is None)
    assert not left


def test_a_new_public_function_is_found(monkeypatch):
    def fresh(scores: ArrayLike) -> float:  # noqa: F821
        return float(np.sum(scores))

    fresh.__module__ = "mlestruct.metrics"
    monkeypatch.setattr(ms.metrics, "fresh", fresh, raising=False)
    assert set(_functions()) - set(FUNCTIONS) == {"mlestruct.metrics.fresh"}


LAYOUTS_OF_SCORES = ["reversed", "strided", "big-endian", "read-only", "float32", "int8"]


@pytest.mark.parametrize("variant", LAYOUTS_OF_SCORES)
def test_sum_product_reads_scores_of_any_layout(variant):
    """On a 3 × 3 grid, whose kernels load from bare pointers."""
    batch = ms.Batch.of(ms.grid(3, 3))
    score = np.random.default_rng(0).standard_normal(batch.size)
    by = SumProduct.of(ms.Entropy.of(batch))
    plain, changed = score, LAYOUTS.get(variant, lambda a: a)(score)
    if variant in KINDS:
        rounded, short = _of_kind(variant)
        plain, changed = rounded(score), short(score)
    assert by.many(batch, changed).log_z == by.many(batch, plain).log_z
    tau = ms.marginals(batch, plain).tau
    assert np.array_equal(ms.marginals(batch, changed).tau, tau)
