import numpy as np

import mlestruct as ms

rng = np.random.default_rng(5)
stack = rng.standard_normal((12, 5, 6, 2))  # years × rows × columns × channels
level = (
    stack[..., 0] + 0.4 * np.roll(stack[..., 0], 1, axis=1) + 0.5 * rng.standard_normal((12, 5, 6))
)
cover = np.array(["bare", "grass", "forest"])[np.digitize(level, [-0.5, 0.5])]
y = np.ma.masked_array(cover, rng.random(cover.shape) < 0.15)
model = ms.GridModel(tables="potts", feature_names=["wet", "slope"], unseen="left_out")
model.fit(stack[:9], y[:9])
sure = model.intervals(stack[:9], y[:9], reference="grass")
print(sure)
right, picture = model.score(stack[9:], y[9:]), model.predict(stack[9:10])[0]
