// Frank-Wolfe on a dual objective: slopes, atoms, exact steps, and answers of other examples.
#pragma once
#include "kernel.h"

extern "C" {
/** The dual of a batch. Block m owns coordinates and columns offsets[m], column_start[m] onwards.

Mixed views are rows of C tau + c0, with entropy coefficients ``mixed``. ``terms`` holds lambda,
prior, l1, lower and upper bounds of the weights; a ridge needs the first two only. */
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
    double *terms N(5 * weights);
};

/** A point tau, its slopes, the residual moments r and the weights theta.

``smooth`` and ``rough`` are slopes of bias and entropy, of coordinates and of mixed views;
``stiff`` is curvature, ``held`` entropy per coordinate. ``moment`` is of plain steps only. */
struct dual_point {
    int64_t size;
    int64_t weights;
    int64_t columns;
    double *tau N(size);
    double *smooth N(size);
    double *rough N(size);
    double *stiff N(size);
    double *held N(size);
    double *r N(weights);
    double *theta N(weights);
    double *moment N(columns);
};

/** Room to work in, as large as the largest block: of its coordinates, columns, terms and atoms.

``delta`` is a direction, zero except at the first so many coordinates of ``place``; ``change`` its
moments, on the weights ``column``. Terms are whole eights. */
struct step_room {
    int64_t block;
    int64_t width;
    int64_t eights;
    int64_t cap;
    double *delta N(block);
    int64_t *place N(block);
    int64_t *column N(width);
    double *change N(width);
    double *a N(8 * eights);
    double *t N(8 * eights);
    double *dt N(8 * eights);
    double *theta N(width);
    double *score N(cap);
    double *up N(cap);
    double *down N(cap);
};

/** What steps work on. */
struct dual_iterate {
    const struct dual_problem *p;
    const struct dual_point *x;
    const struct step_room *s;
};

/** A row per slot: ``length`` entries from start[m] + slot width[m] on, at places that ascend.

Rows without places are dense, all of the block's. Rows without amounts are ones, as outcomes are:
four bytes an entry, since scoring waits for memory. */
struct atom_rows {
    int64_t blocks;
    int64_t cap;
    int64_t places;
    int64_t amounts;
    const int64_t *start N(blocks + 1);
    const int64_t *width N(blocks);
    int64_t *length N(blocks * cap);
    int32_t *place N(places);
    double *amount N(amounts);
};

/** Bounded active sets: every block's known vertices, their weights, and a base.

Slots 0 to known - 1 hold vertices, some of weight 0, kept to be used again. The base is the interior
point, whose share ``interior`` says, and what was merged into it. */
struct atom_set {
    int64_t blocks;
    int64_t cap;
    int64_t size;
    int64_t columns;
    const struct atom_rows *vertex;
    const struct atom_rows *moment;
    int64_t *known N(blocks);
    double *weight N(blocks * cap);
    double *stiff N(blocks * cap);
    int64_t *used N(blocks * cap);
    int64_t *tag N(blocks * cap);
    double *base N(size);
    double *base_moment N(columns);
    double *rest N(blocks);
    double *interior N(blocks);
};

/** Products of the moments of a block's slots, in the metric 1 / lambda, where both have ``tag``. */
struct atom_products {
    int64_t blocks;
    int64_t cap;
    int64_t *tag N(blocks * cap);
    double *product N(blocks * cap * cap);
};

/** Blocks in their order, and at most so many passes over them while one gains ``least``.

The interior point keeps the weight ``floor``. A block takes ``more`` steps for as many vertices as
it has coordinates. */
struct step_turn {
    int64_t count;
    const int64_t *order N(count);
    int64_t now;
    double floor;
    int64_t more;
    int64_t passes;
    double least;
};

/** phi(gamma) = R*(r - gamma change) + linear gamma - weight H(t + gamma dt).

H has the terms of ``a``, filled up with zeros to whole eights; ``change`` is on the weights
``column``. Under a ridge <theta, change> is affine: ``linear`` holds it, ``quadratic`` its slope. */
struct step_line {
    double linear;
    double quadratic;
    double weight;
    bool ridge;
    int64_t weights;
    const double *r N(weights);
    const double *terms N(5 * weights);
    int64_t wide;
    const int64_t *column N(wide) BELOW(weights);
    const double *change N(wide);
    int64_t eights;
    const double *a N(8 * eights);
    const double *t N(8 * eights);
    const double *dt N(8 * eights);
};

