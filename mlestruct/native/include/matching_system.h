// Newton's systems of matchings, by conjugate gradients.
#pragma once

#include "matchings.h"

constexpr double FREE = 1e-16;  // of a weight: what its ends have besides is rounding

// (diag(ground) + B diag(weight) B^T) p = right over the nodes' edges B: the signless Laplacian of
// the weights, whose sums by node are `degree`, plus `ground`.
struct System {
    const Graph &g;
    Work &work;
    double *weight;
    const double *degree, *ground;
    const bool *moving;

    // Conjugate gradients, which stop once g^T z of the residual g and its preconditioned z is
    // below the start's times share^2: a share that falls with the error keeps Newton's convergence
    // quadratic. `right`, zero at nodes that do not move, is used up. Return the turns, at
    // most so many.
    //
    // An edge of weight w that is nearly all of both its ends' leaves the direction (1, -1) nearly
    // free. So the preconditioner has a 2 x 2 block for each pair of partners. With a_v = ground_v
    // + the sum of the weights of all other edges at v,
    //
    //     z_u = (a_v g_u + w (g_u - g_v)) / (w (a_u + a_v) + a_u a_v),    z_v likewise,
    //
    // and z_v = g_v / a_v at nodes without a partner. The a_v are sums, never differences of w and
    // a degree, and a product with the matrix takes w (d_u + d_v) by itself: both keep all digits
    // of an a_v that is 1e-15 times w.
    int64_t conjugate(double *r, double *p, double share, int64_t most) const {
        const int64_t n = g.nodes;
        double *d = work.d, *q = work.q, *z = work.z;
        const bool paired = split_off_partners();
        for (int64_t v = 0; v < n; ++v) p[v] = 0.0;
        double rr = precondition(r, z);
        for (int64_t v = 0; v < n; ++v) d[v] = z[v];
        const double goal = larger(share * share, 1e-26) * rr;
        int64_t turns = 0;
        while (rr > goal && rr > 1e-40 && turns < most && turns < 2 * n + 10) {
            ++turns;
            product<true, true>(g, weight, d, q);
            double curve = 0.0;
            for (int64_t v = 0; v < n; ++v) {
                double own = work.other[v] * d[v];
                if (work.mate[v] >= 0) own += work.likely[v] * (d[v] + d[work.mate[v]]);
                q[v] = moving[v] ? q[v] + own : 0.0;
                curve += d[v] * q[v];
            }
            if (!(curve > 1e-15 * rr)) break;
            const double step = rr / curve, before = rr;
            for (int64_t v = 0; v < n; ++v) {
                p[v] += step * d[v];
                r[v] -= step * q[v];
            }
            rr = precondition(r, z);
            for (int64_t v = 0; v < n; ++v) d[v] = z[v] + rr / before * d[v];
        }
        if (paired)
            each_edge(g, [&](int64_t e, int64_t u, int64_t v) {
                if (work.mate[u] == v) weight[e] = work.likely[u];
            });
        return turns;
    }

    // Pair the ends of every edge that is more than half of both, and take its weight out.
    bool split_off_partners() const {
        const int64_t n = g.nodes;
        double least = INF;
        for (int64_t v = 0; v < n; ++v) {
            work.mate[v] = -1;
            work.likely[v] = 0.0;
            work.other[v] = degree[v];
            least = smaller(least, degree[v]);
        }
        const bool paired = 2.0 * extent(weight, g.live).high > least;
        if (paired) {
            each_edge(g, [&](int64_t e, int64_t u, int64_t v) {
                if (2.0 * weight[e] > larger(degree[u], degree[v]) && moving[u] && moving[v]) {
                    work.mate[u] = v;
                    work.mate[v] = u;
                    work.likely[u] = work.likely[v] = weight[e];
                    weight[e] = 0.0;
                }
            });
            product<true, true>(g, weight, work.one, work.other);
        }
        for (int64_t v = 0; v < n; ++v)
            work.other[v] = larger(larger(work.other[v] + ground[v], FREE * work.likely[v]), LEAST);
        return paired;
    }

    // z solves the blocks for r; return r^T z.
    double precondition(const double *r, double *z) const {
        double found = 0.0;
        for (int64_t v = 0; v < g.nodes; ++v) {
            const int64_t u = work.mate[v];
            const double a = work.other[v], w = work.likely[v];
            if (u < 0) {
                z[v] = r[v] / a;
            } else {
                const double b = work.other[u];
                z[v] = (b * r[v] + w * (r[v] - r[u])) / (w * (a + b) + a * b);
            }
            found += r[v] * z[v];
        }
        return found;
    }
};
