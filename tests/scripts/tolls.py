import heapq

import numpy as np

import mlestruct as ms


def drive(costs, city):  # all routes have equally many streets: a constant makes costs positive
    costs, heap, done = costs - min(costs), [(0.0, 0, ())], set()
    while True:
        length, place, used = heapq.heappop(heap)
        if place == city["goal"]:
            return np.bincount(used, minlength=len(costs))
        for k, (tail, head) in enumerate(city["streets"]):
            if tail == place and tail not in done:
                heapq.heappush(heap, (length + costs[k], head, (*used, k)))
        done.add(place)


rng, cities = np.random.default_rng(5), []
for side in rng.integers(3, 6, 50):
    streets = [(k, k + 1) for k in range(side**2) if (k + 1) % side]
    streets += [(k, k + side) for k in range(side**2 - side)]
    kinds = np.c_[rng.random((len(streets), 2)), rng.random(len(streets)) < 0.3]
    cost = kinds @ [1.0, 0.5, 0.8]
    cities.append({"features": -kinds, "streets": streets, "goal": side**2 - 1, "cost": cost})
seen = [drive(c["cost"] + 0.2 * rng.gumbel(size=len(c["cost"])), c) for c in cities]
model = ms.StructuredModel(oracle=drive, sense="min", feature_names=["length", "hill", "toll"])
print(model.fit(cities[:35], seen[:35]).summary())
regret = -ms.scorers.regret("cost")(model, cities[35:], seen[35:])
