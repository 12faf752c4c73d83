// Heaviest matchings of general graphs (Edmonds 1965; alternating trees grow from all exposed
// vertices at once, as in Kolmogorov's Blossom V, 2009, Math. Prog. Comp. 1).
//
// The dual puts y on vertices and z >= 0 on odd sets of vertices, the blossoms; it covers an edge
// where y_u + y_v plus the z of all blossoms around it are at least its weight, and the edge is
// tight where they are equal. Time passes for all trees at once: each y of an outer vertex falls
// with it, each y of an inner one rises. The next event is an edge that turns tight (between two
// trees: augment; within one: shrink a blossom; to a free vertex: grow), an inner blossom whose z
// is used up (expand), or, where vertices may stay single, an outer y that is used up. Halves are
// exact in doubles, hence whole weights have exact answers.
//
// `Forest` holds trees and blossoms. Its parameter finds the next event: `Dense` by vectorised
// passes through rows of a matrix, `Sparse` by a tree of times over lists of edges.
#include "blossom.h"

#include "lanes.h"

namespace {

constexpr int32_t NONE = -1;
constexpr int64_t NO_MATCHING = -1;
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
    int32_t state;  // Sparse: the label, or SCANNED
};

struct Event {
    enum Kind { NEVER, PAIR, NEAR, USED_UP, SPENT } kind;
    double time;
    int64_t u, v;  // the ends of the tight edge, u the outer one; a blossom or a vertex else
};
constexpr Event NO_EVENT{Event::NEVER, INF, NONE, NONE};

struct Best {
    double value;
    int64_t at;
};

double ceiling(double x) {  // of whole numbers and halves
    if (!(x < 0x1p52 && x > -0x1p52)) return x;
    const double whole = static_cast<double>(static_cast<int64_t>(x));
    return whole < x ? whole + 1.0 : whole;
}

template <class Events>
struct Forest {
    int32_t n, stamp = 0;
    bool perfect;
    Node *node;
    Vertex *vertex;
    double *half;   // of nodes: z / 2 of blossoms, minus now where outer and plus now where inner
    int32_t *size;  // of nodes: how many vertices
    int32_t *queue, *spare;  // outer nodes still to be scanned; unused blossoms
    int32_t queued = 0, spares = 0;
    Events events;

    bool reserve(Arena &arena, int64_t count, bool all) {
        const int64_t nodes = count + count / 2;
        n = static_cast<int32_t>(count);
        perfect = all;
        node = arena.array<Node>(nodes, Node{});
        vertex = arena.array<Vertex>(count);
        half = arena.array<double>(nodes, 0.0);
        size = arena.array<int32_t>(nodes, 1);
        queue = arena.array<int32_t>(nodes);
        spare = arena.array<int32_t>(count / 2);
        events.vertex = vertex;
        events.perfect = all;
        events.n = count;
        events.reserve(arena, nodes);
        return !arena.failed;
    }

    // Duals that cover every edge, and a matching along tight edges: half of a row's greatest
    // weight first, then each dual in turn as low as it goes. Whole weights start from whole duals,
    // which keeps every later one a multiple of 1/2. Return whether all vertices have edges.
    bool start(double *y) {
        bool whole = true, isolated = false;
        for (int32_t v = 0; v < n; ++v) y[v] = 0.0;
        for (int32_t v = 0; v < n; ++v) {
            const double most = vertex[v].y = events.excess(y, v) / 2.0;
            isolated |= most == -INF;
            whole &= ceiling(2.0 * most) == 2.0 * most;
        }
        if (perfect && isolated) return false;
        const double lowest = perfect ? -INF : 0.0;
        for (int32_t v = 0; v < n; ++v) {
            const double most = larger(vertex[v].y, lowest);
            y[v] = whole ? ceiling(most) : most;
        }
        for (int32_t i = 0; i < n + n / 2; ++i) {
            Node &own = node[i];
            own.base = own.first = own.last = own.later = own.earlier = i;
            if (i >= n) spare[spares++] = n + n / 2 - 1 - (i - n);
        }
        for (int32_t v = 0; v < n; ++v) {
            const double need = events.excess(y, v);
            y[v] = larger(need, lowest);
            if (node[v].mate != NONE || !(need >= lowest && need > -INF)) continue;
            const int32_t u = events.tight(y, node, v, need);
            if (u == NONE) continue;
            node[v].mate = u;
            node[u].mate = v;
        }
        for (int32_t v = 0; v < n; ++v) {
            vertex[v] = {y[v], INF, v, v, NONE, FREE};
            events.begin(v);
        }
        return true;
    }

