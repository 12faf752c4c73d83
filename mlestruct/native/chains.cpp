// Forward-backward and Viterbi on chains, with states side by side in rows of eight.
//
// With weights w_t(j) = exp(score - its largest) and tables P_t = exp(scores - their largest), both
// passes are products of a vector and a table, scaled so that every forward message sums to one:
//
//     alpha_t(j) = w_t(j) * sum over i of alpha_{t-1}(i) P_t(i, j) / norm_t
//     beta_{t-1}(i) = sum over j of P_t(i, j) w_t(j) beta_t(j) / norm_t
//
// Then alpha_t(j) beta_t(j) are marginals, alpha_{t-1}(i) P_t(i, j) w_t(j) beta_t(j) / norm_t those
// of pairs, and log Z is the sum of all log norm_t and of what was taken off (Rabiner 1989,
// section V.A).
#include "chains.h"

#include "lanes.h"

namespace {

// Where messages are scaled a position late, what underflowed counts for itself times the largest
// number of the way back.
constexpr double FAINT = 1e-60;

// The sum of logarithms of numbers, padded by ones to whole eights.
double sum_of_logs(const double *numbers, int64_t count) {
    Row total = row_of(0.0);
    for (int64_t t = 0; t < count; t += EIGHT) total = total + logarithm(load(numbers + t));
    return sum(total);
}

// ------------------------------------------------------------------- chains with one table for all

// Messages of one direction: row t is made from the row before it and scaled by it.
struct Messages {
    const double *table;  // exponentials, rows padded with zeros
    double *row, *norm;   // w times what came, not yet scaled; its sum
};

// Both directions run side by side, so that neither waits for its own products. With what came
// forwards before it was weighted, p, and u = w * beta backwards, p(j) u(j) / sum(p u) are
// marginals, and alpha(i) P(i, j) u(j) / sum(p u) those of pairs.
struct Tied {
    const sequences *given;
    double *node;  // scores of one sequence, their exponentials, then marginals
    Messages ahead, behind;
    double *came, *spare;  // p of every position; the same backwards, which nobody needs
    double *pair;          // the sum over sequences of alpha * u / sum(p u)

    // Exponentials of all scores, the largest of each position made one; return the sum of those,
    // NaN if a score is.
    double weigh(int64_t length) {
        const int64_t width = given->width;
        double total = 0.0;
        Bits unknown = bits(0);
        for (int64_t t = 0; t < length; ++t) {
            double *here = node + t * width;
            Row most = load(here);
            for (int64_t k = EIGHT; k < width; k += EIGHT) most = larger(most, load(here + k));
            const double top = largest(most);
            for (int64_t k = 0; k < width; k += EIGHT) {
                const Row x = load(here + k);
                unknown = unknown | (x != x);
                store(here + k, exponential(x - top));
            }
            total += top;
        }
        return any(unknown) ? __builtin_nan("") : total;
    }

    template <int ROWS>
    INLINE Row pass_on(const Messages &m, int64_t from, int64_t to, int64_t k, double *plain) {
        const int64_t width = given->width, at = to * width + k;
        Row sums[ROWS], mass = row_of(0.0);
        multiply<ROWS>(m.row + from * width, given->states, m.table + k, width, sums);
        const Row by = row_of(1.0 / m.norm[from]);
        for (int r = 0; r < ROWS; ++r) {
            const Row p = sums[r] * by, x = p * load(node + at + r * EIGHT);
            store(plain + k + r * EIGHT, p);
            store(m.row + at + r * EIGHT, x);
            mass = mass + x;
        }
        return mass;
    }

    INLINE void pass(const Messages &m, int64_t from, int64_t to, double *plain) {
        Row mass = row_of(0.0);
        int64_t k = 0, left = given->width / EIGHT;
        for (; left > 3; left -= 2, k += 2 * EIGHT) mass = mass + pass_on<2>(m, from, to, k, plain);
        if (left == 1) mass = mass + pass_on<1>(m, from, to, k, plain);
        if (left == 2) mass = mass + pass_on<2>(m, from, to, k, plain);
        if (left == 3) mass = mass + pass_on<3>(m, from, to, k, plain);
        m.norm[to] = sum(mass);
    }

