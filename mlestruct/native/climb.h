// The best mixtures of known answers.
#pragma once
#include "kernel.h"

extern "C" {
/** The entropy -sum a t log t + b s log s with t = x + c0 and s = 1 - x, over views x. */
struct mixture_views {
    int64_t size;
    const double *a N(size);
    const double *b N(size);
    const double *c0 N(size);
};

/** Answers as sparse rows of views; the first is a point in the interior. */
struct answer_pool {
    int64_t count;
    int64_t size;
    int64_t entries;
    const int64_t *start N(count + 1) BELOW(entries + 1);
    const int64_t *place N(entries) BELOW(size);
    const double *amount N(entries);
};

/** Mixtures, a row each: ``live`` of at most ``most`` atoms, which are answers, and their weights;
the views, and the slope of score and entropy there. */
struct mixtures {
    int64_t count;
    int64_t most;
    int64_t size;
    int64_t answers;
    int64_t *atoms N(count * most) BELOW(answers);
    double *weight N(count * most);
    int64_t *live N(count) BELOW(most + 1);
    double *x N(count * size);
    double *slope N(count * size);
};

/** Write every row's best mixture of the pool, for its scores, to where no answer gains ``enough``.

The first atom of every row is the interior point. What a row begins with need not be good. */
EXPORT status climb(const struct mixture_views *views, const struct answer_pool *pool,
                    double enough, const double *score N(rows.count * views.size),
                    const struct mixtures *rows);
}