    int32_t top(int32_t v) const { return vertex[vertex[v].head].owner; }

    template <class Visit>
    void each_vertex(int32_t of, Visit visit) {
        const int32_t end = vertex[node[of].last].after;
        for (int32_t v = node[of].first; v != end; v = vertex[v].after) visit(v);
    }

    // Visit a blossom's children around its cycle.
    template <class Visit>
    void each_child(int32_t start, Visit visit) {
        int32_t child = start;
        do {
            visit(child);
            child = node[child].following;
        } while (child != start);
    }

    // Put the node into the ring of its tree, beside a node that is in it.
    void enter(int32_t of, int32_t beside) {
        const int32_t following = node[beside].later;
        node[beside].later = node[following].earlier = of;
        node[of].later = following;
        node[of].earlier = beside;
    }

    // Take the node out of the ring of its tree; nothing keeps it from being used up either.
    void leave(int32_t of) {
        node[node[of].earlier].later = node[of].later;
        node[node[of].later].earlier = node[of].earlier;
        node[of].later = node[of].earlier = of;
        if (of >= n) events.ends(of, INF);
    }

    // Label the node, whose vertices' duals change with the meaning of the clock.
    void relabel(int32_t of, Label label, double change) {
        node[of].label = label;
        each_vertex(of, [&](int32_t v) {
            vertex[v].y += change;
            events.label(v, label);
        });
    }

    // Let a node outside all rings be outer, to be scanned.
    void make_outer(int32_t of, int32_t tree, double now, double change) {
        node[of].tree = tree;
        half[of] -= now;
        queue[queued++] = of;
        relabel(of, OUTER, change);
    }

    // Put a node, whose vertices are inner, below the outer vertex `from` into its tree.
    void hang(int32_t of, int32_t from, int32_t to, double now) {
        node[of].label = INNER;
        node[of].tree = node[top(from)].tree;
        half[of] += now;
        node[of].via_from = from;
        node[of].via_to = to;
        enter(of, top(from));
        if (of >= n) events.ends(of, half[of]);
    }

    // Put the free node at v, reached from the outer vertex u, and its mate into the tree.
    void grow(int32_t u, int32_t v, double now) {
        const int32_t inner = top(v);
        relabel(inner, INNER, -now);
        hang(inner, u, v, now);
        const int32_t mate = top(node[inner].mate);
        make_outer(mate, node[inner].tree, now, now);
        enter(mate, inner);
    }

    // Match outer vertex u to v outside its tree (or to NONE), flipping the path to the root.
    void augment(int32_t u, int32_t v) {
        for (;;) {
            Node &outer = node[top(u)];
            const int32_t former = outer.mate;
            outer.base = u;
            outer.mate = v;
            if (former == NONE) return;
            Node &inner = node[top(former)];
            v = inner.via_to;
            u = inner.via_from;
            inner.base = v;
            inner.mate = u;
        }
    }

    // Return the next outer node on the way to the root, NONE at the root.
    int32_t above(int32_t of) const {
        const int32_t mate = node[of].mate;
        return mate == NONE ? NONE : top(node[top(mate)].via_from);
    }

    // Return the first node on both walks from outer u and v to their roots, NONE in two trees. The
    // walks take turns, so the cost is that of the longer way to the meeting.
    int32_t meeting(int32_t u, int32_t v) {
        int32_t one = top(u), other = top(v);
        if (node[one].tree != node[other].tree) return NONE;
        ++stamp;
        for (;;) {
            if (one != NONE) {
                if (node[one].mark == stamp) return one;
                node[one].mark = stamp;
                one = above(one);
            }
            const int32_t before = one;
            one = other == NONE ? one : other;
            other = other == NONE ? NONE : before;
        }
    }

    void link(int32_t a, int32_t b, int32_t u, int32_t v) {
        node[a].following = b;
        node[b].previous = a;
        node[a].link_from = u;
        node[a].link_to = v;
    }

