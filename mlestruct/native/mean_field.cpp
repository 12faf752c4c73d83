// Mean field: the best product of node distributions q is a fixed point of
//
//     q_i(x) proportional to exp(expected score of all with x_i = x)
//
// and each such update is the exact maximum of <score, tau> + sum_i H(q_i) over q_i (Koller and
// Friedman 2009, section 11.5). Nodes that move together go a share of the way to their responses:
// halved where the value would fall, and growing by a tenth otherwise.
#include "mean_field.h"

#include "factors.h"

namespace {

constexpr int64_t CLAMPED = 1000;  // sweeps over hidden nodes
constexpr double TOL = 1e-8, GROW = 1.1, LEAST = 1e-9;

struct MeanField {
    const message_graph &g;
    const double *score;
    double *goal;   // best responses of all nodes
    double *fresh;  // a point that is tried
    int64_t *state;

    MeanField(const message_graph &graph, const Widest &widest, Arena &arena)
        : g(graph),
          score(nullptr),
          goal(arena.array<double>(graph.node_start[graph.nodes])),
          fresh(arena.array<double>(graph.table_start[graph.factors])),
          state(arena.array<int64_t>(widest.order)) {}

    // Write the best q_i given the others to where it is among the goals.
    void respond(int64_t i, const double *q) const {
        const int64_t first = g.node_start[i], cards = g.node_start[i + 1] - first;
        const int8_t *open = g.open + first;
        double *field = goal + first, top = -INF, mass = 0.0;
        for (int64_t k = 0; k < cards; ++k) field[k] = score[first + k];
        for (int64_t p = g.start[i]; p < g.start[i + 1]; ++p) add_expected(g.around[p], q, field);
        for (int64_t k = 0; k < cards; ++k)
            if (open[k]) top = larger(field[k], top);
        for (int64_t k = 0; k < cards; ++k) {
            field[k] = open[k] ? exponential(field[k] - top) : 0.0;
            mass += field[k];
        }
        for (int64_t k = 0; k < cards; ++k) field[k] /= mass;
    }

    // Move node i to its best response, and return how far it moved.
    double update(int64_t i, double damping, double *q) const {
        respond(i, q);
        double moved = 0.0;
        for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k) {
            const double change = (1.0 - damping) * (goal[k] - q[k]);
            q[k] += change;
            moved = larger(__builtin_fabs(change), moved);
        }
        return moved;
    }

    // Move the nodes that are not known, until none moves by more than the tolerance; write the
    // tables, and return the value.
    double ascend(const bool *known, double damping, double tol, int64_t sweeps, double *q) const {
        double moved = INF;
        for (int64_t sweep = 0; sweep < sweeps && !(moved <= tol); ++sweep) {
            moved = 0.0;
            for (int64_t i = 0; i < g.nodes; ++i)
                if (!known || !known[i]) moved = larger(update(i, damping, q), moved);
        }
        return finish(q);
    }

    // Write tables as products of their nodes, and return the value there.
    double finish(double *q) const {
        double total = 0.0;
        for (int64_t k = 0; k < g.node_start[g.nodes]; ++k)
            if (q[k] > 0.0) total += q[k] * (score[k] - logarithm(q[k]));
        for (int64_t f = 0; f < g.factors; ++f) {
            Factor here(g, f, state);
            for (int64_t k = here.entry; k < here.entry + here.entries; ++k, here.next()) {
                q[k] = chance(here, -1, q);
                if (q[k] > 0.0) total += q[k] * score[k];
            }
        }
        return total;
    }

    // Take steps of all nodes together, from a point of this value; return that of the last one.
    double together(int64_t steps, double value, double *q) const {
        const int64_t states = g.node_start[g.nodes], size = g.table_start[g.factors];
        double share = 1.0;
        for (int64_t step = 0; step < steps; ++step) {
            for (int64_t i = 0; i < g.nodes; ++i) respond(i, q);
            double reached = value;
            for (; share > LEAST; share *= 0.5) {
                for (int64_t k = 0; k < states; ++k)
                    fresh[k] = (1.0 - share) * q[k] + share * goal[k];
                reached = finish(fresh);
                if (reached >= value) break;
            }
            if (share <= LEAST) break;
            value = reached;
            copy(q, fresh, size);
            share = smaller(1.0, GROW * share);
        }
        return value;
    }

  private:
    // The probability of the present states of all slots but one.
    static double chance(const Factor &here, int64_t skip, const double *q) {
        double found = 1.0;
        for (int64_t s = here.first; s < here.last; ++s)
            if (s != skip) found *= q[here.node(s) + here.state[s - here.first]];
        return found;
    }
    void add_expected(int64_t s, const double *q, double *field) const {
        Factor here(g, g.owner[s], state);
        const int64_t *now = state + (s - here.first);
        for (int64_t k = here.entry; k < here.entry + here.entries; ++k, here.next())
            field[*now] += chance(here, s, q) * score[k];
    }
};

}  // namespace

status ascend_products(const message_graph *graph, const message_examples *examples, double damping,
                       double tol, int64_t sweeps, double *tau, double *log_z) {
    Arena arena;
    MeanField field(*graph, Widest(*graph), arena);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < examples->count; ++m) {
        field.score = examples->score + examples->offset[m];
        log_z[m] = field.ascend(nullptr, damping, tol, sweeps, tau + examples->offset[m]);
    }
    return OK;
}

status relax_products(const message_graph *graph, const message_examples *examples,
                      const bool *known, int64_t steps, double *data, double *tau,
                      double *free_energy) {
    const int64_t size = graph->table_start[graph->factors];
    Arena arena;
    MeanField field(*graph, Widest(*graph), arena);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < examples->count; ++m, known += graph->nodes) {
        double *q = data + examples->offset[m], *end = tau + examples->offset[m];
        field.score = examples->score + examples->offset[m];
        const double value = field.ascend(known, 0.0, TOL, CLAMPED, q);
        copy(end, q, size);
        free_energy[m] = -value;
        free_energy[examples->count + m] = -field.together(steps, value, end);
    }
    return OK;
}
