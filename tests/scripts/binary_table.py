"""A table of yes and no cells with two measurements each: how strongly neighbours agree."""

import numpy as np

import mlestruct as ms

rng, X, y = np.random.default_rng(0), [], []
for _ in range(40):  # drawn from the model itself: 2 000 visits of every cell
    cells = rng.standard_normal((8, 8, 2))
    field, table = cells @ [1.0, -0.5], np.zeros((10, 10))
    for _ in range(50):
        for i, j in np.ndindex(8, 8):
            near = table[i, j + 1] + table[i + 2, j + 1] + table[i + 1, j] + table[i + 1, j + 2]
            chance = 1 / (1 + np.exp(-2 * (field[i, j] + 0.4 * near)))
            table[i + 1, j + 1] = 1 if rng.random() < chance else -1
    X.append(cells)
    y.append(np.where(table[1:-1, 1:-1] > 0, "yes", "no"))
model = ms.GridModel(learner="exact_mle", tables="potts", alpha=0.1).fit(X[:30], y[:30])
intervals = model.intervals(X[:30], y[:30])
print(model.summary(intervals))
coupling = intervals["equal against unequal neighbours"]
error = 1 - model.score(X[30:], y[30:])