    // Make one outer blossom of the odd cycle that the edge between outer vertices u and v closes;
    // their walks to the root meet at the crown. Inner children are queued, to be scanned.
    void shrink(int32_t u, int32_t v, int32_t crown, double now) {
        link(top(u), top(v), u, v);
        for (int32_t outer = top(u); outer != crown;) {
            const int32_t inner = top(node[outer].mate);
            link(inner, outer, node[outer].mate, node[outer].base);
            outer = top(node[inner].via_from);
            link(outer, inner, node[inner].via_from, node[inner].via_to);
        }
        for (int32_t outer = top(v); outer != crown;) {
            const int32_t inner = top(node[outer].mate);
            link(outer, inner, node[outer].base, node[outer].mate);
            outer = top(node[inner].via_from);
            link(inner, outer, node[inner].via_to, node[inner].via_from);
        }
        enclose(spare[--spares], crown, now);
    }

    // Move the cycle through the crown into the new blossom, and fix the children's duals at now.
    // The list of the largest child comes first: only the vertices of the others need a new head,
    // each at most log2 n times while blossoms are made.
    void enclose(int32_t blossom, int32_t crown, double now) {
        Node &own = node[blossom];
        own.base = node[crown].base;
        own.mate = node[crown].mate;
        own.parent = NONE;
        own.label = OUTER;
        own.tree = node[crown].tree;
        size[blossom] = 0;
        half[blossom] = -now;
        enter(blossom, crown);
        int32_t largest = crown;
        each_child(crown, [&](int32_t child) {
            if (size[child] > size[largest]) largest = child;
        });
        own.first = own.last = node[largest].first;
        vertex[own.first].owner = blossom;
        each_child(largest, [&](int32_t child) {
            absorb(blossom, child, now);
            if (child != largest) vertex[own.last].after = node[child].first;
            own.last = node[child].last;
        });
    }

    // Take a labelled child's vertices into the blossom; those of an inner one turn outer.
    void absorb(int32_t blossom, int32_t child, double now) {
        const bool outer = node[child].label == OUTER;
        leave(child);
        node[child].parent = blossom;
        size[blossom] += size[child];
        half[child] += outer ? now : -now;
        if (!outer) {
            queue[queued++] = child;
            relabel(child, OUTER, 2.0 * now);
        }
        const int32_t head = node[blossom].first;
        if (node[child].first != head) set_heads(node[child].first, head);
    }

    void set_heads(int32_t v, int32_t head) {
        for (; v != NONE; v = vertex[v].after) {
            vertex[v].head = head;
            events.moved(v, head);
        }
    }

    int32_t child_with(int32_t blossom, int32_t v) const {
        while (node[v].parent != blossom) v = node[v].parent;
        return v;
    }

    // Give the blossom's matched edge to its child crown and pair the others around the cycle.
    void rematch(int32_t blossom, int32_t crown) {
        node[crown].base = node[blossom].base;
        node[crown].mate = node[blossom].mate;
        for (int32_t child = node[crown].following; child != crown;) {
            Node &one = node[child], &other = node[one.following];
            one.base = other.mate = one.link_from;
            one.mate = other.base = one.link_to;
            child = other.following;
        }
    }

    // Drop an inner blossom: its children are outermost nodes, whose labels are still to be set.
    // The largest child keeps the list's head.
    void release(int32_t blossom) {
        const int32_t start = child_with(blossom, node[blossom].base);
        each_child(start, [&](int32_t child) { vertex[node[child].last].after = NONE; });
        each_child(start, [&](int32_t child) {
            node[child].parent = NONE;
            node[child].label = FREE;
            const int32_t head = node[child].first;
            vertex[head].owner = child;
            if (head != node[blossom].first) set_heads(head, head);
        });
        node[blossom].label = FREE;
        node[blossom].parent = blossom;
        leave(blossom);
        spare[spares++] = blossom;
    }

    // Undo an inner blossom whose dual is used up: its cycle's even way stays in the tree, and the
    // other children are free again.
    void expand(int32_t blossom, double now) {
        const int32_t crown = child_with(blossom, node[blossom].base);
        const int32_t entry = child_with(blossom, node[blossom].via_to);
        release(blossom);
        rematch(blossom, crown);
        hang(entry, node[blossom].via_from, node[blossom].via_to, now);
        const bool forward = top(node[entry].mate) == node[entry].following;
        for (int32_t inner = entry; inner != crown;) {
            const int32_t outer = forward ? node[inner].following : node[inner].previous;
            inner = forward ? node[outer].following : node[outer].previous;
            const Node &edge = node[forward ? outer : inner];
            make_outer(outer, node[blossom].tree, now, 2.0 * now);
            enter(outer, entry);
            hang(inner, forward ? edge.link_from : edge.link_to,
                 forward ? edge.link_to : edge.link_from, now);
        }
        each_child(crown, [&](int32_t child) {
            if (node[child].label == FREE) relabel(child, FREE, now);
        });
    }

