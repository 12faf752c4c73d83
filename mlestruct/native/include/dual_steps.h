// What all steps of Frank-Wolfe share: lines through the dual objective, and moves along them.
#pragma once

#include "../frank_wolfe.h"
#include "lanes.h"

inline double within(double x, double low, double high) { return smaller(larger(x, low), high); }

// phi(gamma) = R*(r - gamma change) + linear gamma - weight H(t + gamma dt), where H has `size`
// terms -a t log t, filled up with zeros to whole eights; `change` is on the weights `column`.
// Under a ridge <theta, change> is affine in gamma: `linear` holds it, `quadratic` its slope.
struct Line {
    const dual_point &x;
    double linear, quadratic, weight;
    int64_t wide;
    const int64_t *column;
    const double *change;
    int64_t size;
    double *a, *t, *dt;

    void add(double coefficient, double at, double step) {
        a[size] = coefficient, t[size] = at, dt[size] = step;
        ++size;
    }
    // The gamma in [0, most] that minimises phi, and phi'(0).
    double search(double most, double *slope_at_0);
};

// Room to work in, as large as the largest of some blocks needs it. `delta` is a direction, zero
// except at the first so many coordinates of `place`; `change` its moments, on the weights
// `column`.
struct Room {
    Arena arena;
    double *delta, *change, *a, *t, *dt, *theta, *score, *up, *down;
    int64_t *place, *column;

    Room(const dual_problem &p, int64_t count, const int64_t *order, int64_t cap);
};

struct Moved {
    double gamma, decrease;
};

struct Steps {
    const dual_problem &p;
    const dual_point &x;
    Room &s;

    Steps(const dual_point &point, Room &room) : p(*point.p), x(point), s(room) {}

    // Add the entropy's terms along s.delta to a line, times `factor`; return the bias's part of
    // phi'.
    double collect(int64_t m, int64_t count, double factor, Line &line) const;
    // Exact step along s.delta (on s.place) and s.change (on s.column). A given gamma >= 0 replaces
    // the line search (the papers' fixed steps). The decrease is the trapezoid's, at most twice and
    // at least half the truth at an interior minimum.
    Moved move(int64_t m, double most, int64_t count, int64_t wide, double gamma) const;
    // theta follows r on these weights.
    void refresh_weights(const int64_t *column, int64_t wide) const;
};