    void start(const Messages &m, int64_t t, double *plain) {
        Row mass = row_of(0.0);
        for (int64_t k = 0, at = t * given->width; k < given->width; k += EIGHT, at += EIGHT) {
            store(plain + k, row_of(1.0));
            store(m.row + at, load(node + at));
            mass = mass + load(node + at);
        }
        m.norm[t] = sum(mass);
    }

    // Marginals times `weight`; return log Z, NaN where digits fail.
    double solve(int64_t length, double weight) {
        const int64_t width = given->width, last = length - 1;
        double total = weigh(length);
        start(ahead, 0, came);
        start(behind, last, spare);
        for (int64_t t = 1; t < length; ++t) {
            pass(ahead, t - 1, t, came + t * width);
            pass(behind, last - t + 1, last - t, spare);
        }
        for (int64_t t = 0; t < length; ++t) {
            double *p = came + t * width, *u = behind.row + t * width,
                   *alpha = ahead.row + t * width;
            Row mass = row_of(0.0);
            for (int64_t k = 0; k < width; k += EIGHT)
                mass = add_product(mass, load(p + k), load(u + k));
            const double met = sum(mass), factor = weight / met, by = 1.0 / ahead.norm[t];
            for (int64_t k = 0; k < width; k += EIGHT) {
                const Row x = load(u + k) * factor;
                store(u + k, x);
                store(node + t * width + k, load(p + k) * x);
                store(alpha + k, load(alpha + k) * by);
            }
            const double least = smaller(ahead.norm[t], behind.norm[t]);
            if (!(least > FAINT && met > FAINT)) return __builtin_nan("");
        }
        for (int64_t i = 0; i < given->states; i += FOUR)
            for (int64_t k = 0; k < width; k += EIGHT) add_pairs(length, i, k);
        for (int64_t t = length; t < whole_eights(length); ++t) ahead.norm[t] = 1.0;
        return total + sum_of_logs(ahead.norm, length);
    }

    // Sum alpha(i) u(k) / sum(p u) over a sequence for four states i and eight states k.
    static constexpr int FOUR = 4;
    INLINE void add_pairs(int64_t length, int64_t i, int64_t k) {
        const int64_t width = given->width;
        double *to = pair + i * width + k;
        Row sums[FOUR];
        for (int r = 0; r < FOUR; ++r) sums[r] = load(to + r * width);
        for (int64_t t = 1; t < length; ++t) {
            const double *alpha = ahead.row + (t - 1) * width + i;
            const Row u = load(behind.row + t * width + k);
            for (int r = 0; r < FOUR; ++r) sums[r] = add_product(sums[r], u, row_of(alpha[r]));
        }
        for (int r = 0; r < FOUR; ++r) store(to + r * width, sums[r]);
    }
};

int64_t longest(const sequences &given) {
    int64_t found = 0;
    for (int64_t m = 0; m < given.count; ++m)
        found = given.start[m + 1] - given.start[m] > found ? given.start[m + 1] - given.start[m]
                                                            : found;
    return found;
}

// ------------------------------------------------------------------------------------ best labels

// Add to every score the largest values[j] + (its entry of row j of the table).
template <int ROWS>
INLINE void add_best(const double *values, int64_t count, const double *table, int64_t step,
                     double *score) {
    Row best[ROWS];
    for (int k = 0; k < ROWS; ++k) best[k] = row_of(-INF);
    for (int64_t j = 0; j < count; ++j) {
        const Row value = row_of(values[j]);
        for (int k = 0; k < ROWS; ++k)
            best[k] = larger(best[k], load(table + j * step + k * EIGHT) + value);
    }
    for (int k = 0; k < ROWS; ++k) store(score + k * EIGHT, load(score + k * EIGHT) + best[k]);
}

// Viterbi's recursion from the last position to the first; on the way back the best next label is
// found again.
struct Labels {
    const sequences *given;
    const double *pair;  // label, next label
    double *turned;      // next label, label; padded rows

