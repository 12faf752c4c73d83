// Sequential tree-reweighted messages (TRW-S; Kolmogorov, PAMI 28, 2006), for maxima.
//
// Every edge belongs to a chain from lower to higher nodes. What a node holds, its score and all
// messages to it, is shared equally by the chains through it: a message to w over edge e is
//
//     m_e(x_w) = max over x_v of  gamma_v held_v(x_v) - m_e'(x_v) + score_e(x_v, x_w),
//
// m_e' the message the other way. Going through the nodes in order and back, each node's and each
// message's maximum is taken out; what a backward pass takes out bounds every labelling's score.
// Labels are chosen on the way forward, given those before, and then improved one at a time.
#include "trw_s.h"

#include "lanes.h"

namespace {

constexpr int64_t TURN = 1 << 25;  // entries of tables that a call goes through, or a pass
constexpr int FEW = 7;             // states up to which there is a solver for each number
constexpr int64_t CLIMBS = 100;    // rounds of single changes
constexpr int64_t CHECK = 10;      // passes, after which the bound must have moved
constexpr double MET = 1e-12;      // how near, relatively, bound and labelling are one
enum { EXAMPLE, PASS, BOUND, REACHED, MARK };

struct Room {
    double *belief, *held, *gain;  // numbers per state, with room for whole eights
    int64_t *label;
    bool *stale;   // whether a node may gain by another label
    double *copy;  // of an example's scores, where some are forbidden

    // Scores with a cost of forbidden entries that is more than all others together can give.
    const double *penalised(const node_order &g, const double *score) const {
        double reach = 0.0;
        for (int64_t i = 0; i < g.size; ++i) reach += g.shut[i] ? 0.0 : __builtin_fabs(score[i]);
        for (int64_t i = 0; i < g.size; ++i) copy[i] = g.shut[i] ? -(1.0 + 2.0 * reach) : score[i];
        return copy;
    }
};

// All nodes have S states; any number of them where S is 0.
template <int S>
struct Solver {
    const node_order &g;
    const double *score, *end;  // of the example
    double *messages;
    Room room;

    // An edge of a node's, the side it is seen from, and the node at the other one.
    struct Way {
        int64_t edge, side, other;
    };
    Way way(int64_t k) const {
        const int64_t e = g.around[k] / 2, side = g.around[k] % 2;
        return {e, side, g.ends[2 * e + 1 - side]};
    }
    int64_t states(int64_t v) const { return S ? S : g.node_start[v + 1] - g.node_start[v]; }
    const double *table(const Way &to) const { return score + g.table_start[to.edge]; }
    double *message(int64_t edge, int64_t side) const {
        return messages + g.message[2 * edge + side];
    }

    static double greatest(const double *x, int64_t count) {
        double most = x[0];
        for (int64_t k = 1; k < count; ++k) most = larger(x[k], most);
        return most;
    }
    static int64_t first_greatest(const double *x, int64_t count) {
        int64_t found = 0;
        for (int64_t k = 1; k < count; ++k)
            if (x[k] > x[found]) found = k;
        return found;
    }

    // Add to the gains of v's states what the edge gives them beside the other end's label.
    void add_given(int64_t v, const Way &to, double *gain, const double *less) const {
        const int64_t by = to.side ? 1 : states(to.other), at = room.label[to.other];
        const double *given = table(to) + (to.side ? at * states(v) : at);
        for (int64_t x = 0; x < states(v); ++x)
            gain[x] += less ? given[x * by] - less[x] : given[x * by];
    }

    // The best state given the chosen earlier neighbours and the messages of later ones.
    int64_t choose(int64_t v) {
        for (int64_t x = 0; x < states(v); ++x) room.gain[x] = room.belief[x];
        for (int64_t k = g.start[v]; k < g.start[v + 1]; ++k) {
            const Way to = way(k);
            if (to.other < v) add_given(v, to, room.gain, message(to.edge, to.side));
        }
        return first_greatest(room.gain, states(v));
    }

