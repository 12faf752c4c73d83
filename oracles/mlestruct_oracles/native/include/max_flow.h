// Boykov and Kolmogorov's two search trees (PAMI 26, 2004): minimum cuts of undirected graphs.
//
// One tree grows from the source's side, one from the sink's. Where they touch, flow is sent from
// root to root; nodes that a full arc cuts off look for another parent in their tree, or are free
// again. All numbers are whole and below 2^53, so that no sum is rounded and the cut is exactly
// minimal.
#pragma once

#include "lanes.h"

namespace {

constexpr int32_t NONE = -1, ROOT = -2, ORPHAN = -3;  // in the place of the arc to a parent

// One way of an edge; twin is the other way, and rest what still fits. (Memory counts: with the
// twin's rest here too, large graphs took a tenth longer.)
struct Arc {
    int32_t head, twin;
    double rest;
};

struct Node {
    int32_t parent;  // the arc to it
    bool sink;       // whether it belongs to the sink's tree
    bool queued;     // whether it waits to be grown from
};

// A queue of nodes, each at most once.
struct Ring {
    int32_t *entry;
    int64_t size, first, count;

    void append(int32_t i) {
        const int64_t place = first + count++;
        entry[place < size ? place : place - size] = i;
    }
    int32_t take() {
        const int32_t i = entry[first];
        first = first + 1 < size ? first + 1 : 0;
        --count;
        return i;
    }
};

// The cut least in the capacities of cut edges + |pull| of denied nodes: one with positive pull
// wants the sink's side, one with negative pull the source's. Of several the one with the fewest
// nodes on the sink's side.
struct Cut {
    int64_t nodes, edges;
    int32_t *ends;     // of edges, as they were added
    double *capacity;  // likewise
    double *excess;    // what the source can still bring; negative: what can still go to the sink
    int32_t *start;    // node i has the arcs start[i] to start[i + 1]
    Arc *arc;
    Node *node;
    Ring active;
    int32_t *orphans;  // a stack
    int32_t orphaned = 0;

    // Make room for so many; false where 32 bits do not number them, or memory is short.
    bool reserve(Arena &arena, int64_t most_nodes, int64_t most_edges) {
        if (most_nodes >= INT32_MAX - 3 || most_edges >= 1 << 30) return false;
        ends = arena.array<int32_t>(2 * most_edges);
        capacity = arena.array<double>(most_edges);
        excess = arena.array<double>(most_nodes);
        start = arena.array<int32_t>(most_nodes + 2);
        arc = arena.array<Arc>(2 * most_edges);
        node = arena.array<Node>(most_nodes);
        active = {arena.array<int32_t>(most_nodes + 1), most_nodes + 1, 0, 0};
        orphans = arena.array<int32_t>(most_nodes);
        return !arena.failed;
    }

    int32_t add_node(double pull) {
        excess[nodes] = -pull;
        return static_cast<int32_t>(nodes++);
    }

    void add_edge(int32_t i, int32_t j, double most) {
        ends[2 * edges] = i;
        ends[2 * edges + 1] = j;
        capacity[edges++] = most;
    }

    bool on_sinks_side(int64_t i) const { return node[i].parent != NONE && node[i].sink; }

    // Send flow from tree to tree until they cannot meet.
    void solve() {
        sort_arcs();
        for (int32_t i = 0; i < nodes; ++i) {
            node[i] = {NONE, excess[i] < 0, false};
            if (excess[i] == 0) continue;
            node[i].parent = ROOT;
            activate(i);
        }
        for (int32_t i = next_active(); i != NONE;) {
            const int32_t bridge = grow(i);
            if (bridge != NONE) {
                // The node stays at work, and counts as queued while its tree is repaired.
                node[i].queued = true;
                augment(bridge);
                while (orphaned > 0) adopt(orphans[--orphaned]);
                node[i].queued = false;
                if (node[i].parent != NONE) continue;
            }
            i = next_active();
        }
    }

