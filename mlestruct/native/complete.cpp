// Sums over pairs u < v of a complete graph, listed row by row.
#include "complete.h"

#include "lanes.h"

namespace {

// Where the pairs (u, u + 1), (u, u + 2), ... begin.
int64_t first_pair(int64_t u, int64_t n) { return u * (2 * n - u - 1) / 2; }

}  // namespace

void pairs_sums(int64_t n, const double *flat, double *out) {
    for (int64_t v = 0; v < n; ++v) out[v] = 0.0;
    for (int64_t u = 0; u < n; ++u) {
        const double *pair = flat + first_pair(u, n);
        double *to = out + u + 1;
        const int64_t count = n - u - 1;
        Row total = row_of(0.0);
        int64_t k = 0;
        for (; k + EIGHT <= count; k += EIGHT) {
            const Row row = load(pair + k);
            total = total + row;
            store(to + k, load(to + k) + row);
        }
        double rest = 0.0;
        for (; k < count; ++k) {
            rest += pair[k];
            to[k] += pair[k];
        }
        out[u] += sum(total) + rest;
    }
}

status pairs_meetings(const pair_answers *answers, const double *flat, int64_t low, int64_t high,
                      double *out) {
    const int64_t n = answers->nodes, questions = answers->questions, levels = answers->levels;
    const int64_t *first = answers->first, wide = levels + 1;
    Arena arena;
    double *met = arena.array<double>(wide * wide);  // what one node's partners answer together
    if (arena.failed) return NO_MEMORY;
    for (int64_t u = low; u < high; ++u) {
        for (int64_t k = 0; k < wide * wide; ++k) met[k] = 0.0;
        const double *pair = flat + first_pair(u, n);
        for (int64_t v = u + 1; v < n; ++v) {
            const double weight = *pair++;
            const int64_t *at = answers->at + v * questions;
            for (int64_t q = 0; q < questions; ++q) {
                double *row = met + at[q] * wide;
                for (int64_t r = q; r < questions; ++r) row[at[r]] += weight;
            }
        }
        const int64_t *at = answers->at + u * questions;
        for (int64_t q = 0; q < questions; ++q)
            for (int64_t r = q; r < questions; ++r) {
                if (at[q] == levels || at[r] == levels) continue;
                const int64_t height = first[q + 1] - first[q], width = first[r + 1] - first[r];
                const int64_t top = answers->start[q] + (at[q] - first[q]) * height;
                const int64_t left = answers->start[r] + (at[r] - first[r]) * width;
                for (int64_t k = 0; k < height; ++k) {
                    double *to = out + (top + k) * answers->tables + left;
                    const double *from = met + (first[q] + k) * wide + first[r];
                    for (int64_t j = 0; j < width; ++j) to[j] += from[j];
                }
            }
    }
    return OK;
}
