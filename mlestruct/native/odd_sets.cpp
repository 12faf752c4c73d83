// Least odd cuts by Gusfield's cut tree (1990, SIAM J. Comput. 19) over maximum flows of Dinic.
//
// Padberg and Rao (1982, Math. Oper. Res. 7): the least cut of a set with an odd number of
// terminals is among those of a cut tree over the terminals. Every odd set parts one pair of any
// pairing (Rizzi 2002), so pairs that no small cut parts are merged first; often none remains.
#include "odd_sets.h"

#include <initializer_list>

#include "lanes.h"

namespace {

constexpr int64_t DENSE = 8;       // times less than all edges, to rewrite a graph at every merger
constexpr double NOTHING = 1e-13;  // of a capacity

// The edges that have a capacity, from both ends: heads ascending, `back` is the way back.
struct Flow {
    int64_t n;
    int64_t *start, *head, *back;
    double *room, *left;  // capacities, and what a flow has left of them
    int64_t *level, *queue, *at, *place;

    Flow(int64_t size, Arena &arena) : n(size) {
        start = arena.array<int64_t>(n + 1);
        for (int64_t **array : {&head, &back}) *array = arena.array<int64_t>(n * n);
        for (double **array : {&room, &left}) *array = arena.array<double>(n * n);
        for (int64_t **array : {&level, &queue, &at, &place}) *array = arena.array<int64_t>(n + 1);
    }

    void list(const double *network) {
        start[0] = 0;
        for (int64_t u = 0; u < n; ++u) {
            int64_t count = 0;
            for (int64_t v = 0; v < n; ++v) count += v != u && network[u * n + v] > NOTHING;
            place[u] = start[u];
            start[u + 1] = start[u] + count;
        }
        for (int64_t u = 0; u < n; ++u)
            for (int64_t v = 0; v < u; ++v) {
                if (!(network[u * n + v] > NOTHING)) continue;
                const int64_t a = place[u]++, b = place[v]++;
                head[a] = v;
                head[b] = u;
                back[a] = b;
                back[b] = a;
                room[a] = room[b] = network[u * n + v];
            }
    }

    void push(int64_t e, double amount) {
        left[e] -= amount;
        left[back[e]] += amount;
    }

    // Number the nodes that s still reaches by their distance, all others -1; whether t is one.
    bool number(int64_t s, int64_t t) {
        for (int64_t v = 0; v < n; ++v) level[v] = -1;
        level[s] = 0;
        queue[0] = s;
        for (int64_t first = 0, last = 1; first < last && level[t] < 0; ++first) {
            const int64_t u = queue[first];
            for (int64_t e = start[u]; e < start[u + 1]; ++e) {
                const int64_t v = head[e];
                if (level[v] >= 0 || !(left[e] > NOTHING)) continue;
                level[v] = level[u] + 1;
                queue[last++] = v;
            }
        }
        return level[t] >= 0;
    }

    // Flow along shortest ways until none is left, or `enough` has flowed with `total`.
    double block(int64_t s, int64_t t, double total, double enough) {
        int64_t *path = queue, u = s, depth = 0;
        for (int64_t v = 0; v < n; ++v) at[v] = start[v];
        while (true) {
            if (u == t) {
                double amount = INF;
                for (int64_t k = 0; k < depth; ++k) amount = smaller(amount, left[path[k]]);
                total += amount;
                for (int64_t k = depth - 1; k >= 0; --k) {
                    push(path[k], amount);
                    if (left[path[k]] <= NOTHING) {
                        u = head[back[path[k]]];
                        depth = k;
                    }
                }
                if (total >= enough) return total;
            } else if (at[u] < start[u + 1]) {
                const int64_t e = at[u], v = head[e];
                if (left[e] > NOTHING && level[v] == level[u] + 1) {
                    path[depth++] = e;
                    u = v;
                } else {
                    ++at[u];
                }
            } else if (depth > 0) {
                u = head[back[path[--depth]]];
                ++at[u];
            } else {
                return total;
            }
        }
    }

