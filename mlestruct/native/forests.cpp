// Sum-product on forests in the log domain: one sweep from the leaves up and one back.
//
// A factor sends its parent's states the log sum of its entries with what its other variables'
// states have received; on the way back an entry's marginal is exp(entry + log marginal of the
// parent's state - message) (Koller and Friedman 2009, section 10.2).
#include "forests.h"

#include "lanes.h"

namespace {

constexpr double FEW = 1e-280;       // of the largest entry: sums below have no digits
constexpr double SMALLEST = 1e-307;  // probabilities below are none

struct Forest {
    const forest_shape *shape;
    double *score;    // of node coordinates, with what reached them from below
    double *total;    // log marginals of node coordinates
    double *message;  // of factors to their parents' states
    double *value;    // one factor's entries with what reached its children
    double *mass;     // their exponentials
    bool *reached;    // variables whose marginals are known
    bool is_sound;    // no score is NaN

    const int64_t *states_of(int64_t f) const { return shape->agree + shape->agree_start[f]; }
    // Where the factor's message for node coordinate 0 would be.
    double *message_of(int64_t f) const {
        return message + (shape->choice_start[f] - shape->node_start[shape->parent[f]]);
    }

    void take_values(int64_t f, const double *table) {
        const int64_t arity = shape->arity[f], entries = shape->entries[f];
        const int64_t *states = states_of(f);
        for (int64_t e = 0; e < entries; ++e, states += arity) {
            double found = table[e];
            for (int64_t i = 1; i < arity; ++i) found += score[states[i]];
            value[e] = found;
        }
    }

    // mass = exp(value - shift)
    void take_exponentials(int64_t entries, double shift) {
        for (int64_t e = 0; e < entries; e += EIGHT)
            store(mass + e, exponential(load(value + e) - shift));
    }

    void send_up(int64_t f) {
        const int64_t arity = shape->arity[f], entries = shape->entries[f], v = shape->parent[f];
        const int64_t first = shape->node_start[v], last = shape->node_start[v + 1];
        const int64_t *states = states_of(f);
        double *sent = message_of(f), top = -INF;
        for (int64_t e = 0; e < entries; ++e) {
            top = larger(top, value[e]);
            is_sound &= value[e] == value[e];
        }
        for (int64_t k = first; k < last; ++k) sent[k] = 0.0;
        if (top > -INF) take_exponentials(entries, top);
        for (int64_t e = 0; e < entries && top > -INF; ++e) sent[states[e * arity]] += mass[e];
        for (int64_t k = first; k < last; ++k) {
            const bool fails = sent[k] < FEW;
            sent[k] = fails ? sum_carefully(f, k) : top + logarithm(sent[k]);
            score[k] += sent[k];
        }
    }

    // The log sum of the entries with state k, by the largest of these.
    double sum_carefully(int64_t f, int64_t k) const {
        const int64_t arity = shape->arity[f], entries = shape->entries[f];
        const int64_t *states = states_of(f);
        double top = -INF, found = 0.0;
        for (int64_t e = 0; e < entries; ++e)
            if (states[e * arity] == k) top = larger(top, value[e]);
        if (top == -INF) return top;
        for (int64_t e = 0; e < entries; ++e)
            if (states[e * arity] == k) found += exponential(value[e] - top);
        return top + logarithm(found);
    }

    // Normalise a root's marginals; return its component's log Z.
    double settle_root(int64_t v) {
        const int64_t first = shape->node_start[v], last = shape->node_start[v + 1];
        double top = -INF, found = 0.0;
        for (int64_t k = first; k < last; ++k) {
            top = larger(top, score[k]);
            is_sound &= score[k] == score[k];
        }
        for (int64_t k = first; k < last && top > -INF; ++k) found += exponential(score[k] - top);
        const double norm = top > -INF ? top + logarithm(found) : top;
        for (int64_t k = first; k < last; ++k) total[k] = top > -INF ? score[k] - norm : top;
        reached[v] = true;
        return norm;
    }

    void send_down(int64_t f, double *belief) {
        const int64_t arity = shape->arity[f], entries = shape->entries[f];
        const int64_t *states = states_of(f);
        const double *sent = message_of(f);
        for (int64_t e = 0; e < entries; ++e) {
            const int64_t k = states[e * arity];
            const bool exists = value[e] > -INF && total[k] > -INF;
            value[e] = exists ? value[e] + total[k] - sent[k] : -INF;
        }
        take_exponentials(entries, 0.0);
        std::memcpy(belief, mass, entries * sizeof(double));
        for (int64_t i = 1; i < arity; ++i) settle_child(shape->node_of[states[i]], f, i);
    }

    // Log marginals of a factor's i-th variable.
    void settle_child(int64_t v, int64_t f, int64_t i) {
        const int64_t first = shape->node_start[v], last = shape->node_start[v + 1];
        const int64_t *states = states_of(f);
        double whole = 0.0;
        for (int64_t k = first; k < last; ++k) total[k] = 0.0;
        for (int64_t e = 0; e < shape->entries[f]; ++e)
            total[states[e * shape->arity[f] + i]] += mass[e];
        for (int64_t k = first; k < last; ++k) whole += total[k];
        for (int64_t k = first; k < last; ++k) {
            const double p = total[k] / whole;
            total[k] = p > SMALLEST ? logarithm(p) : -INF;
        }
        reached[v] = true;
    }

    double solve(const double *given, double *tau) {
        const int64_t nodes = shape->node_start[shape->variables];
        double log_z = 0.0;
        is_sound = true;
        std::memcpy(score, given, nodes * sizeof(double));
        for (int64_t f = 0; f < shape->factors; ++f) {
            take_values(f, given + shape->table_start[f]);
            send_up(f);
        }
        for (int64_t v = 0; v < shape->variables; ++v) reached[v] = false;
        for (int64_t f = shape->factors - 1; f >= 0; --f) {
            if (!reached[shape->parent[f]]) log_z += settle_root(shape->parent[f]);
            take_values(f, given + shape->table_start[f]);
            send_down(f, tau + shape->table_start[f]);
        }
        for (int64_t v = 0; v < shape->variables; ++v)
            if (!reached[v]) log_z += settle_root(v);
        for (int64_t k = 0; k < nodes; k += EIGHT) store(score + k, exponential(load(total + k)));
        std::memcpy(tau, score, nodes * sizeof(double));
        return is_sound ? log_z : __builtin_nan("");
    }
};

}  // namespace

status forest_marginals(const forest_shape *shape, int64_t count, const int64_t *offset, int64_t,
                        const double *score, double *tau, double *log_z) {
    const int64_t nodes = whole_eights(shape->node_start[shape->variables]);
    int64_t most = 0;
    for (int64_t f = 0; f < shape->factors; ++f)
        most = shape->entries[f] > most ? shape->entries[f] : most;
    Arena arena;
    Forest f{};
    f.shape = shape;
    f.score = arena.array<double>(nodes);
    f.total = arena.array<double>(nodes, 0.0);
    f.message = arena.array<double>(shape->choice_start[shape->factors]);
    f.value = arena.array<double>(whole_eights(most), 0.0);
    f.mass = arena.array<double>(whole_eights(most));
    f.reached = arena.array<bool>(shape->variables);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < count; ++m) log_z[m] = f.solve(score + offset[m], tau + offset[m]);
    return OK;
}
