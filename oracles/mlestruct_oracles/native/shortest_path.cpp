// The heaviest path of a graph without cycles, by one pass over its arcs in topological order.
#include "shortest_path.h"

#include "lanes.h"

int64_t shortest_path_solve(const acyclic_graph *g, int64_t count, const int64_t *offsets, int64_t,
                            const double *scores, double *vertices, double *upper) {
    constexpr int64_t NONE = -1;
    Arena arena;
    double *best = arena.array<double>(g->nodes);          // of paths from the source
    int64_t *came = arena.array<int64_t>(g->nodes, NONE);  // the last arc of the best one
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < count; ++k) {
        const double *score = scores + offsets[k];
        for (int64_t i = 0; i < g->nodes; ++i) best[i] = -INF;
        best[g->source] = 0.0;
        for (int64_t u = 0; u < g->usable; ++u) {
            const int64_t e = g->order[u], head = g->ends[2 * e + 1];
            const double value = best[g->ends[2 * e]] + score[e];
            const bool more = value > best[head];  // no branch: it would be guessed in vain
            came[head] = more ? e : came[head];
            best[head] = more ? value : best[head];
        }
        upper[k] = best[g->sink];
        if (!(upper[k] > -INF)) return k;
        for (int64_t i = g->sink; i != g->source; i = g->ends[2 * came[i]])
            vertices[offsets[k] + came[i]] = 1.0;
    }
    return NONE;
}
