"""Which items go into a van: values learned from what was packed, by a solver of one's own."""

import numpy as np
from ortools.sat.python import cp_model

import mlestruct as ms


def pack(scores, van):
    model = cp_model.CpModel()
    take = [model.new_bool_var(f"item {k}") for k in range(len(scores))]
    model.add(sum(int(w) * t for w, t in zip(van["weights"], take)) <= van["capacity"])
    model.maximize(sum(round(1e6 * s) * t for s, t in zip(scores, take)))
    solver = cp_model.CpSolver()
    solver.solve(model)
    return [solver.value(t) for t in take]


rng = np.random.default_rng(0)
vans = []
for _ in range(60):  # urgency, margin and bulk of 6 to 12 parcels
    parcels, weights = rng.random((rng.integers(6, 13), 3)), None
    weights = rng.integers(1, 10, len(parcels))
    value = parcels @ [2.0, 1.0, -0.5]
    vans.append({"features": parcels, "weights": weights, "capacity": 20, "cost": -value})
packed = [pack(-van["cost"] + 0.2 * rng.gumbel(size=len(van["cost"])), van) for van in vans]
model = ms.StructuredModel(oracle=pack, feature_names=["urgency", "margin", "bulk"])
model.fit(vans[:40], packed[:40])
print(model.summary())
regret = -ms.scorers.regret("cost")(model, vans[40:], packed[40:])
