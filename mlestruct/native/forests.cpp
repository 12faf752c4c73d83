// Sums and maxima over the labellings of forests of factors of any order: up from the leaves, back.
//
// A factor's table has a column for each state k of its parent v, and a row for each joint state x
// of its other variables. From the leaves up it sends v the log sum of each column, or its largest
// entry; on the way back columns become probabilities, or the first best row is chosen:
//
//     w(x) = exp of what the variables of x have received,    mass(k) = sum over x of w(x) E(x, k),
//     tau(x, k) = tau_v(k) w(x) E(x, k) / mass(k),    E = exp(scores)
//
// with E and w scaled by their largest (Koller and Friedman 2009, sections 10.2 and 13.3). Where
// the mass of a column has no digits, every column is scaled by its own largest term.
#include "forests.h"

#include "lanes.h"

namespace {

constexpr double FEW = 1e-280;  // of the largest terms: sums below have no digits

// A factor on its way up and back. Entry (o, k, i) of its table is in column k and in row
// o * inner + i.
struct Branch {
    int64_t parent, columns, outer = 1, inner = 1, rows;
    const int64_t *scope, *scope_end;
    const double *scores, *linear;       // and E by rows, of this factor or of an equal one
    double *own_linear, *weight, *mass;  // room for E; w; masses
    double top;                          // of the scores

    Branch(const forest_shape &g, int64_t f, int64_t v)
        : parent(v), scope(g.scope + g.scope_start[f]), scope_end(g.scope + g.scope_start[f + 1]) {
        bool behind = false;
        for (const int64_t *u = scope; u < scope_end; ++u) {
            const int64_t cards = g.node_start[*u + 1] - g.node_start[*u];
            if (*u != v)
                (behind ? inner : outer) *= cards;
            else
                columns = cards, behind = true;
        }
        rows = outer * inner;
    }
    int64_t entries() const { return rows * columns; }
    int64_t room() const {
        return whole_eights(entries()) + whole_eights(rows) + whole_eights(columns) + 4 * EIGHT;
    }
    void settle(double *at) {
        weight = at;
        mass = weight + whole_eights(rows) + 2 * EIGHT;
        own_linear = mass + whole_eights(columns);
    }
    bool repeats(const Branch &before, const double *table) const {
        return before.scores && before.columns == columns && before.inner == inner &&
               before.outer == outer &&
               std::memcmp(before.scores, table, entries() * sizeof(double)) == 0;
    }
};

// exp(x - the largest), zeros in the next eight or more; return the largest.
double exponentiate(const double *x, int64_t size, const double *end, double *to) {
    const int64_t whole = size / EIGHT * EIGHT;
    const Row rest = load_some(x + whole, size - whole, end, -INF);
    Row most = rest;
    for (int64_t k = 0; k < whole; k += EIGHT) most = larger(load(x + k), most);
    const Row top = row_of(largest(most));
    for (int64_t k = 0; k < whole; k += EIGHT) store(to + k, exponential(load(x + k) - top));
    store(to + whole, exponential(rest - top));
    store(to + whole + EIGHT, row_of(0.0));
    return top[0];
}

struct Forest {
    const forest_shape &g;
    Branch *branch;     // in the order of factors
    bool *reached;      // variables whose marginals or labels are known
    int64_t *place;     // where a variable's scores are
    double *score;      // of states, with what reached them from below; -inf to whole eights
    double *joint;      // of a factor's rows: scores, then marginals
    double *table;      // of a factor, by rows
    const double *end;  // of all scores

    int64_t states(int64_t v) const { return g.node_start[v + 1] - g.node_start[v]; }

