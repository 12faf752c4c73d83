// Tables made to agree exactly with node marginals: proportional fitting, then rounding.
//
// Fitting scales the axes of a table in turn until its marginals are those of its nodes (Deming and
// Stephan 1940). What is left after that is moved, not scaled (Altschuler, Weed and Rigollet 2017):
// shrink until no marginal is too large, then add a product of what each still lacks.
#include "factors.h"

namespace {

constexpr int64_t FITS = 200, FIRST = 20;
constexpr double FIT_TOL = 1e-15, LACK = 1e-16;
constexpr double SMALLEST = 1e-300;  // below, quotients may be infinite, and logarithms wrong

// One axis of a table: the states of a slot, `stride` entries apart.
struct Axis {
    double *table;
    int64_t entries, stride, cards;

    void marginal(double *out) const {
        for (int64_t k = 0; k < cards; ++k) out[k] = 0.0;
        for (const double *at = table; at < table + entries; at += stride * cards)
            for (int64_t k = 0; k < cards; ++k)
                for (int64_t x = 0; x < stride; ++x) out[k] += at[k * stride + x];
    }
    void scale(const double *by) const {
        for (double *at = table; at < table + entries; at += stride * cards)
            for (int64_t k = 0; k < cards; ++k)
                for (int64_t x = 0; x < stride; ++x) at[k * stride + x] *= by[k];
    }
};

Axis axis(const Factor &factor, int64_t s, double *tau) {
    return {tau + factor.entry, factor.entries, factor.g.stride[s], factor.cards(s)};
}

}  // namespace

// Return the largest difference that there was between a table's marginal and its node's.
double Repair::fit_all(double *tau) const {
    double apart = 0.0;
    for (int64_t f = 0; f < g.factors; ++f) apart = larger(fit(f, tau), apart);
    return apart;
}

double Repair::fit(int64_t f, double *tau) const {
    const Factor factor(g, f, state);
    double before = INF, first = 0.0;
    for (int64_t turn = 0; turn < FITS; ++turn) {
        double worst = 0.0;
        for (int64_t s = factor.first; s < factor.last; ++s) {
            const double *want = tau + factor.node(s);
            const Axis along = axis(factor, s, tau);
            along.marginal(sums);
            for (int64_t k = 0; k < along.cards; ++k) {
                worst = larger(__builtin_fabs(sums[k] - want[k]), worst);
                sums[k] = sums[k] > SMALLEST ? want[k] / sums[k] : 0.0;
            }
            along.scale(sums);
        }
        if (turn == 0) first = worst;
        if (worst <= FIT_TOL || (turn > FIRST && worst > 0.9 * before)) break;
        before = worst;
    }
    round(f, tau);
    return first;
}

void Repair::round(int64_t f, double *tau) const {
    Factor factor(g, f, state);
    for (int64_t s = factor.first; s < factor.last; ++s) {
        const double *want = tau + factor.node(s);
        const Axis along = axis(factor, s, tau);
        along.marginal(sums);
        for (int64_t k = 0; k < along.cards; ++k)
            sums[k] = sums[k] > want[k] ? want[k] / sums[k] : 1.0;
        along.scale(sums);
    }
    for (int64_t s = factor.first; s < factor.last; ++s) {
        const double *want = tau + factor.node(s);
        double *lacking = sums + factor.at(s), lack = 0.0;
        const Axis along = axis(factor, s, tau);
        along.marginal(lacking);
        for (int64_t k = 0; k < along.cards; ++k) {
            lacking[k] = larger(want[k] - lacking[k], 0.0);
            lack += lacking[k];
        }
        if (lack <= LACK) return;
        if (s > factor.first)
            for (int64_t k = 0; k < along.cards; ++k) lacking[k] /= lack;
    }
    for (int64_t k = 0; k < factor.entries; ++k, factor.next())
        tau[factor.entry + k] += factor.times(1.0, sums);
}

// <score, tau> - sum a tau log tau: below the surrogate's maximum by the square of tau's error.
double Repair::value(const double *score, const double *tau) const {
    const int64_t size = g.table_start[g.factors];
    const double *a = g.coefficient;
    const Row zero = row_of(0.0), least = row_of(SMALLEST);
    Row rows = zero;
    int64_t k = 0;
    for (; k + EIGHT <= size; k += EIGHT) {
        const Row t = load(tau + k);
        const Row worth = t * (load(score + k) - load(a + k) * logarithm(larger(t, least)));
        rows = rows + select(t > zero, worth, zero);
    }
    double found = sum(rows);
    for (; k < size; ++k)
        if (tau[k] > 0.0) found += tau[k] * (score[k] - a[k] * logarithm(larger(tau[k], SMALLEST)));
    return found;
}

double widest_range(const message_graph &g, const double *score) {
    double widest = 0.0;
    for (int64_t f = 0; f < g.factors; ++f) {
        double top = -INF, least = INF;
        for (int64_t k = g.table_start[f]; k < g.table_start[f + 1]; ++k) {
            if (!g.open[k]) continue;
            top = larger(score[k], top);
            least = smaller(score[k], least);
        }
        const double range = (top - least) / g.counts[f];
        widest = range <= widest ? widest : range;  // NaN is wide
    }
    return widest;
}

status fit_tables(const message_graph *graph, double *tau) {
    Arena arena;
    const Repair repair(*graph, Widest(*graph), arena);
    if (arena.failed) return NO_MEMORY;
    repair.fit_all(tau);
    return OK;
}
