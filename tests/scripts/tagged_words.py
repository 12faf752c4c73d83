import numpy as np

import mlestruct as ms
from mlestruct.metrics import entity_f1

rng = np.random.default_rng(3)
NAMES = {"PER": ["Ann Lee", "Bo", "Carl Otto Ek"], "LOC": ["Rome", "New York", "Oslo"]}


def sentence():
    words, tags = [], []
    for kind in ("PER", "O", rng.choice(["PER", "LOC"])):
        some = NAMES.get(kind, ["lives in", "met", "went to"])
        found = str(rng.choice(some)).split()
        words += found
        tags += [kind if kind == "O" else f"{'I' if k else 'B'}-{kind}" for k in range(len(found))]
    return [{"word": w.lower(), "capital": w[0].isupper()} for w in words], tags


X, y = zip(*[sentence() for _ in range(120)])
seen = [[None if rng.random() < 0.2 else tag for tag in tags] for tags in y[:80]]
model = ms.SequenceModel(constraints="bio", alpha=[0.1, 1.0]).fit(X[:80], seen)
for tags, probability in model.k_best(X[100:101], k=3)[0]:
    print(f"{probability:.3f}", *tags)
report = entity_f1(y[80:], model.predict(X[80:]))
print(report)
