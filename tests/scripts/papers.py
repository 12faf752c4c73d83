import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import mlestruct as ms

rng = np.random.default_rng(2)
place = pd.MultiIndex.from_product([range(60), range(5), range(6)])
table = pd.DataFrame(index=place.set_names(["round", "reviewer", "paper"])).reset_index()
table["rating"], table["topic"] = rng.integers(1, 6, len(table)) * 1.0, rng.random(len(table))
worth = 0.8 * table["rating"] + 2.0 * table["topic"] + rng.gumbel(size=len(table))
table["chosen"] = 0
for _, part in table.groupby("round"):
    rows = linear_sum_assignment(worth[part.index].to_numpy().reshape(5, 6), maximize=True)
    table.loc[part.index[np.ravel_multi_index(rows, (5, 6))], "chosen"] = 1
table.loc[rng.random(len(table)) < 0.2, "rating"] = np.nan

table["not rated"] = table["rating"].isna()
table["rating"] = table["rating"].fillna(table["rating"].mean())
names = ["rating", "topic", "not rated"]
X = table[names].to_numpy(float).reshape(60, 5, 6, 3)
y = table["chosen"].to_numpy().reshape(60, 5, 6)
model = ms.MatchingModel("one_sided", feature_names=names, learner="exact_mle").fit(X[:50], y[:50])
sure = model.intervals(X[:50], y[:50])
print(model.summary(sure))
right = model.score(X[50:], y[50:])
