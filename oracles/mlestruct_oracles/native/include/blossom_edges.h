// What the blossom algorithm looks edges up in: a matrix, or lists; and the tree of its times.
#pragma once

#include <initializer_list>

#include "lanes.h"

namespace {

constexpr int32_t NONE = -1;
enum Label : int32_t { FREE, OUTER, INNER, SCANNED };  // SCANNED: outer, its edges are recorded

// A vertex (numbers below n) or a blossom (numbers from n on).
struct Node {
    int32_t parent = NONE;  // the blossom directly around, or NONE; unused blossoms are their own
    int32_t base;           // the vertex at the matched edge, up to date for outermost nodes
    int32_t mate = NONE;    // the vertex at the other end of that edge, or NONE
    int32_t following, previous;  // the children next to it on the odd cycle of the blossom around
    int32_t link_from, link_to;   // the cycle's edge from this child (a vertex in it) to the next
    int32_t first, last;          // its vertices are a list, continued by Vertex::after
    int32_t label, tree;          // of outermost nodes
    int32_t via_from = NONE,
            via_to = NONE;   // of inner nodes: the tree's edge to it, the outer end first
    int32_t mark;            // the last walk to a root that passed
    int32_t later, earlier;  // the ring of its tree's outermost nodes
};

// All that the scan of an edge reads lies in 32 bytes: large graphs wait for memory above all.
struct Vertex {
    double y;       // y + now of outer vertices, y - now of inner ones: time changes none of them
    double near;    // Sparse: the least y[u] - weight over scanned outer vertices u, or less
    int32_t head;   // the first vertex of the outermost node it lies in
    int32_t owner;  // of first vertices: that outermost node
    int32_t after;  // the next vertex of the node's list
    int32_t state;  // the label, or SCANNED
};

struct Best {
    double value;
    int64_t at;
};

// Times in a tree whose root is the least: entry i is the least of 8 (i - 6) to 8 (i - 6) + 7.
struct Times {
    static constexpr int64_t ROOT = 7;
    double *at;
    int64_t leaves;  // where the entry of node 0 is

    void reserve(Arena &arena, int64_t size) {
        leaves = 8;
        for (int64_t width = 8; width < size; width *= 8) leaves += width;
        at = arena.array<double>(leaves + whole_eights(size), INF);
    }

    double least() const { return at[ROOT]; }

    int64_t first() const {
        int64_t i = ROOT;
        while (i < leaves)
            for (i = 8 * (i - 6); at[i] != at[ROOT];) ++i;
        return i - leaves;
    }

    void lower(int64_t i, double time) {
        for (; i >= ROOT && time < at[i]; i = (i >> 3) + 6) at[i] = time;
    }

    // Lower the times of eight nodes in a row to these, where they are not lower.
    INLINE void lower_eight(int64_t first, Row row) {
        double *own = at + leaves + first;
        for (int k = 0; first % EIGHT && k < EIGHT; ++k) lower(leaves + first + k, row[k]);
        if (first % EIGHT) return;
        store(own, smaller(load(own), row));
        lower(((leaves + first) >> 3) + 6, smallest(row));
    }

    // Write a time and keep the entries above the least of theirs: O(log n) if it was or is so.
    void set(int64_t of, double time) {
        for (int64_t i = leaves + of;;) {
            const double former = at[i], *own = at + (i & -8);
            at[i] = time;
            i = (i >> 3) + 6;
            if (i < ROOT || time == former || !(time < at[i] || former == at[i])) return;
            time = smaller(smaller(smaller(own[0], own[1]), smaller(own[2], own[3])),
                           smaller(smaller(own[4], own[5]), smaller(own[6], own[7])));
        }
    }
};

// Edges given as a matrix. A vertex that turns outer has its row scanned once; afterwards only
// lower bounds are kept, and made exact (one row) when they are the least of all. Each of at most n
// / 2 augmentations scans at most n rows: O(n^3). Rows read again because a bound was too low could
// on paper exceed that; they stayed below a third of the time.
struct Dense {
    const double *weights;
    int64_t n, wide;  // vertices; entries of a row, which are 8 at least
    Vertex *vertex;
    double *free_y;   // y of free vertices, else infinity
    double *outer_y;  // y of scanned outer vertices, else infinity
    double *least;    // the least y[u] - weight over outer vertices u, or less
    double *head;     // as in `vertex`

    void reserve(Arena &arena) {
        for (double **values : {&free_y, &outer_y, &least, &head})
            *values = arena.array<double>(wide, INF);
    }

    const double *row(int64_t v) const { return weights + v * wide; }

    // Visit the entries of a row, eight at a time; the last eight may overlap those before.
    template <class Visit>
    INLINE void each_eight(Visit visit) const {
        for (int64_t v = 0; v < wide; v += EIGHT) visit(v + EIGHT > wide ? wide - EIGHT : v);
    }

    // Return the greatest weight at v minus the other end's y: what v's own dual has to cover.
    double excess(double *y, int32_t v) const {
        const double *own = row(v), before = y[v];
        y[v] = INF;  // leaves the diagonal out
        Row most = row_of(-INF);
        each_eight([&](int64_t u) { most = larger(most, load(own + u) - load(y + u)); });
        y[v] = before;
        return largest(most);
    }

    // Return an exposed neighbour over an edge of v that needs exactly this dual, or NONE.
    int32_t tight(const double *y, const Node *node, int32_t v, double need) const {
        const double *own = row(v);
        for (int32_t u = 0; u < wide; ++u)
            if (own[u] - y[u] == need && u != v && node[u].mate == NONE) return u;
        return NONE;
    }

