import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlestruct as ms

rng, LABELS = np.random.default_rng(6), ["bread", "butter", "umbrella"]
table = pd.DataFrame(rng.standard_normal((300, 3)), columns=["age", "income", "rain"])
shared = rng.standard_normal(300)
for name, on in zip(LABELS, table.columns):
    table[name] = (table[on] + shared + 0.5 * rng.standard_normal(300) > 0).astype(float)
X, y = table[["age", "income", "rain"]], table[LABELS]
known = y[:200].mask(rng.random((200, 3)) < 0.2)  # a fifth of the answers is missing
model = ms.MultiLabelModel(learner="exact_mle").fit(X[:200], known)
print(model.summary())
right = model.score(X[200:], y[200:])
scaled = make_pipeline(StandardScaler(), ms.MultiLabelModel(learner="exact_mle"))
alphas = {"multilabelmodel__alpha": [0.1, 1.0, 100.0]}
search = GridSearchCV(scaled, alphas, scoring=ms.scorers.log_likelihood, cv=3).fit(X[:200], y[:200])
