// What kernels of matchings share: loops over live edges, an edge's tau, sums by node.
#pragma once

#include <initializer_list>

#include "../matching.h"
#include "lanes.h"

using Graph = matching_graph;

constexpr double MOST = 1e300;     // an entry or a degree whose logarithm is taken
constexpr double LEAST = 1e-300;   // of a mass whose logarithm is taken
constexpr double HIGHEST = 690.0;  // of an exponent: its exponential is below MOST

INLINE double magnitude(double x) { return larger(x, -x); }
INLINE Row magnitude(Row x) { return larger(x, -x); }
INLINE double bounded_exponential(double x) { return exponential(smaller(x, HIGHEST)); }
INLINE bool any(bool mask) { return mask; }

// Up to eight edges in a row; in `straight` ones all tails are one node and heads are adjacent.
struct Eight {
    int64_t e, u;
    int count;
    bool straight;
    const int32_t *head;
    int64_t tail[EIGHT];

    INLINE Row edges(const double *values) const {
        if (count == EIGHT) return load(values + e);
        double some[EIGHT] = {};
        for (int k = 0; k < count; ++k) some[k] = values[e + k];
        return load(some);
    }
    INLINE void put(double *values, Row row) const {
        if (count == EIGHT) return store(values + e, row);
        for (int k = 0; k < count; ++k) values[e + k] = row[k];
    }
    INLINE Row tails(const double *x) const {
        if (straight) return row_of(x[u]);
        double some[EIGHT] = {};
        for (int k = 0; k < count; ++k) some[k] = x[tail[k]];
        return load(some);
    }
    INLINE Row heads(const double *x) const {
        if (straight) return load(x + head[0]);
        double some[EIGHT] = {};
        for (int k = 0; k < count; ++k) some[k] = x[head[k]];
        return load(some);
    }
    // The rows that are no edges become zero.
    INLINE Row only(Row row) const {
        if (count < EIGHT) row = select(counted_from(0.0) < row_of(count), row, row_of(0.0));
        return row;
    }
    INLINE void add(double *y, Row row) const {
        if (straight) {
            y[u] += sum(row);
            store(y + head[0], load(y + head[0]) + row);
            return;
        }
        double some[EIGHT];
        store(some, row);
        for (int k = 0; k < count; ++k) {
            y[tail[k]] += some[k];
            y[head[k]] += some[k];
        }
    }
};

template <class Visit>
INLINE void each_eight(const Graph &g, Visit visit) {
    int64_t u = 0;
    for (int64_t e = 0; e < g.live; e += EIGHT) {
        while (g.ptr[u + 1] <= e) ++u;
        Eight at;
        at.e = e;
        at.u = u;
        at.count = static_cast<int>(g.live - e < EIGHT ? g.live - e : EIGHT);
        at.head = g.head + e;
        at.straight = e + EIGHT <= g.ptr[u + 1] && at.head[EIGHT - 1] - at.head[0] == EIGHT - 1;
        if (!at.straight) {
            int64_t v = u;
            for (int k = 0; k < at.count; ++k) {
                while (g.ptr[v + 1] <= e + k) ++v;
                at.tail[k] = v;
            }
        }
        visit(at);
    }
}

template <class Visit>
INLINE void each_edge(const Graph &g, Visit visit) {
    for (int64_t u = 0; u < g.nodes; ++u)
        for (int64_t e = g.ptr[u]; e < g.ptr[u + 1]; ++e) visit(e, u, int64_t{g.head[e]});
}

// Tau of the lower branch of log tau - c log(1 - tau) = log z for any c. In p = logit tau the left
// side is concave: Newton's steps from the left never pass the root.
template <class T>
INLINE T newton_entry(T z, double c) {
    const T one = everywhere<T>(1.0), zero = everywhere<T>(0.0), least = everywhere<T>(1e-307);
    const T goal = logarithm(smaller(larger(z, least), everywhere<T>(MOST)));
    T p = goal, tau = zero;
    auto going = z > least, tip = z > everywhere<T>(INF);
    for (int turn = 0; turn < 60; ++turn) {
        const T e = exponential(-magnitude(p)), below = 1.0 / (1.0 + e);
        tau = select(p > zero, below, e * below);
        const T slope = 1.0 - (1.0 - c) * tau;
        tip = tip | (going & (slope <= everywhere<T>(1e-9)));
        going = going & (slope > everywhere<T>(1e-9));
        if (!any(going)) break;
        const T soft = larger(p, zero) + logarithm_of_one_and(e);
        const T step = (goal - p + (1.0 - c) * soft) / slope;
        p = select(going, p + step, p);
        going = going & (step > 1e-15 * larger(one, magnitude(p)));
    }
    const T e = exponential(-magnitude(p)), below = 1.0 / (1.0 + e);
    tau = select(p > zero, below, e * below);
    tau = select(tip, everywhere<T>(1.0 / (1.0 - c)), tau);
    return select(z > least, tau, larger(z, zero));
}

