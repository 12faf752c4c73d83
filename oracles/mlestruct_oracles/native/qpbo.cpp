// Binary pairwise models as minimum cuts (roof duality: Boros & Hammer 2002, Kolmogorov & Rother
// 2007): penalties for forbidden entries, signs, whole numbers, the flow graph, and the answer.
//
// With s = q - 1/2 in [-1/2, 1/2] for q = P(state 1), and every edge's table at its best for the
// q's, twice the relaxed score is a constant plus
//
//     sum_i field_i s_i - sum_e |coupling_e| |s_i - sign(coupling_e) s_j|.
//
// Where flipping some nodes makes all couplings of a component attract, that is a cut of one flow
// node per node. Elsewhere s and -s become two flow nodes, and s = 0 where they are on one side.
#include "qpbo.h"

#include "lanes.h"

namespace {

constexpr int64_t NONE = -1;
constexpr int64_t BITS = 52;  // of whole numbers, whose doubles are exact, too
constexpr double TINIEST = 4.9406564584124654e-324;

// x = m 2^e with 1/2 <= m < 1: return e, and 0 for 0.
int64_t exponent(double x) {
    if (x == 0) return 0;
    const int64_t field = bits_of(x) >> 52 & 2047;
    return field ? field - 1022 : exponent(x * 18014398509481984.0) - 54;
}

// 2^k for k of normal numbers.
double power_of_two(int64_t k) { return from_bits((k + 1023) << 52); }

// x 2^k, where 2^k itself may be out of range.
struct Scale {
    double first, second;
    explicit Scale(int64_t k) : first(power_of_two(k >> 1)), second(power_of_two(k - (k >> 1))) {}
    double operator()(double x) const { return x * first * second; }
};

// The nearest whole number, of two the even one.
double nearest_whole(double x) {
    constexpr double whole = 4503599627370496.0;  // from 2^52 on all numbers are
    const double size = __builtin_fabs(x);
    return size < whole ? __builtin_copysign((size + whole) - whole, x) : x;
}

// The next number above one that is finite.
double next_above(double x) { return x == 0 ? TINIEST : from_bits(bits_of(x) + (x > 0 ? 1 : -1)); }

// A power of two well above the bound: it adds without rounding to scores on a coarse grid.
double well_above(double bound) {
    const double below = bound * (1 - 1.2e-16);  // powers of two themselves are rounded down
    return bound > 0 ? Scale(exponent(below) + 1)(1.0) : 1.0;
}

// a + b as rounded, and the size of what rounding took from it (Knuth).
struct Sum {
    double total, slip;
};
INLINE Sum two_sum(double a, double b) {
    const double total = a + b, part = total - a;
    return {total, __builtin_fabs((a - (total - part)) + (b - part))};
}

// --- forbidden states and pairs ---------------------------------------------------------------

// Largest minus least finite score, -1 if there is none.
double range(const double *score, int64_t count) {
    double low = INF, high = -INF;
    for (int64_t k = 0; k < count; ++k)
        if (score[k] > -INF) {
            low = smaller(low, score[k]);
            high = larger(high, score[k]);
        }
    return low <= high ? high - low : -1.0;
}

// Let forbidden entries cost that much. Return what this added to the table's range.
double fill(double *score, int64_t count, double cost) {
    double low = INF, used = 0.0;
    for (int64_t k = 0; k < count; ++k)
        if (score[k] > -INF) low = smaller(low, score[k]);
    for (int64_t k = 0; k < count; ++k)
        if (score[k] == -INF) {
            score[k] = low - cost;
            used = cost;
        }
    return used;
}

// Forbid a state at the edge's node (0 or 1) where the edge forbids it with every other. Return
// false if the whole table is forbidden.
bool lift(double *table, int end, double *node) {
    const int step = end == 0 ? 2 : 1, other = 3 - step;
    bool dead[2];
    for (int a = 0; a < 2; ++a)
        dead[a] = table[a * step] == -INF && table[a * step + other] == -INF;
    if (dead[0] && dead[1]) return false;
    for (int a = 0; a < 2; ++a)
        if (dead[a]) {
            node[a] = -INF;
            table[a * step] = table[(1 - a) * step];
            table[a * step + other] = table[(1 - a) * step + other];
        }
    return true;
}

// A vertex that uses a forbidden entry puts at least 1/2 on it. So an entry costs, below the least
// finite one of its table: on an edge more than twice the range of all the model's finite scores;
// at a node more than twice what its own and its edges' tables can give (penalties included),
// which no neighbour outweighs. The second is local, so clamping nodes costs no precision.
// `reach` is room for a number per node. Return -1, or a node, or nodes + an edge.
int64_t soften(const pairwise &p, double *unary, double *pair, double *reach) {
    for (int64_t e = 0; e < p.edges; ++e)
        for (int end = 0; end < 2; ++end)
            if (!lift(pair + 4 * e, end, unary + 2 * p.ends[2 * e + end])) return p.nodes + e;
    double total = 0.0;
    for (int64_t i = 0; i < p.nodes; ++i) {
        reach[i] = range(unary + 2 * i, 2);
        if (reach[i] < 0) return i;
        total += reach[i];
    }
    for (int64_t e = 0; e < p.edges; ++e) total += range(pair + 4 * e, 4);
    const double cost = well_above(2 * total);
    for (int64_t e = 0; e < p.edges; ++e) {
        const double finite = range(pair + 4 * e, 4), spread = finite + fill(pair + 4 * e, 4, cost);
        reach[p.ends[2 * e]] += spread;
        reach[p.ends[2 * e + 1]] += spread;
    }
    for (int64_t i = 0; i < p.nodes; ++i) fill(unary + 2 * i, 2, well_above(2 * reach[i]));
    return NONE;
}

// --- the signed form --------------------------------------------------------------------------

// Couplings, what edges add to the fields of their ends, and rounding errors, without branches.
void differences(int64_t edges, const double *__restrict pair, double *__restrict coupling,
                 double *__restrict down, double *__restrict right, double *__restrict slips) {
    for (int64_t e = 0; e < edges; ++e) {
        const double *t = pair + 4 * e;
        const Sum down0 = two_sum(t[2], -t[0]), down1 = two_sum(t[3], -t[1]);
        const Sum right0 = two_sum(t[1], -t[0]), right1 = two_sum(t[3], -t[2]);
        const Sum both = two_sum(right1.total, -right0.total);
        const Sum first = two_sum(down0.total, down1.total);
        const Sum second = two_sum(right0.total, right1.total);
        coupling[e] = both.total;
        down[e] = first.total;
        right[e] = second.total;
        slips[e] = down0.slip + down1.slip + 2 * (right0.slip + right1.slip) + both.slip +
                   first.slip + second.slip;
    }
}

// Round numbers times 2^shift in place of `to`. Return the sum of what that changed.
double round_scaled(int64_t count, const double *from, double *to, int64_t shift) {
    const Scale scale(shift);
    double lost = 0.0;
    for (int64_t k = 0; k < count; ++k) {
        const double scaled = scale(from[k]), whole = nearest_whole(scaled);
        lost += scaled == 0 && from[k] != 0 ? TINIEST : __builtin_fabs(scaled - whole);
        to[k] = whole;
    }
    return lost;
}

double greatest_size(int64_t count, const double *from) {
    double most = 0.0;
    for (int64_t k = 0; k < count; ++k) most = larger(__builtin_fabs(from[k]), most);
    return most;
}

// --- gauge ------------------------------------------------------------------------------------

// Components as trees by union-find. `parity` says whether a node and its parent are to be alike.
struct Components {
    int64_t *parent;
    int8_t *parity;
    bool *good;  // of roots: whether no cycle is frustrated

