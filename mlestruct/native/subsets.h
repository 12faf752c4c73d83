// Matchings by dynamic programming over subsets of nodes.
#pragma once
#include "kernel.h"

extern "C" {
/** Weights of pairs of an item and a place, of items without a place, and of places not taken.

If matchings are ``full``, no place is left. */
struct place_weights {
    int64_t count;
    int64_t items;
    int64_t places;
    const double *weight N(count * items * places);
    const double *alone N(count * items);
    const double *idle N(count * places);
    bool full;
};

/** Write Z and Z times the marginals, where every item takes at most one place.

O(items * places * 2^places). */
EXPORT status sum_sets_by_items(const struct place_weights *given, double *z N(given.count),
                                double *tau N(given.count * given.items * given.places));
/** The same where every item takes one place, so that k items fill sets of k places.

O(places * 2^places). */
EXPORT status sum_sets_by_rows(const struct place_weights *given, double *z N(given.count),
                               double *tau N(given.count * given.items * given.places));
/** Write Z and Z times the marginals of matchings of n nodes whose pairs u < v weigh weight[u, v].

O(n * 2^n). */
EXPORT status sum_pairs(int64_t count, int64_t n, const double *weight N(count * n * n),
                        const double *alone N(count * n), double *z N(count),
                        double *tau N(count * n * n));
}