    // Add up the scores of a factor's other variables for every row.
    const double *join_scores(const Branch &b) const {
        if (b.scope_end - b.scope == 2) return score + place[b.scope[*b.scope == b.parent]];
        int64_t size = 1;
        joint[0] = 0.0;
        for (const int64_t *u = b.scope; u < b.scope_end; ++u) {
            if (*u == b.parent) continue;
            const double *own = score + place[*u];
            const int64_t cards = states(*u);
            for (int64_t a = size - 1; a >= 0; --a) {
                const double before = joint[a];
                for (int64_t k = cards - 1; k >= 0; --k) joint[a * cards + k] = before + own[k];
            }
            size *= cards;
        }
        return joint;
    }

    // The way back: marginals of rows become those of the variables.
    void part_marginals(const Branch &b, double *tau) const {
        int64_t size = b.rows;
        for (const int64_t *u = b.scope_end - 1; u >= b.scope; --u) {
            if (*u == b.parent) continue;
            const int64_t cards = states(*u);
            double *own = tau + g.node_start[*u];
            size /= cards;
            copy(own, joint, cards);
            for (int64_t a = 1; a < size; ++a)
                for (int64_t k = 0; k < cards; ++k) own[k] += joint[a * cards + k];
            for (int64_t a = 0; a < size && b.scope_end - b.scope > 2; ++a) {
                double total = 0.0;
                for (int64_t k = 0; k < cards; ++k) total += joint[a * cards + k];
                joint[a] = total;
            }
            reached[*u] = true;
        }
    }

    // Return a table by rows, with eight numbers behind it: as it is, or copied.
    const double *by_rows(const Branch &b, const double *entry) const {
        if (b.inner == 1 && entry + b.entries() + EIGHT <= end) return entry;
        for (int64_t o = 0; o < b.outer; ++o)
            for (int64_t k = 0; k < b.columns; ++k)
                for (int64_t i = 0; i < b.inner; ++i)
                    table[(o * b.inner + i) * b.columns + k] = *entry++;
        return table;
    }

    // Send the parent each column's largest entry.
    void raise(const Branch &b, const double *scores) const {
        const double *others = join_scores(b), *by = by_rows(b, scores);
        double *up = score + place[b.parent];
        for (int64_t k = 0; k < b.columns; k += EIGHT) {
            Row top = row_of(-INF);
            for (int64_t x = 0; x < b.rows; ++x)
                top = larger(load(by + x * b.columns + k) + others[x], top);
            store(up + k, load(up + k) + top);
        }
    }

    // Choose the first best row beside the parent's label; return which entry that is.
    int64_t choose(const Branch &b, const double *scores, int64_t *label) const {
        const double *others = join_scores(b);
        const int64_t chosen = label[b.parent];
        double best = -INF;
        int64_t row = 0, entry = chosen * b.inner, size = b.rows;
        for (int64_t o = 0, x = 0; o < b.outer; ++o)
            for (int64_t i = 0; i < b.inner; ++i, ++x) {
                const int64_t at = (o * b.columns + chosen) * b.inner + i;
                if (!(scores[at] + others[x] > best)) continue;
                best = scores[at] + others[x];
                row = x, entry = at;
            }
        for (const int64_t *u = b.scope; u < b.scope_end; ++u) {
            if (*u == b.parent) continue;
            size /= states(*u);
            label[*u] = row / size;
            row %= size;
            reached[*u] = true;
        }
        return entry;
    }

    // Send the parent each column's log sum.
    void send_up(Branch &b, const Branch *before, const double *scores) const {
        const double *others = join_scores(b), *by = by_rows(b, scores);
        b.scores = scores;
        if (before && b.repeats(*before, scores)) {
            b.linear = before->linear, b.top = before->top;
        } else {
            b.linear = b.own_linear;
            b.top = exponentiate(by, b.entries(), by + b.entries() + EIGHT, b.own_linear);
        }
        const double *others_end = others + whole_eights(b.rows);
        const double top = b.top + exponentiate(others, b.rows, others_end, b.weight);
        for (int64_t k = 0; k < b.columns; k += EIGHT) {
            Row found;
            multiply<1>(b.weight, b.rows, b.linear + k, b.columns, &found);
            store(b.mass + k, found);
        }
        double *up = score + place[b.parent];
        for (int64_t k = 0; k < b.columns; ++k)
            if (b.mass[k] < FEW) return send_carefully(b, by, others, up);
        for (int64_t k = 0; k < b.columns; k += EIGHT)
            store(up + k, load(up + k) + (top + logarithm(load(b.mass + k))));
    }

