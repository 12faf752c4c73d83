// Upper bounds on the surrogate log Z from messages, whether or not they have converged.
//
// -H is convex because c_f = c_ff + sum_i x_fi and c_i = c_ii - sum_f x_fi with nothing negative: H
// is a sum of entropies and of conditional entropies H_f - H_i. Any multipliers for "the tables
// agree" split the maximum into one problem per node and factor, and H_f - H_i is at most
// - sum t_f log q(x_f | x_i) for any q. With q_f = exp(score_f / c_f + sum l_fi), where
// l_fi = log b_i - message_fi, and the multipliers c_f l_fi - x_fi log b_i that leaves
//
//     sum_i c_ii log sum exp(u_i / c_ii)
//       + sum_f c_ff log sum q_f exp(sum_i x_fi log(q_fi / b_i) / c_ff)
//
// with u_i = score_i - sum_f (c_f l_fi - x_fi log b_i), and a maximum in place of a logarithm where
// c is 0. At a fixed point q_fi = b_i, and it is the surrogate's maximum.
#include "factors.h"

namespace {

// c log sum exp(v / c): the maximum of <v, p> + c H(p) over distributions p.
double soft_maximum(const double *values, int64_t count, double c) {
    double top = -INF, mass = 0.0;
    for (int64_t k = 0; k < count; ++k) top = larger(values[k], top);
    if (c <= 0.0) return top;
    for (int64_t k = 0; k < count; ++k) mass += exponential((values[k] - top) / c);
    return top + c * logarithm(mass);
}

struct Bound {
    const message_graph &g;
    const double *score, *message, *belief, *share;
    double *log_marginal;  // of a node, or of all slots of a factor
    double *mass, *values;
    int64_t *state;

    // What example m's messages and beliefs are as two logarithms each, the first of which is 0.
    void from_odds(const double *odds, const double *log, double *sent, double *known) const {
        for (int64_t p = 0; p < g.slots; ++p) {
            double *to = sent + g.place[g.around[p]];
            to[0] = 0.0;
            to[1] = odds[p];
        }
        for (int64_t i = 0; i < g.nodes; ++i) {
            known[2 * i] = 0.0;
            known[2 * i + 1] = log[i];
        }
    }

    double node(int64_t i) const {
        const int64_t first = g.node_start[i], cards = g.node_start[i + 1] - first;
        double own = g.whole[i], paid = 0.0, *u = log_marginal;
        for (int64_t k = 0; k < cards; ++k) u[k] = g.open[first + k] ? score[first + k] : -INF;
        for (int64_t p = g.start[i]; p < g.start[i + 1]; ++p) {
            const int64_t s = g.around[p];
            const double c = g.counts[g.owner[s]];
            own -= c - share[s];
            paid += c - share[s];
            for (int64_t k = 0; k < cards; ++k) u[k] += c * message[g.place[s] + k];
        }
        for (int64_t k = 0; k < cards; ++k)
            if (g.open[first + k]) u[k] -= paid * belief[first + k];
        return soft_maximum(u, cards, own);
    }

    double factor(int64_t f) const {
        Factor here(g, f, state);
        double rest = g.counts[f];
        const int8_t *open = g.open + here.entry;
        for (int64_t s = here.first; s < here.last; ++s) {
            rest -= share[s];
            double *cavity = log_marginal + here.at(s);
            for (int64_t k = 0; k < here.cards(s); ++k)
                cavity[k] = belief[here.node(s) + k] - message[g.place[s] + k];
        }
        for (int64_t k = 0; k < here.entries; ++k, here.next())
            values[k] =
                open[k] ? here.plus(score[here.entry + k] / g.counts[f], log_marginal) : -INF;
        for (int64_t s = here.first; s < here.last; ++s) {
            double *out = log_marginal + here.at(s);
            take_marginal(here, s, out);
            for (int64_t k = 0; k < here.cards(s); ++k)
                out[k] = share[s] * (out[k] - belief[here.node(s) + k]);
        }
        for (int64_t k = 0; k < here.entries; ++k, here.next())
            if (open[k]) values[k] = here.plus(values[k] * larger(rest, 0.0), log_marginal);
        return soft_maximum(values, here.entries, rest);
    }

    // log sum exp(values) for every state of a slot; the factor's states end where they begin.
    void take_marginal(Factor &here, int64_t s, double *out) const {
        const int64_t *now = state + (s - here.first);
        for (int64_t k = 0; k < here.cards(s); ++k) {
            out[k] = -INF;
            mass[k] = 0.0;
        }
        for (int64_t k = 0; k < here.entries; ++k, here.next())
            out[*now] = larger(values[k], out[*now]);
        for (int64_t k = 0; k < here.entries; ++k, here.next())
            if (values[k] > -INF) mass[*now] += exponential(values[k] - out[*now]);
        for (int64_t k = 0; k < here.cards(s); ++k) out[k] += logarithm(mass[k]);
    }

    double total() const {
        double found = 0.0;
        for (int64_t i = 0; i < g.nodes; ++i) found += node(i);
        for (int64_t f = 0; f < g.factors; ++f) found += factor(f);
        return found;
    }
};

}  // namespace

status bound_messages(const message_graph *graph, const message_examples *examples,
                      const message_state *state, const double *share, bool odds, double *bound) {
    const message_graph &g = *graph;
    const Widest widest(g);
    Arena arena;
    Bound b{g, nullptr, nullptr, nullptr, share, nullptr, nullptr, nullptr, nullptr};
    b.log_marginal = arena.array<double>(widest.width + widest.cards);
    b.mass = arena.array<double>(widest.cards);
    b.values = arena.array<double>(widest.table);
    b.state = arena.array<int64_t>(widest.order);
    double *sent = arena.array<double>(odds ? g.place[g.slots] : 0);
    double *known = arena.array<double>(odds ? g.node_start[g.nodes] : 0);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < examples->count; ++m) {
        b.score = examples->score + examples->offset[m];
        b.message = state->message + m * state->messages;
        b.belief = state->belief + m * state->beliefs;
        if (odds && widest_range(g, b.score) <= NARROW) {
            b.from_odds(b.message, b.belief, sent, known);
            b.message = sent;
            b.belief = known;
        }
        bound[m] = b.total();
    }
    return OK;
}