    explicit Components(Arena &arena, int64_t nodes)
        : parent(arena.array<int64_t>(nodes)),
          parity(arena.array<int8_t>(nodes)),
          good(arena.array<bool>(nodes)) {}

    // Return the root of i, after which i hangs right below it.
    int64_t find(int64_t i) {
        int64_t root = i;
        int8_t sign = 1;
        for (; parent[root] != root; root = parent[root]) sign *= parity[root];
        while (parent[i] != root && i != root) {
            const int64_t above = parent[i];
            const int8_t own = parity[i];
            parent[i] = root;
            parity[i] = sign;
            sign *= own;
            i = above;
        }
        return root;
    }

    void unite(int64_t i, int64_t j, int8_t sign) {
        const int64_t a = find(i), b = find(j);
        const int8_t relation = sign * (i != a ? parity[i] : 1) * (j != b ? parity[j] : 1);
        if (a == b) {
            good[a] = good[a] && relation == 1;
            return;
        }
        // The lower index stays root, so that a component's first node is never flipped.
        const int64_t low = a < b ? a : b, high = a < b ? b : a;
        parent[high] = low;
        parity[high] = relation;
        good[low] = good[low] && good[high];
    }

    // Components under couplings other than 0 between nodes where `among` (if given) is 0.
    void gauge(const signed_models &s, int64_t k, const int8_t *among, int8_t *flip,
               bool *balanced) {
        const double *coupling = s.coupling + k * s.edges;
        bool repels = false;
        for (int64_t e = 0; e < s.edges; ++e) repels |= coupling[e] < 0;
        for (int64_t i = 0; i < s.nodes; ++i) {
            parent[i] = i;
            parity[i] = 1;
            good[i] = true;
        }
        for (int64_t e = 0; repels && e < s.edges; ++e) {
            const int64_t i = s.ends[2 * e], j = s.ends[2 * e + 1];
            if (coupling[e] == 0 || (among && (among[i] || among[j]))) continue;
            unite(i, j, coupling[e] > 0 ? 1 : -1);
        }
        for (int64_t i = 0; i < s.nodes; ++i) {
            const int64_t root = find(i);
            balanced[i] = good[root];
            flip[i] = root != i ? parity[i] : 1;
        }
    }
};

// --- flows ------------------------------------------------------------------------------------

// How an edge stands in the flow graph: 0 not at all, 1 or 2 by two arcs (attractive, repulsive),
// 3 to 6 by one (its first node flipped or not).
int8_t layout_of(const signed_models &s, int64_t k, int64_t e) {
    const double coupling = s.coupling[k * s.edges + e];
    if (coupling == 0) return 0;
    const int64_t i = k * s.nodes + s.ends[2 * e];
    return static_cast<int8_t>((s.balanced[i] ? 4 + s.flip[i] : 1) + (coupling < 0));
}

int arcs_of(int8_t layout) { return layout == 0 ? 0 : layout <= 2 ? 2 : 1; }

// --- the answer -------------------------------------------------------------------------------

// A sum with a second word for what rounding took (Neumaier 1974), and that word's size.
struct Total {
    double total = 0.0, lost = 0.0, slips = 0.0;

