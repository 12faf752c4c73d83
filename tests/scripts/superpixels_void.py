"""Superpixels with void: sky, trees and road from colours, a third of the labels unknown."""

import numpy as np

import mlestruct as ms
from mlestruct.readers import region_labels

rng, graphs, labels = np.random.default_rng(0), [], []
COLOURS = np.array([[0.5, 0.7, 0.9], [0.2, 0.5, 0.3], [0.4, 0.4, 0.4]])
for _ in range(40):  # pictures of 24 × 32 pixels, cut into cells of the nearest of 30 points
    tops = np.sort(rng.uniform(0, 24, 2))
    scene = (np.arange(24)[:, None] > tops).sum(axis=1)[:, None] + np.zeros((1, 32), dtype=int)
    picture = COLOURS[scene] + 0.2 * rng.standard_normal((24, 32, 3))
    places, centres = np.indices((24, 32)).reshape(2, -1).T, rng.uniform((0, 0), (24, 32), (30, 2))
    cell = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    regions = np.unique(cell, return_inverse=True)[1].reshape(24, 32)
    graphs.append(ms.Graph.from_regions(regions, picture))
    scene[rng.random(scene.shape) < 0.2] = 255  # pixels that nobody labelled
    known = region_labels(regions, scene, void=255)
    labels.append(np.where(rng.random(len(known)) < 0.3, 255, known))
model = ms.GraphModel(void=255, tables="potts").fit(graphs[:30], labels[:30])
print(model.summary())
error = 1 - model.score(graphs[30:], labels[30:])
picture = graphs[30].paint(model.predict(graphs[30:31])[0])
