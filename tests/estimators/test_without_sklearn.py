"""Nothing at the front door needs scikit-learn."""

import subprocess
import sys

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("sklearn", "pandas", "polars", "matplotlib")))
import mlestruct as ms
from mlestruct import data
train = data.sequences(sizes=(6, 0, 0), states=2, d=3)[0]
model = ms.SequenceModel(alpha=(0.1, 1.0), tol=0.1).fit(train.X, train.y)
model.set_params(**model.get_params())
model.save(sys.argv[1])
twin = ms.SequenceModel.load(sys.argv[1])
try:
    ms.GridModel().predict([[[0.0]]])
except ValueError as error:
    assert isinstance(error, AttributeError) and "not fitted yet" in str(error)
assert ms.scorers.all_right(twin, train.X, train.y) <= twin.score(train.X, train.y)
print(len(model.summary().names), ms.tables.table([{"a": 1}])["a"][0])
"""


def test_everything_works_without_the_extras(tmp_path):
    path = str(tmp_path / "model.npz")
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT, path], capture_output=True, text=True, check=False
    )
    assert answer.stderr == ""
    assert answer.stdout.split() == ["12", "1"]