    void add(double term) {
        const double fresh = total + term, part = fresh - total;
        double slip = (total - (fresh - part)) + (term - part);
        slip = slip == slip ? slip : 0.0;  // -inf makes it NaN
        total = fresh;
        lost += slip;
        slips += __builtin_fabs(slip);
    }
};

// Products of the ends' tables where an end is integral; else 1/2 on the diagonal if coupling >= 0,
// on the other one if not.
void complete_edge(const double *score, int first, int second, bool attracts, double *edge,
                   Total &total) {
    for (int k = 0; k < 4; ++k) edge[k] = 0.0;
    if (first == 0 && second == 0) {
        for (int a = 0; a < 2; ++a) {
            const int at = 2 * a + (attracts ? a : 1 - a);
            edge[at] = 0.5;
            total.add(0.5 * score[at]);
        }
        return;
    }
    const double weight = first == 0 || second == 0 ? 0.5 : 1.0;
    for (int a = first > 0; a < 1 + (first >= 0); ++a)
        for (int b = second > 0; b < 1 + (second >= 0); ++b) {
            edge[2 * a + b] = weight;
            total.add(weight * score[2 * a + b]);
        }
}

}  // namespace

int64_t qpbo_soften(const pairwise *p, double *unary, double *pair) {
    Arena arena;
    double *reach = arena.array<double>(p->nodes);
    if (arena.failed) return NO_MEMORY;
    std::memcpy(unary, p->unary, p->models * p->nodes * 2 * sizeof(double));
    std::memcpy(pair, p->pair, p->models * p->edges * 4 * sizeof(double));
    for (int64_t k = 0; k < p->models; ++k) {
        const int64_t found = soften(*p, unary + k * p->nodes * 2, pair + k * p->edges * 4, reach);
        if (found != NONE) return k * (p->nodes + p->edges) + found;
    }
    return NONE;
}