    // Dissolve the node's augmented tree; duals are themselves again.
    void free_tree(int32_t of, double now) {
        for (;;) {
            const int32_t following = node[of].later;
            const double change = node[of].label == OUTER ? -now : now;
            half[of] -= change;
            relabel(of, FREE, change);
            leave(of);
            if (following == of) return;
            of = following;
        }
    }

    // Scan every queued outer node, then let later scans see its vertices.
    void scan_queue() {
        while (queued > 0) {
            const int32_t outer = queue[--queued];
            each_vertex(outer, [&](int32_t v) { events.scan(v); });
            each_vertex(outer, [&](int32_t v) { events.scanned(v); });
        }
    }

    // Match u, in its root's place, with v outside the tree or with NONE; dissolve the tree.
    void finish(int32_t u, int32_t v, double now) {
        augment(u, v);
        free_tree(top(u), now);
    }

    // Handle an event; return how many trees end by it.
    int32_t turn(const Event &event, double now) {
        const int32_t u = event.u, v = event.v;
        if (event.kind == Event::USED_UP) {
            expand(u, now);
            return 0;
        }
        if (event.kind == Event::SPENT) {
            finish(u, NONE, now);  // u stays single in its root's place
            return 1;
        }
        if (event.kind == Event::NEAR) {
            Node &free = node[top(v)];
            if (free.mate != NONE) {
                grow(u, v, now);
                return 0;
            }
            free.base = v;
            free.mate = u;
            finish(u, v, now);
            return 1;
        }
        const int32_t crown = meeting(u, v);
        if (crown != NONE) {
            shrink(u, v, crown, now);
            return 0;
        }
        finish(u, v, now);
        finish(v, u, now);
        return 2;
    }

    // Grow trees from all exposed vertices until each has ended; return whether that was possible.
    // Trees that are left are a witness: without the inner vertices each outer node stands alone.
    bool search() {
        int32_t trees = 0;
        for (int32_t v = 0; v < n; ++v)
            if (node[v].mate == NONE && (perfect || vertex[v].y > 0.0))
                make_outer(v, trees++, 0.0, 0.0);
        double now = 0.0;
        while (trees > 0) {
            scan_queue();
            const Event event = events.next(now);
            if (event.kind == Event::NEVER) return false;
            now = larger(now, event.time);
            const int32_t ended = turn(event, now);
            if (ended) events.trees_ended();
            trees -= ended;
        }
        return true;
    }

    // Carry the outermost nodes' matched edges down to the vertices; blossoms stay.
    void unfold() {
        int32_t depth = 0;
        for (int32_t v = 0; v < n; ++v)
            if (vertex[v].head == v && vertex[v].owner >= n) queue[depth++] = vertex[v].owner;
        while (depth > 0) {
            const int32_t blossom = queue[--depth];
            const int32_t crown = child_with(blossom, node[blossom].base);
            rematch(blossom, crown);
            each_child(crown, [&](int32_t child) {
                if (child >= n) queue[depth++] = child;
            });
        }
    }

    // Write the matching and its duals; the vertices of every blossom are neighbours in the order.
    int64_t tell(const blossom_answer &answer) {
        int64_t count = 0, sets = 0;
        for (int32_t i = 0; i < n; ++i) {
            answer.partner[i] = node[i].mate;
            answer.y[i] = perfect ? vertex[i].y : larger(vertex[i].y, 0.0);
            for (int32_t v = vertex[i].head == i ? i : NONE; v != NONE; v = vertex[v].after) {
                answer.order[count] = v;
                queue[v] = static_cast<int32_t>(count++);
            }
        }
        for (int32_t b = n; b < n + n / 2; ++b) {
            if (node[b].parent == b || !(half[b] > 0.0)) continue;
            answer.first[sets] = queue[node[b].first];
            answer.last[sets] = queue[node[b].last] + 1;
            answer.z[sets++] = 2.0 * half[b];
        }
        return sets;
    }

    // Match the graph and write what was found; `y` is memory for that.
    int64_t solve(double *y, const blossom_answer &answer) {
        if (!start(y)) {
            for (int32_t v = 0; v < n; ++v) answer.y[v] = vertex[v].y;
            return NO_MATCHING;
        }
        if (!search()) {
            for (int32_t v = 0; v < n; ++v) {
                const int32_t outermost = top(v), label = node[outermost].label;
                answer.y[v] = vertex[v].y;
                answer.witness[v] = label == OUTER ? outermost : label == INNER ? -1 : -2;
            }
            return NO_MATCHING;
        }
        unfold();
        return tell(answer);
    }
};