    // The most that flows from s to t, or `enough`; what s still reaches has a level >= 0.
    double between(int64_t s, int64_t t, double enough) {
        std::memcpy(left, room, start[n] * sizeof(double));
        double total = 0.0;
        while (total < enough && number(s, t)) total = block(s, t, total, enough);
        return total;
    }
};

// A flow may stop at `cap`: no smaller cut parts its ends, which then stay together whatever is cut
// later.
struct CutTree {
    int64_t n;
    Flow flow;
    double *merged, *most;
    int64_t *order, *first, *second;
    bool *open;

    CutTree(int64_t size, Arena &arena) : n(size), flow(size, arena) {
        merged = arena.array<double>(n * n);
        most = arena.array<double>(n);
        for (int64_t **array : {&order, &first, &second}) *array = arena.array<int64_t>(n);
        open = arena.array<bool>(n);
    }

    // Terminals in pairs between which much can flow, the surest first; return how many. O(n^2).
    int64_t pair(const double *network, const bool *terminal) {
        int64_t count = 0;
        for (int64_t u = 0; u < n; ++u) {
            open[u] = terminal[u];
            most[u] = 0.0;
            for (int64_t v = 0; terminal[u] && v < n; ++v)
                if (terminal[v] && u != v) most[u] = larger(most[u], network[u * n + v]);
            int64_t k = u;  // insertion keeps the order of nodes that are alike
            for (; k > 0 && most[order[k - 1]] < most[u]; --k) order[k] = order[k - 1];
            order[k] = u;
        }
        for (int64_t k = 0; k < n; ++k) {
            const int64_t u = order[k];
            int64_t best = -1;
            for (int64_t v = 0; open[u] && v < n; ++v)
                if (open[v] && u != v && (best < 0 || network[u * n + v] > network[u * n + best]))
                    best = v;
            if (best < 0) continue;
            open[u] = open[best] = false;
            first[count] = u;
            second[count++] = best;
        }
        return count;
    }

    // One node of two; its edges are the sums of theirs.
    void merge(int64_t s, int64_t t) {
        for (int64_t v = 0; v < n; ++v) {
            merged[s * n + v] += merged[t * n + v];
            merged[v * n + s] = merged[s * n + v];
        }
        for (int64_t v = 0; v < n; ++v) merged[t * n + v] = merged[v * n + t] = 0.0;
        merged[s * n + s] = 0.0;
    }

    void find(const double *network, const bool *terminal, double cap, int64_t *parent,
              double *value, bool *left) {
        std::memcpy(merged, network, n * n * sizeof(double));
        for (int64_t v = 0; v < n; ++v) left[v] = terminal[v];
        flow.list(merged);
        const int64_t pairs = pair(network, terminal);
        for (int64_t k = 0; k < pairs; ++k) {
            const int64_t s = first[k], t = second[k];
            if (flow.between(s, t, cap) < cap) continue;
            left[s] = left[t] = false;
            merge(s, t);
            if (DENSE * flow.start[n] > n * n) flow.list(merged);
        }
        int64_t root = 0;
        while (root < n - 1 && !left[root]) ++root;
        const bool some = left[root];
        for (int64_t v = 0; v < n; ++v) {
            parent[v] = some ? root : 0;
            value[v] = INF;
        }
        if (!some) return;
        flow.list(merged);
        for (int64_t s = 0; s < n; ++s)
            if (left[s] && s != parent[s]) hang(s, cap, parent, value);
        for (int64_t k = 0; k < pairs; ++k)  // one node with its partner
            if (!left[first[k]]) parent[second[k]] = first[k];
    }

    // Part s from its parent, and take the nodes on its side along.
    void hang(int64_t s, double cap, int64_t *parent, double *value) {
        const int64_t t = parent[s];
        value[s] = flow.between(s, t, cap);
        if (value[s] >= cap) return;
        for (int64_t i = 0; i < n; ++i)
            if (i != s && flow.level[i] >= 0 && parent[i] == t) parent[i] = s;
        if (flow.level[parent[t]] >= 0) {
            parent[s] = parent[t];
            parent[t] = s;
            const double own = value[s];
            value[s] = value[t];
            value[t] = own;
        }
    }
};

}  // namespace

status odd_sets_cut_tree(int64_t size, const double *network, const bool *terminal, double cap,
                         int64_t *parent, double *value, bool *left) {
    Arena arena;
    CutTree tree(size, arena);
    if (arena.failed) return NO_MEMORY;
    if (size > 0) tree.find(network, terminal, cap, parent, value, left);
    return OK;
}
