// Weights that positions share: from weights to scores per position, and back.
#include "tied.h"

#include "lanes.h"

namespace {

// ------------------------------------------------------------------------------- rows of weights

// Eights of a row of scores, side by side, to which rows of weights are added.
template <int ROWS>
struct Sums {
    Row sum[ROWS];

    INLINE void add(const double *weight, double times) {
        for (int k = 0; k < ROWS; ++k)
            sum[k] = add_product(sum[k], load(weight + k * EIGHT), row_of(times));
    }
    INLINE void end(double *to) const {
        for (int k = 0; k < ROWS; ++k) store(to + k * EIGHT, sum[k]);
    }
};

// Rows of `states` weights follow one another: eights that begin in one end in the next, and the
// table's last ones are copied first. What that adds to padded scores means nothing.
template <int ROWS>
void add_rows(const attribute_rows *given, int64_t states, int64_t width, const double *theta,
              double *score) {
    constexpr int64_t SIZE = ROWS * EIGHT;
    const double *end = theta + given->columns * states;
    double some[SIZE];
    for (int64_t i = 0; i < given->positions; ++i, score += width)
        for (int64_t k = 0; k < width; k += SIZE) {
            Sums<ROWS> sums;
            for (int r = 0; r < ROWS; ++r) sums.sum[r] = load(score + k + r * EIGHT);
            for (int64_t e = given->start[i]; e < given->start[i + 1]; ++e) {
                const double *weight = theta + given->index[e] * states + k;
                if (weight + SIZE > end) {
                    for (int64_t j = 0; j < SIZE; ++j) some[j] = weight + j < end ? weight[j] : 0.0;
                    weight = some;
                }
                sums.add(weight, given->value[e]);
            }
            sums.end(score + k);
        }
}

template <int ROWS>
INLINE void score_rows(const shared_weights *given, int64_t i, int64_t k, const double *dense,
                       double *score) {
    Sums<ROWS> sums;
    const Row states = row_of(static_cast<double>(given->states));
    for (int r = 0; r < ROWS; ++r) {
        const Row lane = counted_from(static_cast<double>(k + r * EIGHT));
        sums.sum[r] = select(lane < states, row_of(0.0), row_of(-INF));
    }
    for (int64_t e = given->start[i]; e < given->start[i + 1]; ++e)
        sums.add(dense + given->row[e] * given->width + k, given->times[e]);
    sums.end(score + i * given->width + k);
}

}  // namespace

void add_weights(const attribute_rows *given, int64_t states, int64_t width, const double *theta,
                 double *score) {
    if (width % (2 * EIGHT) == 0)
        add_rows<2>(given, states, width, theta, score);
    else
        add_rows<1>(given, states, width, theta, score);
}

void add_some_weights(const attribute_rows *given, int64_t, const int64_t *first,
                      const int64_t *label, const double *theta, int64_t width, double *score) {
    for (int64_t i = 0; i < given->positions; ++i, score += width)
        for (int64_t e = given->start[i]; e < given->start[i + 1]; ++e) {
            const int64_t a = given->index[e];
            for (int64_t w = first[a]; w < first[a + 1]; ++w)
                score[label[w]] = add_product(score[label[w]], given->value[e], theta[w]);
        }
}

void score_positions(const shared_weights *given, const double *theta, const double *dense,
                     double *score) {
    const int64_t width = given->width;
    for (int64_t i = 0; i < given->positions; ++i) {
        int64_t k = 0;
        for (; k + 2 * EIGHT <= width; k += 2 * EIGHT) score_rows<2>(given, i, k, dense, score);
        if (k < width) score_rows<1>(given, i, k, dense, score);
    }
    // One by one at last: a row that is read as eights soon after one number was written waits.
    for (int64_t i = 0; i < given->positions; ++i, score += width)
        for (int64_t e = given->first[i]; e < given->first[i + 1]; ++e) {
            double &to = score[given->state[e]];
            to = add_product(to, given->some[e], theta[given->weight[e]]);
        }
}

void sum_positions(const shared_weights *given, const double *score, double *dense, double *theta) {
    const int64_t width = given->width;
    for (int64_t i = 0; i < given->positions; ++i, score += width) {
        for (int64_t e = given->start[i]; e < given->start[i + 1]; ++e) {
            double *to = dense + given->row[e] * width;
            const Row times = row_of(given->times[e]);
            for (int64_t k = 0; k < width; k += EIGHT)
                store(to + k, add_product(load(to + k), load(score + k), times));
        }
        for (int64_t e = given->first[i]; e < given->first[i + 1]; ++e) {
            double &to = theta[given->weight[e]];
            to = add_product(to, given->some[e], score[given->state[e]]);
        }
    }
}