constexpr int64_t BLOCK = 64;
constexpr int64_t FEW = 3;  // fewer outer vertices than 1 / FEW are visited one by one

// The least of a block's values, eight at a time: at(k) are those from k on.
template <class Values>
INLINE double least_of_block(Values at) {
    Row a = at(0), b = at(EIGHT);
    for (int64_t k = 2 * EIGHT; k < BLOCK; k += 2 * EIGHT) {
        a = smaller(a, at(k));
        b = smaller(b, at(k + EIGHT));
    }
    return smallest(smaller(a, b));
}

// Lower bounds on the least of each block of values, and on the least of each block of those. They
// are lowered at once and raised when they are the least of all, so that the least of n values
// costs a look at 64 of them, at 64 blocks, and at n / 4096 tops.
struct Bounds {
    double *block, *top;
    int64_t tops;

    void reserve(Arena &arena, int64_t size) {
        tops = size / (BLOCK * BLOCK) + 1;
        block = arena.array<double>(tops * BLOCK, INF);
        top = arena.array<double>(tops, INF);
    }

    // Let the bounds allow this value at this place.
    void lower(int64_t place, double value) {
        double &own = block[place / BLOCK], &all = top[place / (BLOCK * BLOCK)];
        own = smaller(own, value);
        all = smaller(all, value);
    }

    // Return the block with the least bound, NONE if that is beyond the limit or never. Tops that
    // were too low are raised on the way.
    int64_t least_block(double limit) {
        for (;;) {
            int64_t best = 0;
            for (int64_t i = 1; i < tops; ++i)
                if (top[i] < top[best]) best = i;
            const double bound = top[best];
            if (!(bound <= limit) || bound == INF) return NONE;
            const double *blocks = block + best * BLOCK;
            top[best] = least_of_block([&](int64_t k) { return load(blocks + k); });
            if (top[best] != bound) continue;
            int64_t k = 0;
            while (blocks[k] != bound) ++k;
            return best * BLOCK + k;
        }
    }

    // Return the first place of the least value, NONE if that is beyond the limit or never.
    int64_t least_place(const double *values, double limit) {
        for (;;) {
            const int64_t at = least_block(limit);
            if (at == NONE) return NONE;
            const double bound = block[at], *own = values + at * BLOCK;
            block[at] = least_of_block([&](int64_t k) { return load(own + k); });
            if (block[at] != bound) continue;
            int64_t k = 0;
            while (own[k] != bound) ++k;
            return at * BLOCK + k;
        }
    }
};

// Events of a graph given as a matrix. A vertex that turns outer has its row scanned once.
// Afterwards only lower bounds on times are kept, per vertex and per block of vertices; a bound is
// made exact (one row) when it is the least of all. So a shrunk blossom or a dissolved tree costs
// nothing but the bounds that it made stale and that are ever needed again. Each of at most n / 2
// augmentations scans at most n rows: O(n^3). Rows read again because a bound was stale could on
// paper exceed that; they stayed below a third of the time.
struct Dense {
    const double *weights;
    int64_t n, wide;  // vertices; entries of a row, which are 8 at least
    Vertex *vertex;
    bool perfect;
    double *free_y;     // y of free vertices, else infinity
    double *outer_y;    // y of scanned outer vertices, else infinity
    double *near;       // the least y[u] - weight over outer vertices u, or less
    double *near_from;  // that u, when `near` was written
    double *pair;       // twice the time that an edge to another outer node is tight, or less
    double *used_up;    // half of outermost inner blossoms, else infinity
    double *head;       // as in `vertex`
    Bounds near_least, pair_least, outer_least, used_up_least;  // of near + free_y, and the others
    int32_t *outer;                                             // the scanned outer vertices
    int64_t outers;

    void reserve(Arena &arena, int64_t size) {
        const int64_t room = (n / BLOCK + 1) * BLOCK;
        const auto values = [&] { return arena.array<double>(room, INF); };
        free_y = values(), outer_y = values(), near = values(), near_from = values();
        pair = values(), head = values();
        used_up = arena.array<double>((size / BLOCK + 1) * BLOCK, INF);
        outer = arena.array<int32_t>(n);
        outers = 0;
        near_least.reserve(arena, n);
        pair_least.reserve(arena, n);
        outer_least.reserve(arena, n);
        used_up_least.reserve(arena, size);
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
        if (label != FREE) return;
        outer_y[v] = pair[v] = INF;
        near_least.lower(v, near[v] + vertex[v].y);
    }

