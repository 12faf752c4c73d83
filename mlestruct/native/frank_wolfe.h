// Frank-Wolfe on a dual objective: slopes, exact steps, and active sets.
#pragma once
#include "kernel.h"

extern "C" {
/** The dual of a batch. Block m owns coordinates and columns offsets[m], column_start[m] onwards.

Mixed views are rows of C tau + c0, with entropy coefficients ``mixed``; ``flat`` says that all
coefficients are 0. ``terms`` holds lambda, prior, l1, lower and upper bounds of the weights; a
ridge needs the first two only. */
struct dual_problem {
    int64_t blocks;
    int64_t size;
    int64_t views;
    int64_t entries;
    int64_t columns;
    int64_t weights;
    const int64_t *offsets N(blocks + 1);
    const double *weight N(blocks);
    const double *bias N(size);
    const double *a N(size);
    const double *b N(size);
    const int64_t *start N(blocks + 1) BELOW(views + 1);
    const int64_t *ptr N(views + 1) BELOW(entries + 1);
    const int64_t *index N(entries) BELOW(size);
    const double *value N(entries);
    const double *c0 N(views);
    const double *mixed N(views);
    const int64_t *column_start N(blocks + 1) BELOW(columns + 1);
    const int64_t *column N(columns) BELOW(weights);
    bool ridge;
    bool flat;
    double *terms N(5 * weights);
};

/** A point tau, its slopes, the residual moments r and the weights theta.

``smooth`` and ``rough`` are slopes of bias and entropy, of coordinates and of mixed views;
``stiff`` is curvature, ``held`` entropy per coordinate. With active sets ``known`` counts the atoms
of every block, and what else tau is of is its base, of the weight ``rest``: the interior point,
whose share of the base is ``interior``, and what was merged into it. ``moment`` is the base's, and
without active sets tau's. */
struct dual_point {
    const struct dual_problem *p;
    double *tau N(p.size);
    double *smooth N(p.size);
    double *rough N(p.size);
    double *stiff N(p.size);
    double *held N(p.size);
    double *r N(p.weights);
    double *theta N(p.weights);
    double *moment N(p.columns);
    int64_t *known N(p.blocks);
    double *base N(p.size);
    double *rest N(p.blocks);
    double *interior N(p.blocks);
};

/** Bounded active sets: every block's known vertices with their moments and weights. */
struct active_sets;

/** Blocks in their order, and the number ``now`` of the round.

The interior point keeps the weight ``floor``. A block takes ``more`` steps for as many vertices as
it has coordinates. */
struct step_turn {
    int64_t count;
    const int64_t *order N(count);
    int64_t now;
    double floor;
    int64_t more;
};

/** Work out all slopes and weights from tau and r. */
EXPORT void refresh_slopes(const struct dual_point *x);
/** Write bias and entropy slopes at (1 - share) tau + share u; and per block H(tau) + <bias, tau>,
then how much a tangent taken there overestimates: H(at) + <dH(at), tau - at> - H(tau) >= 0. */
EXPORT void tangent_slopes(const struct dual_point *x, double share, const double *u N(x.p.size),
                           double *at N(x.p.size), double *slope N(x.p.size),
                           double *energy N(2 * x.p.blocks));
/** Write per block <score, vertex>, <score, tau> and the vertex's views weighed by |a|. */
EXPORT void reach_vertices(const struct dual_point *x, const double *score N(x.p.size),
                           const double *vertices N(x.p.size), double *out N(3 * x.p.blocks));
/** Step every block's tau towards its vertex, by gamma, or exactly where that is negative. */
EXPORT status step_plainly(const struct dual_point *x, int64_t count,
                           const int64_t *order N(count) BELOW(x.p.blocks),
                           const double *vertices N(x.p.size), const double *moments N(x.p.columns),
                           double gamma);
/** Step all of tau towards the vertices, by gamma, or exactly and at most -gamma if negative.

``change`` is what r loses on the whole way. Write the step taken; slopes and r stay as they were.
*/
EXPORT status step_jointly(const struct dual_point *x, const double *vertices N(x.p.size),
                           const double *change N(x.p.weights), double gamma, double *taken N(1));
/** Make active sets of at most ``cap`` vertices, whose moments are kept sparse or whole. */
EXPORT struct active_sets *active_sets_new(const struct dual_point *x, int64_t cap, bool sparse);
EXPORT void active_sets_free(struct active_sets *sets);
/** Make these blocks' vertices atoms and step towards them, once; write what that gains. */
EXPORT status step_towards(const struct dual_point *x, struct active_sets *sets,
                           const struct step_turn *turn, const double *vertices N(x.p.size),
                           const double *moments N(x.p.columns), double *gained N(1));
/** Take pairwise steps between known atoms, for so many passes while one gains enough.

``gained`` is the gain of the round's new vertices, by which that is judged. */
EXPORT status step_among(const struct dual_point *x, struct active_sets *sets,
                         const struct step_turn *turn, int64_t passes, double gained);
/** Note a joint step of size gamma: every weight shrinks, the new vertices get gamma. */
EXPORT status scale_atoms(const struct dual_point *x, struct active_sets *sets,
                          const double *vertices N(x.p.size), const double *moments N(x.p.columns),
                          int64_t now, double gamma);
/** Work out tau from the atoms, whose weights are made to sum to 1. */
EXPORT void rebuild_point(const struct dual_point *x, struct active_sets *sets);
/** Add every block's vertex in this slot to zeros, and write its weight, stiffness and last use. */
EXPORT void read_slot(const struct dual_point *x, struct active_sets *sets, int64_t slot,
                      double *vertices N(x.p.size), double *numbers N(3 * x.p.blocks));
/** Put every block's vertex into this slot, if the block knows so many, as it was read. */
EXPORT status write_slot(const struct dual_point *x, struct active_sets *sets, int64_t slot,
                         const double *vertices N(x.p.size), const double *moments N(x.p.columns),
                         const double *numbers N(3 * x.p.blocks));
}
