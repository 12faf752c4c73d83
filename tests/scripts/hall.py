import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import mlestruct as ms

rng, n, folder = np.random.default_rng(7), 120, Path(tempfile.mkdtemp())
people = pd.DataFrame({"Name / ID": [f"P{k:03d}" for k in range(n)]})
people["Sex"], people["Year"] = np.tile(["f", "m"], n // 2), np.repeat([2024, 2025, 2026], 40)
people["Up early? (1-5)"] = rng.integers(1, 6, n)
people["Tidy (1-5)"] = [str(v) if v < 6 else "n/a" for v in rng.integers(1, 7, n)]
people["Remark"] = ["likes 2 windows", *range(n - 1)]
pairs = []
for _, group in people[people["Year"] < 2026].groupby(["Year", "Sex"]):
    ids = group.iloc[np.argsort(group["Up early? (1-5)"] + rng.random(20))]["Name / ID"].tolist()
    pairs += zip(ids[::2], ids[1::2])
people.to_csv(folder / "people.csv", sep=";", index=False, encoding="utf-8-sig")
pd.DataFrame(pairs, columns=["Person A", "Person B"]).to_csv(folder / "pairs.csv", index=False)

model = ms.RoommateModel(
    id="Name / ID", cohort="Year", same="Sex", partners=["Person A", "Person B"],
    ordinal=["Up*", "Tidy*"], no_answer=["n/a"], missing="neutral",
).fit(folder / "people.csv", folder / "pairs.csv")  # fmt: skip
people[people["Year"] == 2026].to_csv(folder / "new.csv", index=False)
locked = "P080", "P082"
plan = model.assign(folder / "new.csv", require=[locked])
print(model.summary(), plan, model.explain(plan, locked[0]), sep="\n\n")
model.report(folder / "report.html", folder / "new.csv", require=[locked])