    void ends(int32_t blossom, double time) {
        used_up[blossom] = time;
        used_up_least.lower(blossom, time);
    }

    // Record the edges of a new outer vertex. Edges within its own node count too, so that `pair`
    // is a lower bound, as `near_least` is.
    void scan(int32_t u) {
        const double *own = row(u);
        const Row y_u = row_of(vertex[u].y), by = row_of(u);
        Row best = row_of(INF);
        each_eight([&](int64_t v) {
            const Row reach = y_u - load(own + v), old = load(near + v);
            const Bits nearer = reach < old;
            store(near + v, select(nearer, reach, old));
            store(near_from + v, select(nearer, by, load(near_from + v)));
            best = smaller(best, reach + load(outer_y + v));
        });
        pair[u] = smallest(best);
        pair_least.lower(u, pair[u]);
        for (int64_t i = 0; i < near_least.tops; ++i) near_least.top[i] = INF;
        for (int64_t i = 0; i * BLOCK < wide; ++i) {
            near_least.block[i] = INF;
            near_least.lower(i * BLOCK, least_near(i * BLOCK));
        }
    }

    double least_near(int64_t first) const {
        const double *a = near + first, *b = free_y + first;
        return least_of_block([&](int64_t k) { return load(a + k) + load(b + k); });
    }

    void scanned(int32_t v) {
        outer_y[v] = vertex[v].y;
        outer_least.lower(v, outer_y[v]);
        outer[outers++] = v;
    }

    // Drop from the list of scanned outer vertices those that no longer are.
    void trees_ended() {
        int64_t kept = 0;
        for (int64_t i = 0; i < outers; ++i)
            if (outer_y[outer[i]] < INF) outer[kept++] = outer[i];
        outers = kept;
    }

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

    // The same of the values at scanned outer vertices, in their order.
    template <class Values>
    INLINE Best least_of_outer(Values at) const {
        Best best{INF, NONE};
        for (int64_t i = 0; i < outers; ++i) {
            const double value = at(outer[i]);
            if (value < best.value) best = {value, outer[i]};
        }
        return best;
    }

    // Twice the time of u's best edge to an outer vertex of another node, exactly, and its end.
    Best best_pair(int64_t u) const {
        const double *weight = row(u), y_u = vertex[u].y, own = head[u];
        if (FEW * outers < n)
            return least_of_outer(
                [&](int64_t v) { return head[v] != own ? (y_u - weight[v]) + outer_y[v] : INF; });
        return least_of_row([&](int64_t v) {
            const Row value = (y_u - load(weight + v)) + load(outer_y + v);
            return select(load(head + v) == row_of(own), row_of(INF), value);
        });
    }

    // The least y[u] - weight over scanned outer vertices u, exactly, and that u.
    Best best_near(int64_t v) const {
        const double *weight = row(v);
        if (FEW * outers < n)
            return least_of_outer([&](int64_t u) { return outer_y[u] - weight[u]; });
        return least_of_row([&](int64_t u) { return load(outer_y + u) - load(weight + u); });
    }

    // The first tight edge between outer nodes, if it is tight by the limit.
    Event next_pair(double limit) {
        for (;;) {
            const int64_t u = pair_least.least_place(pair, 2.0 * limit);
            if (u == NONE) return NO_EVENT;
            const double bound = pair[u];
            const Best best = best_pair(u);
            pair[u] = best.value;
            if (best.value <= bound) return {Event::PAIR, bound / 2.0, u, best.at};
        }
    }

    // The first tight edge from an outer vertex to a free one, if it is tight by the limit.
    Event next_near(double limit) {
        for (;;) {
            const int64_t at = near_least.least_block(limit);
            if (at == NONE) return NO_EVENT;
            const double bound = near_least.block[at];
            near_least.block[at] = least_near(at * BLOCK);
            if (near_least.block[at] != bound) continue;
            int64_t v = at * BLOCK;
            while (near[v] + free_y[v] != bound) ++v;
            int64_t u = static_cast<int64_t>(near_from[v]);
            if (outer_y[u] - row(u)[v] != near[v]) {
                const Best best = best_near(v);
                near[v] = best.value;
                near_from[v] = u = best.at;
            }
            if (near[v] + free_y[v] <= bound) return {Event::NEAR, bound, u, v};
            near_least.block[at] = least_near(at * BLOCK);
        }
    }