    // The same with every column scaled by its own largest term.
    void send_carefully(Branch &b, const double *by, const double *others, double *up) const {
        b.linear = b.own_linear, b.scores = nullptr;
        for (int64_t k = 0; k < b.entries() + EIGHT; ++k) b.own_linear[k] = 0.0;
        for (int64_t k = 0; k < b.columns; ++k) {
            double top = -INF, total = 0.0, *out = b.own_linear + k;
            const double *from = by + k;
            for (int64_t x = 0; x < b.rows; ++x) top = larger(from[x * b.columns] + others[x], top);
            for (int64_t x = 0; x < b.rows && top > -INF; ++x) {
                out[x * b.columns] = exponential(from[x * b.columns] + others[x] - top);
                total += out[x * b.columns];
            }
            b.mass[k] = larger(total, 1.0);  // the largest is 1, where any is possible
            up[k] += top + logarithm(b.mass[k]);
        }
        for (int64_t x = 0; x < b.rows; ++x) b.weight[x] = 1.0;
    }

    void send_down(const Branch &b, double *entry, double *tau) const {
        const double *own = tau + g.node_start[b.parent], *from = b.linear;
        double *to = table;
        for (int64_t k = 0; k < b.columns; k += EIGHT) {
            const Row chance = load_some(own + k, b.columns - k, own + b.columns, 0.0);
            store(b.mass + k, chance / larger(load(b.mass + k), row_of(FEW)));
        }
        for (int64_t x = 0; x < b.rows; ++x, from += b.columns, to += b.columns) {
            Row total = row_of(0.0);
            for (int64_t k = 0; k < b.columns; k += EIGHT) {
                const Row both = load(from + k) * load(b.mass + k) * b.weight[x];
                store(to + k, both);
                total = total + both;
            }
            joint[x] = sum(total);
        }
        if (b.inner == 1)
            std::memcpy(entry, table, b.entries() * sizeof(double));
        else
            for (int64_t o = 0; o < b.outer; ++o)
                for (int64_t k = 0; k < b.columns; ++k)
                    for (int64_t i = 0; i < b.inner; ++i)
                        *entry++ = table[(o * b.inner + i) * b.columns + k];
        part_marginals(b, tau);
    }

    // Normalise a root's marginals; return its component's log Z.
    double end_at(int64_t v, double *tau) const {
        const double *own = score + place[v];
        double top = -INF, total = 0.0, *to = tau + g.node_start[v];
        for (int64_t k = 0; k < states(v); ++k) top = larger(own[k], top);
        if (top == -INF) return top;
        for (int64_t k = 0; k < states(v); ++k) total += to[k] = exponential(own[k] - top);
        for (int64_t k = 0; k < states(v); ++k) to[k] /= total;
        reached[v] = true;
        return top + logarithm(total);
    }

    // Give a root its first best label; return its component's score.
    double label_root(int64_t v, int64_t *label) const {
        const double *own = score + place[v];
        for (int64_t k = label[v] = 0; k < states(v); ++k)
            label[v] = own[k] > own[label[v]] ? k : label[v];
        reached[v] = true;
        return own[label[v]];
    }

    void begin(const double *scores) const {
        for (int64_t v = 0; v < g.nodes; ++v) {
            copy(score + place[v], scores + g.node_start[v], states(v));
            reached[v] = false;
        }
    }

