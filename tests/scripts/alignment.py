"""Two words letter by letter: gains of matches and gaps, by one's own dynamic program."""

import numpy as np

import mlestruct as ms


def align(scores, pair):  # the best chain of matches (i, j); letters without one are gaps
    n, m = len(pair["a"]), len(pair["b"])
    gain, best = np.reshape(scores, (n, m)), np.zeros((n + 1, m + 1))
    for i, j in np.ndindex(n, m):
        best[i + 1, j + 1] = max(best[i, j] + gain[i, j], best[i, j + 1], best[i + 1, j])
    used, i, j = np.zeros((n + 1, m + 1)), n, m
    while i and j:
        skip_i, skip_j = best[i, j] == best[i - 1, j], best[i, j] == best[i, j - 1]
        i, j = i - (skip_i or not skip_j), j - (not skip_i)
        used[i, j] += not skip_i and not skip_j
    return used[:n, :m].ravel()


rng, pairs = np.random.default_rng(0), []
for _ in range(80):
    a, b = ("".join(rng.choice(list("ACGT"), rng.integers(4, 9))) for _ in "ab")
    same = np.array([[x == y, (x in "AG") == (y in "AG"), 1.0] for x in a for y in b], dtype=float)
    pairs.append({"features": same, "a": a, "b": b, "cost": -same @ [2.0, 1.0, -1.5]})
seen = [align(-p["cost"] + 0.2 * rng.gumbel(size=len(p["cost"])), p) for p in pairs]
model = ms.StructuredModel(oracle=align, feature_names=["same letter", "same class", "match"])
model.fit(pairs[:60], seen[:60])
print(model.summary())
regret = -ms.scorers.regret("cost")(model, pairs[60:], seen[60:])
