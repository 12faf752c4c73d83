// Max-product on forests of factors (Viterbi 1967; Pearl 1988): the best labelling, exactly.
//
// From the leaves up, each factor f tells its parent v the best completion of every state,
//
//     m_f(x_v) = max over the others' states of  score_f(x) + sum_{u != v} (score_u +
//     messages)(x_u),
//
// and remembers which it was. Roots take their best state, and the choices are followed down.
#include "viterbi.h"

#include "lanes.h"

namespace {

constexpr int64_t NONE = -1;

// The first of the largest value, and where it is; 0 where all are -inf.
struct Best {
    double value = -INF;
    int64_t at = 0;

    void offer(double x, int64_t place) {
        at = x > value ? place : at;
        value = x > value ? x : value;
    }
};

struct Labelling {
    const factor_forest &f;
    double *node;     // scores of states, with what factors below tell
    double *copy;     // of all scores, where some are forbidden
    int64_t *choice;  // of every factor and parent's state: a pair's other state, else an entry
    int64_t *state;
    int64_t *turn;  // states of the members of a factor, counted through

    int64_t states(int64_t v) const { return f.node_start[v + 1] - f.node_start[v]; }
    bool is_pair(int64_t t) const { return f.scope_start[t + 1] - f.scope_start[t] == 2; }

    // The best states of a pair's other node u, for the states of v; eight side by side where a row
    // of the table holds v's states.
    void gather_pair(const double *table, int64_t v, int64_t u, bool by_rows, int64_t *chosen) {
        const int64_t rows = states(v), columns = states(u);
        double *up = node + f.node_start[v];
        const double *below = node + f.node_start[u];
        int64_t a = 0;
        for (; !by_rows && a + EIGHT <= rows; a += EIGHT) {
            Row top = row_of(-INF), place = row_of(0.0);
            for (int64_t b = 0; b < columns; ++b) {
                const Row value = load(table + b * rows + a) + below[b];
                place = select(value > top, row_of(static_cast<double>(b)), place);
                top = larger(value, top);
            }
            store(up + a, load(up + a) + top);
            for (int k = 0; k < EIGHT; ++k) chosen[a + k] = static_cast<int64_t>(place[k]);
        }
        for (; a < rows; ++a) {
            Best found;
            for (int64_t b = 0; b < columns; ++b)
                found.offer(table[by_rows ? a * columns + b : b * rows + a] + below[b], b);
            up[a] += found.value;
            chosen[a] = found.at;
        }
    }

    // The best entries of a factor of any order; `turn` counts through the states of its members.
    void gather(const double *table, int64_t t, int64_t v, int64_t *chosen, double *most) {
        const int64_t *scope = f.scope + f.scope_start[t];
        const int64_t order = f.scope_start[t + 1] - f.scope_start[t];
        const int64_t entries = f.table_start[t + 1] - f.table_start[t];
        for (int64_t a = 0; a < states(v); ++a) {
            most[a] = -INF;
            chosen[a] = 0;
        }
        for (int64_t i = 0; i < order; ++i) turn[i] = 0;
        for (int64_t entry = 0; entry < entries; ++entry) {
            double value = table[entry];
            int64_t up = 0;
            for (int64_t i = 0; i < order; ++i) {
                if (scope[i] == v)
                    up = turn[i];
                else
                    value += node[f.node_start[scope[i]] + turn[i]];
            }
            if (value > most[up]) {
                most[up] = value;
                chosen[up] = entry;
            }
            for (int64_t i = order - 1; i >= 0 && ++turn[i] == states(scope[i]); --i) turn[i] = 0;
        }
        for (int64_t a = 0; a < states(v); ++a) node[f.node_start[v] + a] += most[a];
    }

    // Give a root its best state. Return its score, which is its component's.
    double root(int64_t v) {
        Best found;
        for (int64_t k = 0; k < states(v); ++k) found.offer(node[f.node_start[v] + k], k);
        state[v] = found.at;
        return found.value;
    }

    // Set the states of a factor's members from its parent's. Return the entry.
    int64_t follow(int64_t t, int64_t v, const int64_t *chosen) {
        const int64_t *scope = f.scope + f.scope_start[t];
        int64_t entry = chosen[state[v]];
        if (is_pair(t)) {
            state[scope[0] == v ? scope[1] : scope[0]] = entry;
            return state[scope[0]] * states(scope[1]) + state[scope[1]];
        }
        int64_t rest = entry;
        for (int64_t i = f.scope_start[t + 1] - f.scope_start[t] - 1; i >= 0; --i) {
            state[scope[i]] = rest % states(scope[i]);
            rest /= states(scope[i]);
        }
        return entry;
    }

    // Solve one example. `most` is room for a number per state of a node.
    double solve(const double *scores, double *vertex, double *most) {
        const int64_t coordinates = f.node_start[f.nodes];
        if (f.forbidden > 0) {
            std::memcpy(copy, scores, f.table_start[f.factors] * sizeof(double));
            for (int64_t k = 0; k < f.forbidden; ++k) copy[f.shut[k]] = -INF;
            scores = copy;
        }
        std::memcpy(node, scores, coordinates * sizeof(double));
        int64_t *chosen = choice;
        for (int64_t k = 0; k < f.factors; ++k) {
            const int64_t t = f.order[k], v = f.parent[k], *scope = f.scope + f.scope_start[t];
            const double *table = scores + f.table_start[t];
            if (is_pair(t)) {
                const bool by_rows = scope[0] == v;
                gather_pair(table, v, by_rows ? scope[1] : scope[0], by_rows, chosen);
            } else {
                gather(table, t, v, chosen, most);
            }
            chosen += states(v);
        }
        double best = 0.0;
        for (int64_t v = 0; v < f.nodes; ++v) state[v] = NONE;
        for (int64_t k = f.factors - 1; k >= 0; --k) {
            const int64_t t = f.order[k], v = f.parent[k];
            if (state[v] == NONE) best += root(v);
            chosen -= states(v);
            vertex[f.table_start[t] + follow(t, v, chosen)] = 1.0;
        }
        for (int64_t v = 0; v < f.nodes; ++v) {
            if (state[v] == NONE) best += root(v);
            vertex[f.node_start[v] + state[v]] = 1.0;
        }
        return best;
    }
};

}  // namespace

status viterbi_solve(const factor_forest *f, int64_t count, const int64_t *offsets, int64_t,
                     const double *scores, double *vertices, double *best) {
    Arena arena;
    int64_t most = 1, widest = 1, choices = 0;
    for (int64_t v = 0; v < f->nodes; ++v) {
        const int64_t states = f->node_start[v + 1] - f->node_start[v];
        most = states > most ? states : most;
    }
    for (int64_t k = 0; k < f->factors; ++k) {
        const int64_t order = f->scope_start[k + 1] - f->scope_start[k];
        widest = order > widest ? order : widest;
        choices += f->node_start[f->parent[k] + 1] - f->node_start[f->parent[k]];
    }
    double *room = arena.array<double>(most);
    Labelling labelling{*f,
                        arena.array<double>(f->node_start[f->nodes]),
                        arena.array<double>(f->forbidden > 0 ? f->table_start[f->factors] : 0),
                        arena.array<int64_t>(choices),
                        arena.array<int64_t>(f->nodes),
                        arena.array<int64_t>(widest)};
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < count; ++k)
        best[k] = labelling.solve(scores + offsets[k], vertices + offsets[k], room);
    return OK;
}
