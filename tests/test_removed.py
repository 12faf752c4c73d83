"""Names and settings that were removed say what serves instead."""

import importlib

import pytest

import mlestruct as ms
from mlestruct.cli import main
from mlestruct.engine import engine_of
from mlestruct.errors import REMOVED
from mlestruct.readers import graph_of
from mlestruct.roommates.plan import Plan
from mlestruct.roommates.report import Report

USES = {
    "mlestruct.Functions": lambda: ms.Functions,
    "mlestruct.features.Functions": lambda: ms.features.Functions,
    "mlestruct.features.Masked": lambda: ms.features.Masked,
    "mlestruct.features.NoFeatures": lambda: ms.features.NoFeatures,
    "mlestruct.features.crossed": lambda: ms.features.crossed,
    "mlestruct.oracle.BruteForce": lambda: ms.oracle.BruteForce,
    "JointModel.stability_": lambda: ms.JointModel(None, None).stability_,
    "Flow.routes": lambda: ms.Flow([(0, 1)], {0: 1, 1: -1}).routes([1.0]),
    "mlestruct.features.with_intercept": lambda: ms.features.with_intercept,
    "mlestruct.readers.uai": lambda: ms.readers.uai,
    "engine='processes'": lambda: engine_of("processes", 2),
    "mlestruct.engine.Processes": lambda: importlib.import_module("mlestruct.engine").Processes,
    "mlestruct.learners.streamed": lambda: importlib.import_module("mlestruct.learners").streamed,
    "mlestruct.data.Stored": lambda: ms.data.Stored,
    "Learner.states": lambda: ms.mle_struct().states(None, None),
    "FrankWolfe.run": lambda: ms.FrankWolfe().run(None, None),
    "mlestruct.learners.Model": lambda: ms.learners.Model,
    "mlestruct.engine.Shard": lambda: importlib.import_module("mlestruct.engine").Shard,
    "mlestruct.engine.Running": lambda: importlib.import_module("mlestruct.engine").Running,
    "Estimator.offset": lambda: type("Own", (ms.MatchingModel,), {"offset": None}),
    "mlestruct.engine.Maker": lambda: importlib.import_module("mlestruct.engine").Maker,
    "StructuredModel(sense=)": lambda: ms.StructuredModel(sense="min"),
    "Estimator(one_standard_error=)": lambda: ms.MatchingModel(one_standard_error=True),
    "Estimator(scoring=)": lambda: ms.GraphModel(scoring="luck"),
    "Estimator(class_weight=)": lambda: ms.GraphModel(class_weight="balanced"),
    "StructuredModel(feature_map=)": lambda: ms.StructuredModel(feature_map=len),
    "RoommateModel(extra=)": lambda: ms.RoommateModel(extra={}),
    "evaluate(truth=)": lambda: ms.RoommateModel().evaluate([], [], truth=len),
    "evaluate(evidence=)": lambda: ms.RoommateModel().evaluate([], [], evidence=True),
    "RoommateModel(weight=)": lambda: ms.RoommateModel(weight="kept"),
    "RoommateModel(outcomes=)": lambda: ms.RoommateModel(outcomes={}),
    "RoommateModel(unpaired=)": lambda: ms.RoommateModel(unpaired="refuse"),
    "Plan.what_if": lambda: Plan.what_if(None),
    "mlestruct.doctor": lambda: ms.doctor,
    "intervals(tastes=)": lambda: ms.MatchingModel().intervals([], [], tastes=True),
    "GraphModel(clique_table=)": lambda: ms.GraphModel(clique_table="counts"),
    "Graph.from_adjacency": lambda: ms.Graph.from_adjacency([[1.0]], [[0.0]]),
    "a graph's cliques": lambda: graph_of({"nodes": [[1.0]], "edges": [], "cliques": []}),
    "oracle='graph_cut_ortools'": lambda: ms.oracle.load("graph_cut_ortools"),
    "oracle='qpbo_ortools'": lambda: ms.oracle.load("qpbo_ortools"),
    "Report.of(language=)": lambda: Report.of(ms.RoommateModel(), [], language="de"),
}


MODULES = [
    "mlestruct.readers.images.gaussian_noise",
    "mlestruct.readers.images.gradient_histograms",
    "mlestruct.readers.images.blurs",
    "mlestruct.readers.images.centres",
    "mlestruct.readers.images.indicators",
    "mlestruct.readers.bio_chain",
    "mlestruct.metrics.f1",
    "mlestruct.metrics.EntityReport",
    "mlestruct.metrics.mcnemar",
    "mlestruct.metrics.Comparison",
    "mlestruct.inference.mean_field.mean_field",
    "mlestruct.inference.bounds.product_interval",
    "mlestruct.inference.bounds.halves_interval",
    "mlestruct.roommates.RoommateSummary",
    "mlestruct.roommates.PairContrast",
    "mlestruct.roommates.WhatIf",
    "mlestruct.inference.exact.count_matchings",
]


@pytest.mark.parametrize("name", MODULES)
def test_a_removed_name_of_a_module_says_what_serves_instead(name):
    module, attribute = name.rsplit(".", 1)
    with pytest.raises(ImportError) as caught:
        getattr(importlib.import_module(module), attribute)
    assert str(caught.value) == f"{name} was removed: {REMOVED[name]}"


@pytest.mark.parametrize("name", USES)
def test_a_removed_name_says_what_serves_instead(name):
    with pytest.raises((ValueError, ImportError, AttributeError)) as caught:
        USES[name]()
    assert str(caught.value) == f"{name} was removed: {REMOVED[name]}"


def test_a_removed_setting_is_refused_where_it_is_set():
    with pytest.raises(ValueError, match="features of your own"):
        ms.RoommateModel().set_params(extra={})
    with pytest.raises(ValueError, match="engine='dask'"):
        ms.MatchingModel(engine="processes").fit([[[[1.0]]]], [[0]])


def test_names_that_never_were_are_unknown_as_before():
    assert not hasattr(ms.data, "Storage")
    with pytest.raises(TypeError, match="unexpected keyword argument 'worker'"):
        ms.RoommateModel(worker=2)


def test_a_removed_command_says_what_serves_instead(capsys):
    assert main(["warm", "--package"]) == 2
    assert capsys.readouterr().err.startswith("mlestruct: mlestruct warm was removed: kernels are")


@pytest.mark.parametrize("command", ["assign people.csv", "serve"])
@pytest.mark.parametrize("language", ["--language de", "--language=en"])
def test_a_removed_option_says_what_serves_instead(command, language, capsys):
    assert main(["roommates", *command.split(), *language.split()]) == 2
    said = f"mlestruct: --language was removed: {REMOVED['--language']}\n"
    assert capsys.readouterr().err == said
