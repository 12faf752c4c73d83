// Spanning trees: entries of an inverse, and edge weights shared between the ends of edges.
#include "trees.h"

#include "lanes.h"

namespace {

// The place of the inverse's entry (i, k), either way round, where L has it.
INLINE int64_t place_of(const sparse_factor *factor, int64_t i, int64_t k) {
    const int64_t column = i < k ? i : k, wanted = i < k ? k : i;
    int64_t low = factor->start[column], high = factor->start[column + 1];
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (factor->row[middle] <= wanted ? low : high) = middle;
    }
    return low;
}

constexpr int64_t UNSEEN = -1, ROOT = -2, NONE = -1;
constexpr double NOTHING = 1e-3;  // of the tolerance over all nodes: shares below do not move

struct Sharing {
    const edge_shares *given;
    double least;

    int64_t other_end(int64_t place) const { return given->ends[place ^ 1]; }

    // Search from v, breadth first, for a node with room left; return how many nodes were reached.
    int64_t search(int64_t v, int64_t *goal) const {
        int64_t last = 1;
        given->came[v] = ROOT;
        given->queue[0] = v;
        *goal = NONE;
        for (int64_t first = 0; first < last; ++first) {
            const int64_t u = given->queue[first];
            for (int64_t k = given->start[u]; k < given->start[u + 1]; ++k) {
                const int64_t place = given->around[k], w = other_end(place);
                if (!(given->share[place] > least) || given->came[w] != UNSEEN) continue;
                given->came[w] = place;
                given->queue[last++] = w;
                if (given->load[w] < given->room[w] - least) {
                    *goal = w;
                    return last;
                }
            }
        }
        return last;
    }

    // Move what v holds too much, the goal can take, and every share on the way back allows.
    void move(int64_t v, int64_t goal) const {
        double sent =
            smaller(given->load[v] - given->room[v], given->room[goal] - given->load[goal]);
        for (int64_t node = goal; node != v; node = given->ends[given->came[node]])
            sent = smaller(sent, given->share[given->came[node]]);
        given->load[v] -= sent;
        given->load[goal] += sent;
        for (int64_t node = goal; node != v; node = given->ends[given->came[node]]) {
            given->share[given->came[node]] -= sent;
            given->share[given->came[node] ^ 1] += sent;
        }
    }
};

}  // namespace

// Takahashi, Fagan and Chin (1973): from the last column on, with Z the inverse,
//
//     Z(i, j) = - sum over k > j of Z(i, k) L(k, j),    Z(j, j) = 1 / D(j) - sum Z(k, j) L(k, j)
//
// where only k with L(k, j) != 0 count: as many products as the factorisation takes.
int64_t invert_columns(const sparse_factor *factor, int64_t column, int64_t work, double *inverse) {
    while (column > 0 && work > 0) {
        const int64_t j = --column, first = factor->start[j], last = factor->start[j + 1];
        double diagonal = 1.0 / factor->pivot[j];
        for (int64_t e = last - 1; e > first; --e) {
            double total = 0.0;
            for (int64_t f = first + 1; f < last; ++f)
                total -=
                    inverse[place_of(factor, factor->row[e], factor->row[f])] * factor->lower[f];
            inverse[e] = total;
        }
        for (int64_t f = first + 1; f < last; ++f) diagonal -= factor->lower[f] * inverse[f];
        inverse[first] = diagonal;
        work -= (last - first) * (last - first);
    }
    return column;
}

void inverse_differences(const sparse_factor *factor, const double *inverse, int64_t edges,
                         const int64_t *ends, double *out) {
    for (int64_t e = 0; e < edges; ++e) {
        const int64_t i = ends[2 * e] - 1, j = ends[2 * e + 1] - 1;
        const double between = i >= 0 && j >= 0 ? inverse[place_of(factor, i, j)] : 0.0;
        out[2 * e] = (j >= 0 ? inverse[place_of(factor, j, j)] : 0.0) - between;
        out[2 * e + 1] = (i >= 0 ? inverse[place_of(factor, i, i)] : 0.0) - between;
    }
}

int64_t relieve_node(const edge_shares *shares, int64_t v, double tol) {
    const Sharing s{shares, NOTHING * tol / static_cast<double>(shares->nodes)};
    while (shares->load[v] > shares->room[v] + tol) {
        int64_t goal = NONE;
        const int64_t reached = s.search(v, &goal);
        if (goal != NONE) s.move(v, goal);
        for (int64_t i = 0; i < reached; ++i) shares->came[shares->queue[i]] = UNSEEN;
        if (goal == NONE) return 0;
    }
    return 1;
}