    // The earliest event; of several at one time a pair, then a free vertex, then a blossom.
    Event next(double) {
        Event last = NO_EVENT;
        const int64_t inner = used_up_least.least_place(used_up, INF);
        if (inner != NONE) last = {Event::USED_UP, used_up[inner], inner, NONE};
        const int64_t spent = perfect ? NONE : outer_least.least_place(outer_y, last.time);
        if (spent != NONE && outer_y[spent] < last.time)
            last = {Event::SPENT, outer_y[spent], spent, NONE};
        const Event free = next_near(last.time);
        const Event both = next_pair(smaller(last.time, free.time));
        if (both.kind != Event::NEVER && both.time <= smaller(last.time, free.time)) return both;
        return free.kind != Event::NEVER && free.time <= last.time ? free : last;
    }
};

struct Edge {
    double weight;
    int64_t target;
};

// Events of a graph given by lists of edges: those of v begin at edge[start[v]]. Every vertex and
// blossom has one time, and its next event is not before that. It may be too early, since edges of
// trees dissolved meanwhile stay in it; when it is the least of all, a look at the vertex's edges
// makes it exact. Each of at most n / 2 augmentations scans at most all edges, O(n m log n) in all,
// and far less where trees stay small.
struct Sparse {
    int64_t *start;
    Edge *edge;
    Vertex *vertex;
    bool perfect;
    double *times;   // entry i is the least of the entries 8 (i - 6) to 8 (i - 6) + 7
    int64_t leaves;  // where the entry of node 0 is
    int64_t n;
    static constexpr int64_t ROOT = 7;

    void reserve(Arena &arena, int64_t size) {
        leaves = 8;
        for (int64_t width = 8; width < size; width *= 8) leaves += width;
        times = arena.array<double>(leaves + whole_eights(size), INF);
        start = arena.array<int64_t>(n + 2, 0);
    }

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

    // Write a time and keep the entries above the least of theirs: O(log n) if it was or is so.
    void set_time(int64_t of, double time) {
        for (int64_t i = leaves + of;;) {
            const double former = times[i], *own = times + (i & -8);
            times[i] = time;
            i = (i >> 3) + 6;
            if (i < ROOT || time == former || !(time < times[i] || former == times[i])) return;
            time = smaller(smaller(smaller(own[0], own[1]), smaller(own[2], own[3])),
                           smaller(smaller(own[4], own[5]), smaller(own[6], own[7])));
        }
    }

    int64_t first_node() const {
        int64_t i = ROOT;
        while (i < leaves)
            for (i = 8 * (i - 6); times[i] != times[ROOT];) ++i;
        return i - leaves;
    }

    void begin(int32_t) {}
    void moved(int32_t, int32_t) {}
    void trees_ended() {}

    void label(int32_t v, Label label) {
        vertex[v].state = label;
        if (label == FREE)
            set_time(v, vertex[v].near + vertex[v].y);
        else if (label == INNER)
            set_time(v, INF);
    }

    void ends(int32_t blossom, double time) { set_time(blossom, time); }

    // Record the edges of a new outer vertex, and when one of them or its dual is used up.
    void scan(int32_t u) {
        const double y_u = vertex[u].y;
        double best = INF;
        for (int64_t k = start[u]; k < start[u + 1]; ++k) {
            Vertex &other = vertex[edge[k].target];
            const double reach = y_u - edge[k].weight;
            if (reach < other.near) {
                other.near = reach;
                if (other.state == FREE) set_time(edge[k].target, reach + other.y);
            }
            if (other.state == SCANNED) best = smaller(best, reach + other.y);
        }
        set_time(u, perfect ? best / 2.0 : smaller(best / 2.0, y_u));
    }

    void scanned(int32_t v) { vertex[v].state = SCANNED; }

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

    Event next(double now) {
        while (times[ROOT] < INF) {
            const double time = larger(now, times[ROOT]);
            const int64_t u = first_node();
            if (u >= n) return {Event::USED_UP, time, u, NONE};
            Vertex &own = vertex[u];
            if (own.state == FREE) {
                const Best best = least_of_edges(
                    u, [](const Vertex &other, double weight) { return other.y - weight; });
                own.near = best.value;
                const double exact = best.value + own.y;
                if (!(exact > time)) return {Event::NEAR, time, best.at, u};
                set_time(u, exact);
                continue;
            }
            const Best best = least_of_edges(u, [&](const Vertex &other, double weight) {
                return other.head != own.head ? (own.y - weight) + other.y : INF;
            });
            const double exact = best.value / 2.0;
            if (exact <= time) return {Event::PAIR, time, u, best.at};
            if (!perfect && own.y <= time) return {Event::SPENT, time, u, NONE};
            set_time(u, perfect ? exact : smaller(exact, own.y));
        }
        return NO_EVENT;
    }
};

}  // namespace