    // Maxima over rows or columns of held + table. Beyond the last of what is held stand -inf, to
    // whole eights.
    void maximise(const Way &to, int64_t own, int64_t others, double *out) const {
        const double *entry = table(to), *held = room.held;
        int64_t y = 0;
        if (to.side == 0) {
            for (; S == 0 && y + EIGHT <= others; y += EIGHT) {
                Row best = load(entry + y) + held[0];
                for (int64_t x = 1; x < own; ++x)
                    best = larger(load(entry + x * others + y) + held[x], best);
                store(out + y, best);
            }
        } else if (S == 0 && own >= EIGHT) {
            for (; y < others && entry + y * own + whole_eights(own) <= end; ++y) {
                Row best = load(entry + y * own) + load(held);
                for (int64_t x = EIGHT; x < own; x += EIGHT)
                    best = larger(load(entry + y * own + x) + load(held + x), best);
                out[y] = largest(best);
            }
        }
        const int64_t down = to.side ? 1 : others, along = to.side ? own : 1;
        for (; y < others; ++y) {
            double best = held[0] + entry[y * along];
            for (int64_t x = 1; x < own; ++x)
                best = larger(held[x] + entry[x * down + y * along], best);
            out[y] = best;
        }
    }

    // Send the message from v over one of its edges. Return the maximum taken out of it.
    double send(int64_t v, const Way &to) {
        const int64_t own = states(v), others = states(to.other);
        const double *back = message(to.edge, to.side), gamma = g.gamma[v];
        double *out = message(to.edge, 1 - to.side);
        for (int64_t x = 0; x < own; ++x) room.held[x] = gamma * room.belief[x] - back[x];
        for (int64_t x = own; S == 0 && x < whole_eights(own); ++x) room.held[x] = -INF;
        maximise(to, own, others, out);
        const double peak = greatest(out, others);
        for (int64_t y = 0; y < others; ++y) out[y] -= peak;
        return peak;
    }

    // One pass along the order or against it. Return all that was taken out.
    double sweep(bool forward) {
        double bound = 0.0;
        for (int64_t step = 0; step < g.nodes; ++step) {
            const int64_t v = forward ? step : g.nodes - 1 - step, own = states(v);
            for (int64_t x = 0; x < own; ++x) room.belief[x] = score[g.node_start[v] + x];
            for (int64_t k = g.start[v]; k < g.start[v + 1]; ++k) {
                const double *in = messages + g.message[g.around[k]];
                for (int64_t x = 0; x < own; ++x) room.belief[x] += in[x];
            }
            if (forward) room.label[v] = choose(v);
            const double top = greatest(room.belief, own);
            for (int64_t x = 0; x < own; ++x) room.belief[x] -= top;
            bound += top;
            for (int64_t k = g.start[v]; k < g.start[v + 1]; ++k) {
                const Way to = way(k);
                if ((to.other > v) == forward) bound += send(v, to);
            }
        }
        return bound;
    }

    // Make the best single changes until there are none. Return the score reached.
    double climb() {
        for (int64_t v = 0; v < g.nodes; ++v) room.stale[v] = true;
        bool changed = true;
        for (int64_t turn = 0; changed && turn < CLIMBS; ++turn) {
            changed = false;
            for (int64_t v = 0; v < g.nodes; ++v) {
                if (!room.stale[v]) continue;
                room.stale[v] = false;
                for (int64_t x = 0; x < states(v); ++x) room.gain[x] = score[g.node_start[v] + x];
                for (int64_t k = g.start[v]; k < g.start[v + 1]; ++k)
                    add_given(v, way(k), room.gain, nullptr);
                const int64_t best = first_greatest(room.gain, states(v));
                if (!(room.gain[best] > room.gain[room.label[v]])) continue;
                room.label[v] = best;
                changed = true;
                for (int64_t k = g.start[v]; k < g.start[v + 1]; ++k)
                    room.stale[way(k).other] = true;
            }
        }
        double total = 0.0;
        for (int64_t v = 0; v < g.nodes; ++v) total += score[g.node_start[v] + room.label[v]];
        for (int64_t e = 0; e < g.edges; ++e) total += score[entry(e, room.label)];
        return total;
    }