    // Sort the arcs by their tails. While they are counted in, start[i + 1] is where the next arc
    // of node i goes.
    void sort_arcs() {
        for (int64_t i = 0; i <= nodes + 1; ++i) start[i] = 0;
        for (int64_t k = 0; k < 2 * edges; ++k) ++start[ends[k] + 2];
        for (int64_t i = 0; i < nodes; ++i) start[i + 2] += start[i + 1];
        for (int64_t e = 0; e < edges; ++e) {
            const int32_t i = ends[2 * e], j = ends[2 * e + 1];
            const int32_t to = start[i + 1]++, from = start[j + 1]++;
            arc[to] = {j, from, capacity[e]};
            arc[from] = {i, to, capacity[e]};
        }
    }

    void send(int32_t a, double sent) {
        Arc &one = arc[a], &other = arc[one.twin];
        one.rest -= sent;
        other.rest += sent;
    }

    // What can still flow over an arc of this node's tree, away from its root.
    double room(const Arc &a, bool sink) const { return sink ? arc[a.twin].rest : a.rest; }

    void activate(int32_t i) {
        if (node[i].queued) return;
        node[i].queued = true;
        active.append(i);
    }

    int32_t next_active() {
        while (active.count > 0) {
            const int32_t i = active.take();
            node[i].queued = false;
            if (node[i].parent != NONE) return i;
        }
        return NONE;
    }

    // Take free neighbours into the node's tree. Return the first arc from the source's tree to the
    // sink's.
    int32_t grow(int32_t i) {
        const bool sink = node[i].sink;
        for (int32_t a = start[i]; a < start[i + 1]; ++a) {
            if (!(room(arc[a], sink) > 0)) continue;
            Node &other = node[arc[a].head];
            if (other.parent == NONE) {
                other.sink = sink;
                other.parent = arc[a].twin;
                activate(arc[a].head);
            } else if (other.sink != sink) {
                return sink ? arc[a].twin : a;
            }
        }
        return NONE;
    }

    void orphan(int32_t i) {
        node[i].parent = ORPHAN;
        orphans[orphaned++] = i;
    }

    // Send all that fits from root to root over the bridge; cut-off nodes become orphans.
    void augment(int32_t bridge) {
        const int32_t tips[2] = {arc[arc[bridge].twin].head, arc[bridge].head};
        int32_t root[2];
        double sent = arc[bridge].rest;
        for (int side = 0; side < 2; ++side) {
            int32_t i = tips[side];
            for (; node[i].parent != ROOT; i = arc[node[i].parent].head)
                sent = smaller(sent, room(arc[node[i].parent], side == 0));
            sent = smaller(sent, side ? -excess[i] : excess[i]);
            root[side] = i;
        }
        send(bridge, sent);
        for (int side = 0; side < 2; ++side) {
            for (int32_t i = tips[side]; i != root[side];) {
                const int32_t a = node[i].parent;
                send(side ? a : arc[a].twin, sent);
                if (room(arc[a], side == 0) <= 0) orphan(i);
                i = arc[a].head;
            }
            excess[root[side]] += side ? sent : -sent;
        }
        for (int32_t i : root)
            if (excess[i] == 0) orphan(i);
    }

    // A rooted neighbour of the same tree becomes the parent, else the node is free.
    void adopt(int32_t i) {
        for (int32_t a = start[i]; a < start[i + 1]; ++a) {
            const int32_t j = arc[a].head;
            if (!(room(arc[a], !node[i].sink) > 0)) continue;
            if (node[j].parent == NONE || node[j].sink != node[i].sink || !rooted(j)) continue;
            node[i].parent = a;
            return;
        }
        node[i].parent = NONE;
        release(i);
    }

    bool rooted(int32_t i) const {
        while (node[i].parent >= 0) i = arc[node[i].parent].head;
        return node[i].parent == ROOT;
    }

    // A freed node's children become orphans; neighbours that may take it in become active.
    void release(int32_t i) {
        const bool sink = node[i].sink;
        for (int32_t a = start[i]; a < start[i + 1]; ++a) {
            const int32_t j = arc[a].head, above = node[j].parent;
            if (above == NONE || node[j].sink != sink) continue;
            if (room(arc[a], !sink) > 0) activate(j);
            if (above >= 0 && arc[above].head == i) orphan(j);
        }
    }
};

}  // namespace