/** The examples of one structure each: member[first[m]] onwards; m stands at ``place`` there.

An example looks at ``near`` of them at most. */
struct answer_kin {
    int64_t blocks;
    int64_t members;
    int64_t near;
    const int64_t *offsets N(blocks + 1);
    const int64_t *member N(members) BELOW(blocks);
    const int64_t *first N(blocks) BELOW(members + 1);
    const int64_t *size N(blocks) BELOW(members + 1);
    const int64_t *place N(blocks);
};

/** Answers of rounds, the oldest first; row r * blocks + m is example m's answer of round r. */
struct known_answers {
    int64_t rows;
    int64_t entries;
    const int64_t *start N(rows + 1) BELOW(entries + 1);
    const int64_t *where N(entries);
    const double *amount N(entries);
};

/** Work out all slopes and weights from tau and r. */
EXPORT void refresh_slopes(const struct dual_problem *p, const struct dual_point *x);
/** Write bias and entropy slopes at (1 - share) tau + share u; and per block H(tau) + <bias, tau>,
then how much a tangent taken there overestimates: H(at) + <dH(at), tau - at> - H(tau) >= 0. */
EXPORT void tangent_slopes(const struct dual_problem *p, const struct dual_point *x, double share,
                           const double *u N(p.size), double *at N(p.size),
                           double *slope N(p.size), double *energy N(2 * p.blocks));
/** Write per block <score, vertex>, <score, tau> and the vertex's views weighed by |a|. */
EXPORT void reach_vertices(const struct dual_problem *p, const double *score N(p.size),
                           const double *vertices N(p.size), const double *tau N(p.size),
                           double *out N(3 * p.blocks));
/** Write phi'(gamma) and phi''(gamma). */
EXPORT void line_slopes(const struct step_line *line, double gamma, double *out N(2));
/** Return the gamma in [0, most] that minimises phi; it is ``most`` where phi'(most) <= 0. */
EXPORT double search_line(const struct step_line *line, double most);
/** Step every block's tau towards its vertex, by gamma, or exactly where that is negative. */
EXPORT void step_plainly(const struct dual_iterate *iterate, int64_t count,
                         const int64_t *order N(count) BELOW(iterate.p.blocks),
                         const double *vertices N(iterate.p.size),
                         const double *moments N(iterate.p.columns), double gamma);
/** Make these blocks' vertices atoms and step towards them, once; return what that gains. */
EXPORT double step_towards(const struct dual_iterate *iterate, const struct atom_set *atoms,
                           const struct step_turn *turn, const double *vertices N(iterate.p.size),
                           const double *moments N(iterate.p.columns));
/** Pairwise steps between known atoms. */
EXPORT void step_among(const struct dual_iterate *iterate, const struct atom_set *atoms,
                       const struct step_turn *turn);
/** The same without entropy and under a ridge: a quadratic program per block. */
EXPORT void step_quadratically(const struct dual_iterate *iterate, const struct atom_set *atoms,
                               const struct atom_products *products,
                               const struct step_turn *turn);
/** Note a joint step of size gamma: every weight shrinks, the new vertices get gamma. */
EXPORT void scale_atoms(const struct dual_problem *p, const struct atom_set *atoms,
                        const double *vertices N(p.size), const double *moments N(p.columns),
                        int64_t now, double gamma);
/** Work out tau from the atoms, whose weights are made to sum to 1. */
EXPORT void rebuild_point(const struct dual_problem *p, const struct atom_set *atoms,
                          double *tau N(p.size));
/** Write the answer that is best for each example, if better than tau, and by how much. */
EXPORT void best_of_kin(const struct answer_kin *kin, const struct known_answers *known,
                        const double *score N(kin.offsets[-1]),
                        const double *tau N(kin.offsets[-1]), double *found N(kin.offsets[-1]),
                        double *gain N(kin.blocks));
}
