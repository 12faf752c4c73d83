import numpy as np
from ortools.sat.python import cp_model

import mlestruct as ms


def assign(scores, day):  # each lesson one hour, two rooms an hour, clashing lessons apart
    model, hours = cp_model.CpModel(), range(scores.shape[1])
    x = {ij: model.new_bool_var(f"{ij}") for ij in np.ndindex(scores.shape)}
    for i in range(len(scores)):
        model.add_exactly_one(x[i, h] for h in hours)
    for h in hours:
        model.add(sum(x[i, h] for i in range(len(scores))) <= 2)
        model.add_at_most_one(x[i, h] for i in day["clash"])
    model.maximize(sum(round(1e5 * scores[ij]) * taken for ij, taken in x.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.solve(model)
    return np.reshape([solver.value(taken) for taken in x.values()], scores.shape)


rng = np.random.default_rng(1)
days = [{"features": rng.random((n, 4, 3)), "clash": [0, 1]} for n in rng.integers(4, 7, 30)]
for day in days:
    day["cost"] = -day["features"] @ [2.0, 0.7, -1.0]
seen = [assign(-d["cost"] + 0.2 * rng.gumbel(size=d["cost"].shape), d) for d in days]
model = ms.StructuredModel(oracle=assign, feature_names=["wish", "early", "walk"])
print(model.fit(days[:20], seen[:20]).summary())
regret = -ms.scorers.regret("cost")(model, days[20:], seen[20:])
