// Least odd cuts by Gusfield's cut tree (1990, SIAM J. Comput. 19) over maximum flows of Dinic.
//
// Padberg and Rao (1982, Math. Oper. Res. 7): the least cut of a set with an odd number of
// terminals is among those of a cut tree over the terminals. Nodes that no small cut parts are
// merged, so that later flows have less to search; often one node remains.
#include "odd_sets.h"

#include <initializer_list>

#include "lanes.h"

namespace {

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

struct CutTree {
    int64_t n;
    double *network;
    int64_t *parent;
    double *value;
    Flow flow;

    // Part s from its parent t, and take the nodes on its side along. A flow may stop at `cap`: no
    // smaller cut parts s and t, which become one node.
    void hang(int64_t s, double cap) {
        const int64_t t = parent[s];
        value[s] = flow.between(s, t, cap);
        if (value[s] >= cap) return merge(s, t);
        for (int64_t v = 0; v < n; ++v)
            if (v != s && flow.level[v] >= 0 && parent[v] == t) parent[v] = s;
        if (flow.level[parent[t]] >= 0) {
            parent[s] = parent[t];
            parent[t] = s;
            const double own = value[s];
            value[s] = value[t];
            value[t] = own;
        }
    }

    // Give all edges of s to t.
    void merge(int64_t s, int64_t t) {
        for (int64_t v = 0; v < n; ++v) {
            network[t * n + v] += network[s * n + v];
            network[v * n + t] = network[t * n + v];
            network[s * n + v] = network[v * n + s] = 0.0;
        }
        flow.list(network);
    }
};

}  // namespace

status odd_sets_cut_tree(int64_t size, const double *network, const bool *terminal, double cap,
                         int64_t *parent, double *value) {
    Arena arena;
    CutTree tree{size, arena.array<double>(size * size), parent, value, Flow(size, arena)};
    if (arena.failed) return NO_MEMORY;
    std::memcpy(tree.network, network, size * size * sizeof(double));
    tree.flow.list(network);
    for (int64_t v = 0; v < size; ++v) {
        parent[v] = 0;
        value[v] = INF;
    }
    for (int64_t s = 1; s < size; ++s)
        if (terminal[s]) tree.hang(s, cap);
    return OK;
}