    void begin(int32_t v) {
        free_y[v] = vertex[v].y;
        head[v] = v;
    }
    void moved(int32_t v, int32_t to) { head[v] = to; }
    void label(int32_t v, Label label) {
        free_y[v] = label == FREE ? vertex[v].y : INF;
        if (label == FREE) outer_y[v] = INF;
    }
    double near(int64_t v) const { return least[v]; }

    // Record the edges of a new outer vertex: lower the times of what they are nearer to; return
    // twice the time of the first to another outer vertex. Edges within its own node count too.
    double scan(int32_t u, Times &times) {
        const double *own = row(u);
        const Row y_u = row_of(vertex[u].y);
        Row best = row_of(INF);
        each_eight([&](int64_t v) {
            const Row reach = y_u - load(own + v), old = load(least + v);
            best = smaller(best, reach + load(outer_y + v));
            if (!any(reach < old)) return;
            store(least + v, smaller(reach, old));
            times.lower_eight(v, reach + load(free_y + v));
        });
        return smallest(best);
    }

    void scanned(int32_t v) { outer_y[v] = vertex[v].y; }

    // Return the least of a row's values, and the first place that has it: at(v) are eight of them.
    template <class Values>
    INLINE Best least_of_row(Values at) const {
        Row least = row_of(INF);
        each_eight([&](int64_t v) { least = smaller(least, at(v)); });
        const double best = smallest(least);
        if (best == INF) return {INF, NONE};
        for (int64_t first = 0;; first += EIGHT) {
            const int64_t v = first + EIGHT > wide ? wide - EIGHT : first;
            const Row values = at(v);
            if (!any(values == row_of(best))) continue;
            int k = 0;
            while (values[k] != best) ++k;
            return {best, v + k};
        }
    }

    // Twice the time of u's best edge to an outer vertex of another node, exactly, and its end.
    Best best_pair(int64_t u) const {
        const double *weight = row(u), y_u = vertex[u].y, own = head[u];
        return least_of_row([&](int64_t v) {
            const Row value = (y_u - load(weight + v)) + load(outer_y + v);
            return select(load(head + v) == row_of(own), row_of(INF), value);
        });
    }

    // The least y[u] - weight over scanned outer vertices u, exactly, and that u.
    Best nearest(int64_t v) {
        const double *weight = row(v);
        const Best best =
            least_of_row([&](int64_t u) { return load(outer_y + u) - load(weight + u); });
        least[v] = best.value;
        return best;
    }
};

struct Edge {
    double weight;
    int64_t target;
};

// Edges given by lists: those of v begin at edge[start[v]]. Each of at most n / 2 augmentations
// scans at most all edges, O(n m log n) in all, and far less where trees stay small.
struct Sparse {
    int64_t *start;
    Edge *edge;
    Vertex *vertex;
    int64_t n;

    void reserve(Arena &arena) { start = arena.array<int64_t>(n + 2, 0); }

    // Put every edge into the lists of both its ends.
    void fill(int64_t edges, const int64_t *ends, const double *weights) {
        for (int64_t k = 0; k < 2 * edges; ++k) ++start[ends[k] + 2];
        for (int64_t v = 2; v < n + 2; ++v) start[v] += start[v - 1];
        for (int64_t k = 0; k < 2 * edges; ++k)
            edge[start[ends[k] + 1]++] = {weights[k / 2], ends[k ^ 1]};
    }

    double excess(const double *y, int32_t v) const {
        double most = -INF;
        for (int64_t k = start[v]; k < start[v + 1]; ++k)
            most = larger(most, edge[k].weight - y[edge[k].target]);
        return most;
    }

    int32_t tight(const double *y, const Node *node, int32_t v, double need) const {
        for (int64_t k = start[v]; k < start[v + 1]; ++k) {
            const int64_t u = edge[k].target;
            if (node[u].mate == NONE && edge[k].weight - y[u] == need) return u;
        }
        return NONE;
    }

    void begin(int32_t) {}
    void moved(int32_t, int32_t) {}

    void label(int32_t, Label) {}
    void scanned(int32_t) {}
    double near(int64_t v) const { return vertex[v].near; }

    // Record the edges of a new outer vertex, as Dense does.
    double scan(int32_t u, Times &times) {
        const double y_u = vertex[u].y;
        double best = INF;
        for (int64_t k = start[u]; k < start[u + 1]; ++k) {
            Vertex &other = vertex[edge[k].target];
            const double reach = y_u - edge[k].weight;
            if (reach < other.near) {
                other.near = reach;
                if (other.state == FREE)
                    times.lower(times.leaves + edge[k].target, reach + other.y);
            }
            if (other.state == SCANNED) best = smaller(best, reach + other.y);
        }
        return best;
    }

    // Return the least value at v's edges to scanned outer vertices, and the first that has it.
    template <class Values>
    INLINE Best least_of_edges(int64_t v, Values at) const {
        Best best{INF, NONE};
        for (int64_t k = start[v]; k < start[v + 1]; ++k) {
            const Vertex &other = vertex[edge[k].target];
            if (other.state != SCANNED) continue;
            const double value = at(other, edge[k].weight);
            if (value < best.value) best = {value, edge[k].target};
        }
        return best;
    }

    Best best_pair(int64_t u) const {
        const Vertex &own = vertex[u];
        return least_of_edges(u, [&](const Vertex &other, double weight) {
            return other.head != own.head ? (own.y - weight) + other.y : INF;
        });
    }

    Best nearest(int64_t v) {
        const Best best =
            least_of_edges(v, [](const Vertex &other, double weight) { return other.y - weight; });
        vertex[v].near = best.value;
        return best;
    }
};

}  // namespace