status qpbo_signed_form(const pairwise *p, double *field, double *coupling, double *error) {
    Arena arena;
    double *down = arena.array<double>(p->edges), *right = arena.array<double>(p->edges);
    double *slips = arena.array<double>(p->edges);
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < p->models; ++k) {
        const double *unary = p->unary + k * p->nodes * 2;
        double *own = field + k * p->nodes, lost = 0.0;
        for (int64_t i = 0; i < p->nodes; ++i) {
            const Sum sum = two_sum(2 * unary[2 * i + 1], -2 * unary[2 * i]);
            own[i] = sum.total;
            lost += sum.slip;
        }
        differences(p->edges, p->pair + k * p->edges * 4, coupling + k * p->edges, down, right,
                    slips);
        for (int64_t e = 0; e < p->edges; ++e) {
            double &first = own[p->ends[2 * e]], &second = own[p->ends[2 * e + 1]];
            const Sum one = two_sum(first, down[e]), other = two_sum(second, right[e]);
            first = one.total;
            second = other.total;
            lost += slips[e] + one.slip + other.slip;
        }
        error[k] = lost;
    }
    return OK;
}

void qpbo_whole(const pairwise *p, double *field, const double *coupling, double *rounded,
                double *slack, int64_t *shift) {
    for (int64_t k = 0; k < p->models; ++k) {
        double *own = field + k * p->nodes;
        const double *from = coupling + k * p->edges;
        const double most = larger(greatest_size(p->nodes, own), greatest_size(p->edges, from));
        shift[k] = BITS - exponent(most);
        const double lost = round_scaled(p->nodes, own, own, shift[k]) +
                            round_scaled(p->edges, from, rounded + k * p->edges, shift[k]);
        // Any two s differ by at most 1; half, because the form is twice the score. The factor
        // covers the rounding of these sums themselves.
        slack[k] = 0.5 * (Scale(-shift[k])(lost) + slack[k]) * (1 + 1e-9);
        if (lost > 0) slack[k] = larger(slack[k], TINIEST);
    }
}

int64_t qpbo_flow_graph(const signed_models *s, int64_t *first, int64_t *ends, double *capacity,
                        double *pull) {
    Arena arena;
    Components components(arena, s->nodes);
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < s->models; ++k)
        components.gauge(*s, k, nullptr, s->flip + k * s->nodes, s->balanced + k * s->nodes);
    int64_t nodes = 0, arc = 0;
    for (int64_t i = 0; i < s->models * s->nodes; ++i) {
        first[i] = nodes;
        pull[nodes++] = s->balanced[i] ? s->field[i] * s->flip[i] : s->field[i];
        if (!s->balanced[i]) pull[nodes++] = -s->field[i];
    }
    for (int64_t k = 0; k < s->models; ++k)
        for (int64_t e = 0; e < s->edges; ++e) {
            const int8_t layout = layout_of(*s, k, e);
            const int64_t *own = first + k * s->nodes;
            for (int copy = 0; copy < arcs_of(layout); ++copy, ++arc) {
                ends[2 * arc] = own[s->ends[2 * e]] + copy;
                ends[2 * arc + 1] = own[s->ends[2 * e + 1]] + (copy ^ (layout == 2));
                capacity[arc] = __builtin_fabs(s->coupling[k * s->edges + e]);
            }
        }
    return arc;
}