int64_t blossom_dense(const double *weights, bool perfect, const blossom_answer *answer) {
    const int64_t n = answer->n;
    Arena arena;
    Forest<Dense> forest{};
    double *y = arena.array<double>(n + EIGHT, 0.0);
    double *padded = n < EIGHT ? arena.array<double>(EIGHT * EIGHT, -INF) : nullptr;
    forest.events.wide = padded ? EIGHT : n;
    forest.events.weights = padded ? padded : weights;
    if (!forest.reserve(arena, n, perfect)) return NO_MEMORY;
    for (int64_t k = 0; padded && k < n * n; ++k) padded[k / n * EIGHT + k % n] = weights[k];
    return forest.solve(y, *answer);
}

int64_t blossom_sparse(int64_t edges, const int64_t *ends, const double *weights, bool perfect,
                       const blossom_answer *answer) {
    Arena arena;
    Forest<Sparse> forest{};
    double *y = arena.array<double>(answer->n);
    forest.events.edge = arena.array<Edge>(2 * edges);
    if (!forest.reserve(arena, answer->n, perfect)) return NO_MEMORY;
    forest.events.fill(edges, ends, weights);
    return forest.solve(y, *answer);
}

// Visit the pairs i < j of n in tiles, so that reads or writes of (j, i) stay in the cache; stop
// where a visit returns true.
template <class Visit>
INLINE void each_pair(int64_t n, Visit visit) {
    constexpr int64_t TILE = 32;
    for (int64_t top = 0; top < n; top += TILE)
        for (int64_t left = top; left < n; left += TILE)
            for (int64_t i = top; i < top + TILE && i < n; ++i)
                for (int64_t j = left > i ? left : i + 1; j < left + TILE && j < n; ++j)
                    if (visit(i, j)) return;
}

int64_t blossom_fault(int64_t n, const double *weights, double limit) {
    int64_t fault = -1;
    each_pair(n, [&](int64_t i, int64_t j) {
        const double weight = weights[i * n + j];
        const bool allowed = (weight < limit && weight > -limit) || weight == -INF;
        if (allowed && weight == weights[j * n + i]) return false;
        fault = i * n + j;
        return true;
    });
    return fault;
}

void blossom_table(int64_t n, const double *score, double *table) {
    each_pair(n, [&](int64_t i, int64_t j) {
        table[i * n + j] = table[j * n + i] = score[i * (2 * n - i - 1) / 2 - i - 1 + j];
        return false;
    });
    for (int64_t i = 0; i < n; ++i) table[i * n + i] = -INF;
}

int64_t blossom_around(int64_t sets, const int64_t *first, const int64_t *last, const double *z,
                       int64_t pairs, const int64_t *places, double *total) {
    int64_t room = 0;
    for (int64_t s = 0; s < sets; ++s) room = last[s] > room ? last[s] : room;
    for (int64_t k = 0; k < 2 * pairs; ++k) room = places[k] >= room ? places[k] + 1 : room;
    Arena arena;
    int64_t *around = arena.array<int64_t>(sets), *inner = arena.array<int64_t>(room, NONE);
    double *sums = arena.array<double>(sets);
    if (arena.failed) return NO_MEMORY;
    int64_t open = NONE;  // the innermost set that is not over yet
    for (int64_t s = 0; s < sets; ++s) {
        while (open != NONE && last[open] <= first[s]) open = around[open];
        if (open != NONE && last[s] > last[open]) return 0;
        sums[s] = z[s] + (open == NONE ? 0.0 : sums[open]);
        around[s] = open;
        open = s;
        for (int64_t v = first[s]; v < last[s]; ++v) inner[v] = s;
    }
    for (int64_t k = 0; k < pairs; ++k) {
        const int64_t v = places[2 * k + 1];
        int64_t s = inner[places[2 * k]];
        while (s != NONE && !(first[s] <= v && v < last[s])) s = around[s];
        total[k] = s == NONE ? 0.0 : sums[s];
    }
    return 1;
}