    // The coordinate of an edge's entry in a labelling.
    int64_t entry(int64_t e, const int64_t *label) const {
        const int64_t i = g.ends[2 * e], j = g.ends[2 * e + 1];
        return g.table_start[e] + label[i] * states(j) + label[j];
    }

    // One pass there and back. Return whether there is nothing more to gain.
    bool pass(const message_task &task) {
        double *at = task.progress, bound = at[BOUND];
        sweep(true);
        const double value = climb();
        if (value > at[REACHED]) {
            at[REACHED] = value;
            for (int64_t v = 0; v < g.nodes; ++v) task.labels[v] = room.label[v];
        }
        at[BOUND] = bound = smaller(sweep(false), bound);
        const double size = 1.0 + __builtin_fabs(bound);
        const int64_t passes = static_cast<int64_t>(at[PASS] += 1);
        if (bound - at[REACHED] <= MET * size || passes >= task.passes) return true;
        if (passes % CHECK) return false;
        if (at[MARK] - bound <= task.tol * size) return true;
        at[MARK] = bound;
        return false;
    }

    void begin(const message_task &task) {
        for (int64_t k = 0; k < task.room; ++k) messages[k] = 0.0;
        for (int64_t v = 0; v < g.nodes; ++v) task.labels[v] = 0;
        task.progress[BOUND] = task.progress[MARK] = INF;
        task.progress[REACHED] = -INF;
    }

    void finish(const message_task &task, int64_t k) {
        double size = 0.0, *vertex = task.vertices + task.offsets[k];
        for (int64_t i = 0; i < g.size; ++i) size += __builtin_fabs(score[i]);
        bool forbidden = false;
        const auto use = [&](int64_t coordinate) {
            vertex[coordinate] = 1.0;
            forbidden |= g.shut && g.shut[coordinate];
        };
        for (int64_t v = 0; v < g.nodes; ++v) use(g.node_start[v] + task.labels[v]);
        for (int64_t e = 0; e < g.edges; ++e) use(entry(e, task.labels));
        const double bound = task.progress[BOUND] + size * g.rounding;
        task.upper[k] = forbidden ? -INF : larger(task.progress[REACHED], bound);
    }
};

template <int S>
int64_t solve(const node_order &g, const message_task &task, const Room &room) {
    double *at = task.progress;
    int64_t k = static_cast<int64_t>(at[EXAMPLE]);
    for (int64_t left = TURN; k < task.count && left > 0;) {
        const double *given = task.scores + task.offsets[k];
        const double *score = g.shut ? room.penalised(g, given) : given;
        Solver<S> solver{g, score, score + g.size, task.messages, room};
        if (at[PASS] == 0) solver.begin(task);
        bool done = task.passes <= 0;
        for (; !done && left > 0; left -= g.size) done = solver.pass(task);
        if (!done) break;
        solver.finish(task, k);
        at[PASS] = 0;
        at[EXAMPLE] = static_cast<double>(++k);
    }
    return k;
}

// The solver for so many states, which is the general one beyond a few.
template <int S>
int64_t solve_states(int64_t states, const node_order &g, const message_task &task,
                     const Room &room) {
    if (states == S || S == 0) return solve<S>(g, task, room);
    return solve_states<(S > 2 ? S - 1 : 0)>(states, g, task, room);
}

}  // namespace

int64_t trw_s_solve(const node_order *g, const message_task *task) {
    int64_t most = 1, least = INT64_MAX;
    for (int64_t v = 0; v < g->nodes; ++v) {
        const int64_t states = g->node_start[v + 1] - g->node_start[v];
        most = states > most ? states : most;
        least = states < least ? states : least;
    }
    Arena arena;
    const int64_t wide = whole_eights(most);
    const Room room{arena.array<double>(wide),   arena.array<double>(wide),
                    arena.array<double>(wide),   arena.array<int64_t>(g->nodes),
                    arena.array<bool>(g->nodes), arena.array<double>(g->shut ? g->size : 0)};
    if (arena.failed) return NO_MEMORY;
    return solve_states<FEW>(most == least ? most : 0, *g, *task, room);
}
