// Edge weights shared between the ends of edges (Hakimi): paths from nodes with too much.
#include "trees.h"

#include "lanes.h"

namespace {

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