    double sums(const double *scores, double *tau) const {
        double log_z = 0.0;
        begin(scores);
        for (int64_t k = 0; k < g.factors; ++k)
            send_up(branch[k], k ? branch + k - 1 : nullptr, scores + g.table_start[g.order[k]]);
        for (int64_t k = g.factors - 1; k >= 0 && log_z > -INF; --k) {
            if (!reached[branch[k].parent]) log_z += end_at(branch[k].parent, tau);
            send_down(branch[k], tau + g.table_start[g.order[k]], tau);
        }
        for (int64_t v = 0; v < g.nodes; ++v)
            if (!reached[v]) log_z += end_at(v, tau);
        return log_z;
    }

    double best(const double *scores, double *vertex, int64_t *label) const {
        double total = 0.0;
        begin(scores);
        for (int64_t k = 0; k < g.factors; ++k)
            raise(branch[k], scores + g.table_start[g.order[k]]);
        for (int64_t k = g.factors - 1; k >= 0; --k) {
            const int64_t start = g.table_start[g.order[k]];
            if (!reached[branch[k].parent]) total += label_root(branch[k].parent, label);
            vertex[start + choose(branch[k], scores + start, label)] = 1.0;
        }
        for (int64_t v = 0; v < g.nodes; ++v) {
            if (!reached[v]) total += label_root(v, label);
            vertex[g.node_start[v] + label[v]] = 1.0;
        }
        return total;
    }
};

bool are_numbers(const double *x, int64_t size) {
    bool found = true;
    Bits wrong = bits(0);
    for (; size >= EIGHT; size -= EIGHT, x += EIGHT)
        wrong = wrong | (load(x) >= row_of(INF)) | (load(x) != load(x));
    for (int64_t k = 0; k < size; ++k) found &= x[k] < INF;
    return found && !any(wrong);
}

status sweep(const forest_shape &g, bool sums, int64_t count, const int64_t *offset, int64_t size,
             const double *score, double *out, double *value) {
    int64_t rows = 1, entries = 1, room = 0, padded = 0;
    Arena arena;
    int64_t *place = arena.array<int64_t>(g.nodes), *label = arena.array<int64_t>(g.nodes);
    Branch *branch = arena.array<Branch>(g.factors);
    if (arena.failed) return NO_MEMORY;
    for (int64_t v = 0; v < g.nodes; ++v) {
        place[v] = padded;
        padded += whole_eights(g.node_start[v + 1] - g.node_start[v]);
    }
    for (int64_t k = 0; k < g.factors; ++k) {
        const Branch &b = branch[k] = Branch(g, g.order[k], g.parent[k]);
        rows = b.rows > rows ? b.rows : rows;
        entries = b.entries() > entries ? b.entries() : entries;
        room += sums ? b.room() : 0;
    }
    double *at = arena.array<double>(room);
    const Forest forest{g,
                        branch,
                        arena.array<bool>(g.nodes),
                        place,
                        arena.array<double>(padded, -INF),
                        arena.array<double>(whole_eights(rows)),
                        arena.array<double>(whole_eights(entries) + EIGHT),
                        score + size};
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < g.factors; at += branch[k++].room())
        if (sums) branch[k].settle(at);
    for (int64_t m = 0; m < count; ++m) {
        const double *from = score + offset[m];
        if (!are_numbers(from, g.table_start[g.factors]))
            value[m] = __builtin_nan("");
        else
            value[m] = sums ? forest.sums(from, out + offset[m])
                            : forest.best(from, out + offset[m], label);
    }
    return OK;
}

}  // namespace

status forest_marginals(const forest_shape *shape, int64_t count, const int64_t *offset,
                        int64_t size, const double *score, double *tau, double *log_z) {
    return sweep(*shape, true, count, offset, size, score, tau, log_z);
}

status forest_labels(const forest_shape *shape, int64_t count, const int64_t *offset, int64_t size,
                     const double *score, double *vertex, double *best) {
    return sweep(*shape, false, count, offset, size, score, vertex, best);
}