// The same; where there is no root, the tip 1 / (1 - c) of the branch.
template <class T>
INLINE T entry(T z, double c) {
    if (c == 0.0) return z;
    if (c == 1.0) return select(z < everywhere<T>(MOST), z / (1.0 + z), everywhere<T>(1.0));
    if (c == -1.0) return 2.0 * z / (1.0 + square_root(larger(1.0 - 4.0 * z, everywhere<T>(0.0))));
    return newton_entry(z, c);
}

// What an entry gains by log z.
template <class T>
INLINE T entry_slope(T tau, double c) {
    return tau * (1.0 - tau) / larger(1.0 - (1.0 - c) * tau, everywhere<T>(1e-9));
}

// One row of sum K s: its own sum, returned, and what it adds to its heads' sums, into y.
template <bool TAILS, bool HEADS>
INLINE double linear_row(const double *kernel, const double *s, double own, double *y,
                         int64_t count) {
    Row mass = row_of(0.0);
    int64_t k = 0;
    for (; k + EIGHT <= count; k += EIGHT) {
        const Row weight = load(kernel + k);
        if (TAILS) mass = mass + weight * load(s + k);
        if (HEADS) store(y + k, load(y + k) + weight * own);
    }
    double rest = 0.0;
    for (; k < count; ++k) {
        if (TAILS) rest += kernel[k] * s[k];
        if (HEADS) y[k] += kernel[k] * own;
    }
    return TAILS ? sum(mass) + rest : 0.0;
}

// y = K s for the symmetric matrix whose upper triangle is listed, at tails, heads or both.
template <bool TAILS, bool HEADS>
void product(const Graph &g, const double *kernel, const double *s, double *y) {
    for (int64_t v = 0; v < g.nodes; ++v) y[v] = 0.0;
    for (int64_t u = 0; u < g.nodes; ++u) {
        const int64_t low = g.ptr[u], count = g.ptr[u + 1] - low;
        if (!count) continue;
        const int32_t *head = g.head + low;
        const double *row = kernel + low, own = s[u];
        if (count >= EIGHT && head[count - 1] - head[0] == count - 1) {
            y[u] += linear_row<TAILS, HEADS>(row, s + head[0], own, y + head[0], count);
            continue;
        }
        double mass = 0.0;
        for (int64_t k = 0; k < count; ++k) {
            mass += row[k] * s[head[k]];
            y[head[k]] += row[k] * own;
        }
        y[u] += mass;
    }
}

INLINE double total(const double *values, int64_t count) {
    Row found = row_of(0.0);
    int64_t k = 0;
    for (; k + EIGHT <= count; k += EIGHT) found = found + load(values + k);
    double rest = 0.0;
    for (; k < count; ++k) rest += values[k];
    return sum(found) + rest;
}

struct Extent {
    double low, high;
};

inline Extent extent(const double *score, int64_t live) {
    if (live == 0) return {0.0, 0.0};
    Row low = row_of(score[0]), high = low;
    int64_t e = 0;
    for (; e + EIGHT <= live; e += EIGHT) {
        low = smaller(low, load(score + e));
        high = larger(high, load(score + e));
    }
    Extent found{smallest(low), largest(high)};
    for (; e < live; ++e) found = {smaller(found.low, score[e]), larger(found.high, score[e])};
    return found;
}

// The nodes' arrays of one call, of whole eights, and edges' arrays that only some steps need.
// `tail` is 1 for nodes that have edges as tails, else 0, and 2 beyond the last node; `loose` is 1
// for nodes that may stay single.
struct Work {
    double *x, *s, *y, *slope, *move;                                     // of scaling
    double *p, *d, *q, *z, *other, *likely, *gap, *ground, *old, *right;  // of Newton's systems
    double *tail, *loose;
    double *one, *curvature, *cooler, *given;
    int64_t *mate;
    bool *moving;

    Work(const Graph &g, Arena &arena);
};

// One example; c and rho belong to the step in hand.
struct Example {
    const Graph &g;
    double c, rho;
    const double *score;
    double *x, *tau;
};

constexpr int64_t DENSE = 300;  // nodes up to which the nodes' own bounds are minimised, O(n^3)
enum Mode : uint8_t { COLD = 0, SCALED = 1, SENT = 2, RAISED = 3, SPLIT = 4 };

void scale(const Example &given, Work &work, bool cold, double residual, int64_t sweeps,
           double *report);
double dual_value(const Example &at);
double reachable(const double *score, int64_t live, double residual);
void mend(const Graph &g, Work &work, double *tau, const double *centre);
