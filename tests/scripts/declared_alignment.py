import numpy as np

import mlestruct as ms

rng, pairs, seen = np.random.default_rng(3), [], []
NAMES, TRUE = ["same", "transition", "gap"], np.array([1.5, -0.4, -0.8])


def moves(pair):  # through the table of both words: node (i, j) is i * (m + 1) + j
    n, m = len(pair["a"]), len(pair["b"])
    steps = [(i, j, x, y) for x, y in ((1, 1), (1, 0), (0, 1)) for i, j in np.ndindex(n + 1, m + 1)]
    steps = [(i, j, x, y) for i, j, x, y in steps if i + x <= n and j + y <= m]
    arcs = [(i * (m + 1) + j, (i + x) * (m + 1) + j + y) for i, j, x, y in steps]
    return steps, ms.Paths(arcs, 0, (n + 1) * (m + 1) - 1)


for _ in range(50):
    pair = {name: "".join(rng.choice(list("ACGT"), rng.integers(4, 8))) for name in "ab"}
    steps, paths = moves(pair)
    letters = [(pair["a"][i], pair["b"][j]) if x and y else None for i, j, x, y in steps]
    kin = {"A", "G"}, {"C", "T"}
    rows = [(0, 0, 1) if two is None else (two[0] == two[1], set(two) in kin, 0) for two in letters]
    pairs.append(pair | {"features": np.array(rows, dtype=float)})
    noisy = rows @ TRUE + 0.5 * rng.gumbel(size=len(rows))
    seen.append(ms.inference.best(ms.Batch.of(paths, count=1), noisy)[0][0])
model = ms.StructuredModel(lambda pair: moves(pair)[1], feature_names=NAMES)
sure = model.fit(pairs, seen).intervals(pairs, seen)
print(model.summary(sure))