void qpbo_resume(const signed_models *s, const last_flows *last, double *flow) {
    int64_t arc = 0;
    for (int64_t k = 0; k < s->models; ++k) {
        const Scale scale(s->shift[k] - last->shift[k]);
        for (int64_t e = 0; e < s->edges; ++e) {
            const int64_t at = k * s->edges + e;
            const int8_t layout = layout_of(*s, k, e);
            const double most = __builtin_fabs(s->coupling[at]);
            for (int copy = 0; copy < arcs_of(layout); ++copy) {
                const double sent = nearest_whole(scale(last->flow[2 * at + copy]));
                flow[arc++] = layout != last->layout[at] ? 0.0 : larger(smaller(sent, most), -most);
            }
            last->layout[at] = layout;
        }
        last->shift[k] = s->shift[k];
    }
}

void qpbo_keep(const last_flows *last, const double *flow) {
    int64_t arc = 0;
    for (int64_t at = 0; at < last->models * last->edges; ++at)
        for (int copy = 0; copy < arcs_of(last->layout[at]); ++copy)
            last->flow[2 * at + copy] = flow[arc++];
}

status qpbo_sides(const signed_models *s, int64_t, const int64_t *first, const bool *sink,
                  int8_t *side) {
    Arena arena;
    Components components(arena, s->nodes);
    int8_t *flip = arena.array<int8_t>(s->nodes);
    bool *balanced = arena.array<bool>(s->nodes);
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < s->models; ++k) {
        int8_t *own = side + k * s->nodes;
        bool halves = false;
        for (int64_t i = 0; i < s->nodes; ++i) {
            const int64_t at = k * s->nodes + i;
            own[i] = sink[first[at]] ? 1 : -1;
            if (s->balanced[at])
                own[i] = static_cast<int8_t>(own[i] * s->flip[at]);
            else if (sink[first[at]] == sink[first[at] + 1])
                own[i] = 0, halves = true;
        }
        // The score is constant along a half component without frustration: take its end.
        if (halves) components.gauge(*s, k, own, flip, balanced);
        for (int64_t i = 0; halves && i < s->nodes; ++i)
            if (own[i] == 0 && balanced[i]) own[i] = static_cast<int8_t>(-flip[i]);
    }
    return OK;
}

int64_t qpbo_complete(const pairwise *p, const double *coupling, const int8_t *side, double *node,
                      double *edge, double *upper) {
    int64_t wrong = NONE;
    for (int64_t k = 0; k < p->models; ++k) {
        const int8_t *own = side + k * p->nodes;
        Total total;
        for (int64_t i = 0; i < p->nodes; ++i) {
            const int64_t at = 2 * (k * p->nodes + i);
            node[at + 1] = 0.5 + 0.5 * own[i];
            node[at] = 1.0 - node[at + 1];
            for (int a = own[i] > 0; a < 1 + (own[i] >= 0); ++a)
                total.add(node[at + a] * p->unary[at + a]);
        }
        for (int64_t e = 0; e < p->edges; ++e) {
            const int64_t at = k * p->edges + e;
            complete_edge(p->pair + 4 * at, own[p->ends[2 * e]], own[p->ends[2 * e + 1]],
                          coupling[at] >= 0, edge + 4 * at, total);
        }
        const double score = total.total + total.lost;
        const double terms = static_cast<double>(2 * p->nodes + 4 * p->edges + 2);
        const double doubt = upper[k] + total.slips * 1.2e-16 * terms;
        if (!(score > -INF) && wrong == NONE) wrong = k;
        upper[k] = doubt > 0 ? next_above(score + doubt) : score;
    }
    return wrong;
}
