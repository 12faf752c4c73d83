// The k best labellings of a chain: Viterbi, then best-first backwards.
//
// Soong and Huang (1991), "A tree-trellis based fast search for finding the N best sentence
// hypotheses". The value of a Viterbi prefix is the best completion of any suffix, exactly, so that
// suffixes come off the list in the order of their best sequences.
#include "k_best.h"

#include <cstring>

#include "lanes.h"

namespace {

// ahead[t, s]: the best score of positions 0 to t with state s at t.
void find_prefixes(int64_t n, int64_t states, const double *nodes, const double *steps,
                   double *ahead) {
    for (int64_t s = 0; s < states; ++s) ahead[s] = nodes[s];
    for (int64_t t = 1; t < n; ++t, steps += states * states) {
        const double *before = ahead + (t - 1) * states, *node = nodes + t * states;
        double *__restrict best = ahead + t * states;
        for (int64_t s = 0; s < states; ++s) best[s] = -INF;
        for (int64_t r = 0; r < states; ++r)
            for (int64_t s = 0; s < states; ++s)
                best[s] = larger(before[r] + steps[r * states + s], best[s]);
        for (int64_t s = 0; s < states; ++s) best[s] += node[s];
    }
}

// A suffix of a sequence: its first position and state, the suffix after that, and the score of
// everything behind its first state.
struct Suffix {
    int64_t at, state, rest;
    double after;
};

// Suffixes by the score of their best sequence; only as many are kept as are still wanted.
struct Waiting {
    double *value;
    int64_t *place;
    int64_t first, last;

    bool takes(double worth, int64_t room) const {
        return last - first < room || worth > value[first + room - 1];
    }
    // Keep the best `room` with one more; impossible ones are not taken.
    void insert(double worth, int64_t one, int64_t room) {
        if (worth == -INF || room == 0) return;
        if (!takes(worth, room)) {
            last = first + room;
            return;
        }
        int64_t q = first, high = last;  // behind those that are as good
        while (q < high) {
            const int64_t middle = q + (high - q) / 2;
            if (value[middle] < worth)
                high = middle;
            else
                q = middle + 1;
        }
        if (last - first < room) ++last;
        last = first + room < last ? first + room : last;
        const size_t moved = static_cast<size_t>(last - 1 - q) * sizeof(double);
        std::memmove(value + q + 1, value + q, moved);
        std::memmove(place + q + 1, place + q, moved);
        value[q] = worth;
        place[q] = one;
    }
};

}  // namespace

int64_t best_sequences(int64_t n, int64_t states, const double *nodes, const double *steps,
                       int64_t k, int64_t *sequence, double *score) {
    Arena arena;
    double *ahead = arena.array<double>(n * states);
    Suffix *store = arena.array<Suffix>(1 + states + k * n * states);
    // Every sequence takes at most one suffix off the list for each position.
    const int64_t most = k * n, room = most + k;
    Waiting waiting{arena.array<double>(room), arena.array<int64_t>(room), 0, 0};
    if (arena.failed) return NO_MEMORY;
    find_prefixes(n, states, nodes, steps, ahead);
    int64_t stored = 0, found = 0;
    for (int64_t s = 0; s < states; ++s, ++stored) {
        store[stored] = {n - 1, s, -1, 0.0};
        waiting.insert(ahead[(n - 1) * states + s], stored, k);
    }
    while (waiting.first < waiting.last && found < k && waiting.first < most) {
        const int64_t one = waiting.place[waiting.first];
        const double worth = waiting.value[waiting.first++];
        const Suffix suffix = store[one];
        if (suffix.at == 0) {
            int64_t *out = sequence + found * n;
            for (int64_t link = one; link >= 0; link = store[link].rest) *out++ = store[link].state;
            score[found++] = worth;
            continue;
        }
        const double behind = suffix.after + nodes[suffix.at * states + suffix.state];
        for (int64_t r = 0; r < states; ++r) {
            const double step = steps[((suffix.at - 1) * states + r) * states + suffix.state];
            const double total = ahead[(suffix.at - 1) * states + r] + step + behind;
            if (!waiting.takes(total, k - found)) continue;
            store[stored] = {suffix.at - 1, r, one, behind + step};
            waiting.insert(total, stored++, k - found);
        }
    }
    return found;
}