    void score_labels(const double *next, double *score) const {
        int64_t k = 0;
        const int64_t width = given->width;
        for (; k + 2 * EIGHT <= width; k += 2 * EIGHT)
            add_best<2>(next, given->states, turned + k, width, score + k);
        if (k < width) add_best<1>(next, given->states, turned + k, width, score + k);
    }

    // Return the first j of the largest score[j], after more[j] was added.
    int64_t choose(const double *score, const double *more) const {
        int64_t chosen = 0;
        double best = -INF;
        for (int64_t j = 0; j < given->states; ++j) {
            const double value = more ? more[j] + score[j] : score[j];
            chosen = value > best ? j : chosen;
            best = larger(value, best);
        }
        return chosen;
    }

    bool solve(double *node, int64_t length, int64_t *label) const {
        const int64_t width = given->width;
        for (int64_t i = length - 2; i >= 0; --i) {
            double *here = node + i * width;
            score_labels(here + width, here);
        }
        label[0] = choose(node, nullptr);
        const double best = node[label[0]];
        if (!(best > -INF && best < INF)) return false;
        for (int64_t i = 1; i < length; ++i)
            label[i] = choose(node + i * width, pair + label[i - 1] * given->states);
        return true;
    }
};

}  // namespace

int64_t tied_marginals(const sequences *given, const double *weight, double top,
                       const double *moves, double *node, double *log_z, double *pair) {
    const int64_t states = given->states, width = given->width, most = longest(*given);
    Arena arena;
    double *forth = arena.array<double>(states * width, 0.0);
    double *back = arena.array<double>(states * width, 0.0);
    Tied t{};
    t.given = given;
    t.ahead = {forth, arena.array<double>(most * width), arena.array<double>(whole_eights(most))};
    t.behind = {back, arena.array<double>(most * width), arena.array<double>(whole_eights(most))};
    t.came = arena.array<double>(most * width);
    t.spare = arena.array<double>(width);
    t.pair = arena.array<double>(width * width, 0.0);
    if (arena.failed) return NO_MEMORY;
    for (int64_t i = 0; i < states; ++i)
        for (int64_t j = 0; j < states; ++j)
            forth[i * width + j] = back[j * width + i] = moves[i * states + j];
    for (int64_t m = 0; m < given->count; ++m) {
        const int64_t length = given->start[m + 1] - given->start[m];
        t.node = node + given->start[m] * width;
        log_z[m] = t.solve(length, weight[m]) + static_cast<double>(length - 1) * top;
        if (!(log_z[m] > -INF && log_z[m] < INF)) return 0;
    }
    for (int64_t i = 0; i < states; ++i)
        for (int64_t j = 0; j < states; ++j)
            pair[i * states + j] = t.pair[i * width + j] * moves[i * states + j];
    return 1;
}

int64_t label_sequences(const sequences *given, double *node, const double *pair, int64_t *label) {
    const int64_t states = given->states, width = given->width;
    Arena arena;
    Labels labels{given, pair, arena.array<double>(states * width, 0.0)};
    if (arena.failed) return NO_MEMORY;
    for (int64_t j = 0; j < states; ++j)
        for (int64_t k = 0; k < states; ++k) labels.turned[j * width + k] = pair[k * states + j];
    for (int64_t m = 0; m < given->count; ++m) {
        const int64_t first = given->start[m];
        if (!labels.solve(node + first * width, given->start[m + 1] - first, label + first))
            return 0;
    }
    return 1;
}

void score_positions(const shared_weights *given, const double *theta, const double *dense,
                     double *score) {
    const int64_t width = given->width;
    for (int64_t i = 0; i < given->positions; ++i)
        for (int64_t k = 0; k < width; k += EIGHT) {
            Row found = row_of(0.0);
            for (int64_t e = given->start[i]; e < given->start[i + 1]; ++e)
                found = add_product(found, load(dense + given->row[e] * width + k),
                                    row_of(given->times[e]));
            store(score + i * width + k, found);
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
