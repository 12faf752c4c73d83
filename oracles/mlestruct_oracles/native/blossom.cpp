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
// `Forest` holds trees and blossoms, and for every vertex and blossom a time before which it has no
// event. Its parameter `Dense` or `Sparse` looks at a vertex's edges: a row of a matrix, or a list.
#include "blossom.h"

#include "include/blossom_edges.h"

namespace {

constexpr int64_t NO_MATCHING = -1;

struct Event {
    enum Kind { NEVER, PAIR, NEAR, USED_UP, SPENT } kind;
    double time;
    int64_t u, v;  // whose event it is: a vertex or a blossom; the other end of a tight edge
};
constexpr Event NO_EVENT{Event::NEVER, INF, NONE, NONE};

double ceiling(double x) {  // of whole numbers and halves
    if (!(x < 0x1p52 && x > -0x1p52)) return x;
    const double whole = static_cast<double>(static_cast<int64_t>(x));
    return whole < x ? whole + 1.0 : whole;
}

template <class Edges>
struct Forest {
    int32_t n, stamp = 0;
    bool perfect;
    Node *node;
    Vertex *vertex;
    double *half;   // of nodes: z / 2 of blossoms, minus now where outer and plus now where inner
    int32_t *size;  // of nodes: how many vertices
    int32_t *queue, *spare;  // outer nodes still to be scanned; unused blossoms
    int32_t queued = 0, spares = 0;
    Times pairs, times;  // of outer vertices; of free vertices and inner blossoms
    Edges edges;

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
        pairs.reserve(arena, count);
        times.reserve(arena, nodes);
        edges.vertex = vertex;
        edges.n = count;
        edges.reserve(arena);
        return !arena.failed;
    }

    // Duals that cover every edge, and a matching along tight edges: half of a row's greatest
    // weight first, then each dual in turn as low as it goes. Whole weights start from whole duals,
    // which keeps every later one a multiple of 1/2. Return whether all vertices have edges.
    bool start(double *y) {
        bool whole = true, isolated = false;
        for (int32_t v = 0; v < n; ++v) y[v] = 0.0;
        for (int32_t v = 0; v < n; ++v) {
            const double most = vertex[v].y = edges.excess(y, v) / 2.0;
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
            const double need = edges.excess(y, v);
            y[v] = larger(need, lowest);
            if (node[v].mate != NONE || !(need >= lowest && need > -INF)) continue;
            const int32_t u = edges.tight(y, node, v, need);
            if (u == NONE) continue;
            node[v].mate = u;
            node[u].mate = v;
        }
        for (int32_t v = 0; v < n; ++v) {
            vertex[v] = {y[v], INF, v, v, NONE, FREE};
            edges.begin(v);
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
        if (of >= n) times.set(of, INF);
    }

    // Label the node, whose vertices' duals change with the meaning of the clock.
    void relabel(int32_t of, Label label, double change) {
        node[of].label = label;
        each_vertex(of, [&](int32_t v) {
            vertex[v].y += change;
            vertex[v].state = label;
            edges.label(v, label);
            times.set(v, label == FREE ? edges.near(v) + vertex[v].y : INF);
            if (label == FREE) pairs.set(v, INF);
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
        if (of >= n) times.set(of, half[of]);
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
            edges.moved(v, head);
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

    // Scan every queued outer node, then let later scans see its vertices. A vertex's time is when
    // its first edge to another outer vertex is tight, or its dual used up.
    void scan_queue() {
        while (queued > 0) {
            const int32_t outer = queue[--queued];
            each_vertex(outer, [&](int32_t v) { expect(v, edges.scan(v, times)); });
            each_vertex(outer, [&](int32_t v) {
                vertex[v].state = SCANNED;
                edges.scanned(v);
            });
        }
    }

    void expect(int64_t v, double pair) {
        pairs.set(v, perfect ? pair / 2.0 : smaller(pair / 2.0, vertex[v].y));
    }

    // The earliest event, of several at one time that of an outer vertex. A time may be too early,
    // since edges of trees dissolved meanwhile stay in it; when it is the least of all, a look at
    // the vertex's edges makes it exact.
    Event next(double now) {
        for (;;) {
            const bool outer = pairs.least() <= times.least();
            const double time = larger(now, outer ? pairs.least() : times.least());
            if (!(time < INF)) return NO_EVENT;
            const int64_t u = outer ? pairs.first() : times.first();
            if (u >= n) return {Event::USED_UP, time, u, NONE};
            const Best best = outer ? edges.best_pair(u) : edges.nearest(u);
            const double exact = outer ? best.value / 2.0 : best.value + vertex[u].y;
            if (exact <= time) return {outer ? Event::PAIR : Event::NEAR, time, u, best.at};
            if (outer && !perfect && vertex[u].y <= time) return {Event::SPENT, time, u, NONE};
            if (outer)
                expect(u, best.value);
            else
                times.set(u, exact);
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
            Node &free = node[top(u)];
            if (free.mate != NONE) {
                grow(v, u, now);
                return 0;
            }
            free.base = u;
            free.mate = v;
            finish(v, u, now);
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
            const Event event = next(now);
            if (event.kind == Event::NEVER) return false;
            now = larger(now, event.time);
            trees -= turn(event, now);
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

}  // namespace

int64_t blossom_dense(const double *weights, bool perfect, const blossom_answer *answer) {
    const int64_t n = answer->n;
    Arena arena;
    Forest<Dense> forest{};
    double *y = arena.array<double>(n + EIGHT, 0.0);
    double *padded = n < EIGHT ? arena.array<double>(EIGHT * EIGHT, -INF) : nullptr;
    forest.edges.wide = padded ? EIGHT : n;
    forest.edges.weights = padded ? padded : weights;
    if (!forest.reserve(arena, n, perfect)) return NO_MEMORY;
    for (int64_t k = 0; padded && k < n * n; ++k) padded[k / n * EIGHT + k % n] = weights[k];
    return forest.solve(y, *answer);
}

int64_t blossom_sparse(int64_t edges, const int64_t *ends, const double *weights, bool perfect,
                       const blossom_answer *answer) {
    Arena arena;
    Forest<Sparse> forest{};
    double *y = arena.array<double>(answer->n);
    forest.edges.edge = arena.array<Edge>(2 * edges);
    if (!forest.reserve(arena, answer->n, perfect)) return NO_MEMORY;
    forest.edges.fill(edges, ends, weights);
    return forest.solve(y, *answer);
}

// In tiles, so that writes of (j, i) stay in the cache.
void blossom_table(int64_t n, const double *score, double *table) {
    constexpr int64_t TILE = 32;
    for (int64_t top = 0; top < n; top += TILE)
        for (int64_t left = top; left < n; left += TILE)
            for (int64_t i = top; i < top + TILE && i < n; ++i)
                for (int64_t j = left > i ? left : i + 1; j < left + TILE && j < n; ++j)
                    table[i * n + j] = table[j * n + i] =
                        score[i * (2 * n - i - 1) / 2 - i - 1 + j];
    for (int64_t i = 0; i < n; ++i) table[i * n + i] = -INF;
}
