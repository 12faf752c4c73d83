// Sums over paths through a directed graph without cycles: one pass from the source, one from the
// sink.
//
//     before(v) = log sum over arcs u -> v of exp(before(u) + score), after(u) likewise
//     P(arc u -> v) = exp(before(u) + score + after(v) - log Z)
#include "paths.h"

#include "lanes.h"

namespace {

// log(exp(a) + exp(b)), NaN where one is
INLINE double add_logs(double a, double b) {
    if (!(a + b == a + b)) return a + b;
    const double top = larger(a, b), low = smaller(a, b);
    if (top == -INF) return top;
    return top + logarithm(1.0 + exponential(low - top));
}

}  // namespace

void sums_to_sink(const dag *graph, const double *score, double *after) {
    for (int64_t v = 0; v < graph->nodes; ++v) after[v] = -INF;
    after[graph->sink] = 0.0;
    for (int64_t k = graph->usable - 1; k >= 0; --k) {
        const int64_t e = graph->order[k], u = graph->ends[2 * e], v = graph->ends[2 * e + 1];
        if (u != graph->sink) after[u] = add_logs(after[u], score[e] + after[v]);
    }
}

status path_marginals(const dag *graph, int64_t count, const double *score, double *tau,
                      double *log_z) {
    Arena arena;
    double *before = arena.array<double>(graph->nodes), *after = arena.array<double>(graph->nodes);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < count; ++m, score += graph->arcs, tau += graph->arcs) {
        for (int64_t v = 0; v < graph->nodes; ++v) before[v] = -INF;
        before[graph->source] = 0.0;
        for (int64_t k = 0; k < graph->usable; ++k) {
            const int64_t e = graph->order[k], u = graph->ends[2 * e], v = graph->ends[2 * e + 1];
            if (u != graph->sink) before[v] = add_logs(before[v], before[u] + score[e]);
        }
        sums_to_sink(graph, score, after);
        log_z[m] = before[graph->sink];
        if (log_z[m] == -INF) continue;
        for (int64_t k = 0; k < graph->usable; ++k) {
            const int64_t e = graph->order[k], u = graph->ends[2 * e], v = graph->ends[2 * e + 1];
            if (u != graph->sink && v != graph->source)
                tau[e] = exponential(before[u] + score[e] + after[v] - log_z[m]);
        }
    }
    return OK;
}
