"""What makes a street worth taking: weights from routes driven, by one's own Dijkstra."""

import heapq

import numpy as np

import mlestruct as ms


def drive(scores, city):  # every route has equally many streets, so a constant may be added
    cost, heap, done, place = max(scores) - scores, [(0.0, 0, ())], set(), None
    while place != city["streets"][-1][1]:
        length, place, used = heapq.heappop(heap)
        for k, (tail, head) in enumerate(city["streets"]):
            if tail == place and tail not in done:
                heapq.heappush(heap, (length + cost[k], head, (*used, k)))
        done.add(place)
    return np.bincount(used, minlength=len(scores))


rng, cities = np.random.default_rng(0), []
for side in rng.integers(3, 6, 60):  # crossings (i, j) are numbered row by row
    streets = [(k, k + 1) for k in range(side**2) if (k + 1) % side]
    streets += [(k, k + side) for k in range(side**2 - side)]
    kinds = rng.random((len(streets), 3))
    cities.append({"features": -kinds, "streets": streets, "cost": kinds @ [1.0, 0.6, 0.2]})
driven = [drive(-c["cost"] + 0.1 * rng.gumbel(size=len(c["cost"])), c) for c in cities]
model = ms.StructuredModel(oracle=drive, feature_names=["length", "traffic", "lights"])
print(model.fit(cities[:40], driven[:40]).summary())
regret = -ms.scorers.regret("cost")(model, cities[40:], driven[40:])
