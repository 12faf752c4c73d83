// Reweighted sum-product on factor graphs (Wainwright, Jaakkola and Willsky 2005; Heskes 2006).
//
//     message_fi = log sum over x_f without x_i of  exp(score_f / c_f + sum_j (log b_j -
//     message_fj)) log b_i    = (score_i + sum_f c_f message_fi) / (c_i + sum_f c_f)
//
// for all factors f around i, j the other nodes of f, and c the counting numbers. For c_i >= 0 each
// node's update is a block step on the convex dual. Three kernels move one node: General takes
// factors of any order with forbidden entries, at any score. Pairs takes graphs of pairs in the
// linear domain, with one logarithm per message entry; Odds those whose variables are binary, with
// one logarithm per message and one exponential per node. The last two need tables within
// exp(+-NARROW), and clip beliefs at exp(+-CLIP): a clipped state lies so far below the others that
// no message feels it.
#include "messages.h"

#include "schedules.h"

namespace {

// ---------------------------------------------------------------------------- factors of any order

constexpr double POOR = 1e-280;  // sums below this are taken again from logarithms

struct General {
    const message_graph &g;
    const double *score = nullptr;
    Read read;
    double *table;   // exp(score_f / c_f), scaled by the largest open entry; 0 where closed
    double *cavity;  // of all slots of a factor
    double *out, *fresh;
    int64_t *state;

    General(const message_graph &graph, const Widest &widest, bool flooding, Arena &arena)
        : g(graph),
          read(nullptr, graph.place[graph.slots], nullptr, graph.node_start[graph.nodes], flooding,
               arena),
          table(arena.array<double>(g.table_start[g.factors] - g.table_start[0])),
          cavity(arena.array<double>(widest.width)),
          out(arena.array<double>(widest.cards)),
          fresh(arena.array<double>(widest.cards)),
          state(arena.array<int64_t>(widest.order)) {}

    int64_t nodes() const { return g.nodes; }
    const int64_t *near_start() const { return g.near_start; }
    const int64_t *near() const { return g.near; }

    void begin(const double *given, double *message, double *belief) {
        score = given;
        read.message = message;
        read.belief = belief;
        for (int64_t f = 0; f < g.factors; ++f) {
            double top = -INF;
            for (int64_t k = g.table_start[f]; k < g.table_start[f + 1]; ++k)
                if (g.open[k]) top = larger(score[k], top);
            for (int64_t k = g.table_start[f]; k < g.table_start[f + 1]; ++k)
                table[k - g.table_start[0]] =
                    g.open[k] ? exponential((score[k] - top) / g.counts[f]) : 0.0;
        }
    }

    // Send all messages to node i, and return how far its log-belief moved.
    double move(int64_t i, double damping) {
        const int64_t first = g.node_start[i], cards = g.node_start[i + 1] - first;
        for (int64_t k = 0; k < cards; ++k) fresh[k] = score[first + k];
        for (int64_t p = g.start[i]; p < g.start[i + 1]; ++p) {
            const int64_t s = g.around[p];
            send(s, damping);
            const double *into = read.message + g.place[s];
            for (int64_t k = 0; k < cards; ++k) fresh[k] += g.counts[g.owner[s]] * into[k];
        }
        double top = -INF, moved = 0.0, *belief = read.belief + first;
        for (int64_t k = 0; k < cards; ++k) {
            fresh[k] /= g.whole[i];
            if (g.open[first + k]) top = larger(fresh[k], top);
        }
        for (int64_t k = 0; k < cards; ++k) {
            const double log = g.open[first + k] ? fresh[k] - top : -INF;
            if (g.open[first + k]) moved = larger(__builtin_fabs(log - belief[k]), moved);
            belief[k] = log;
        }
        return moved;
    }

    // Beliefs of nodes and factors; the latter agree with the former only at convergence.
    void end(double *message, double *belief, double *tau) {
        for (int64_t i = 0; i < g.nodes; ++i) {
            const int64_t first = g.node_start[i], last = g.node_start[i + 1];
            for (int64_t k = first; k < last; ++k)
                tau[k] = g.open[k] ? exponential(belief[k]) : 0.0;
            normalise(tau + first, last - first);
        }
        for (int64_t f = 0; f < g.factors; ++f) {
            Factor here(g, f, state);
            take_cavities(here, -1, message, belief, true);
            double *to = tau + here.entry, top = -INF;
            for (int64_t k = 0; k < here.entries; ++k, here.next()) {
                const double value = here.plus(score[here.entry + k] / g.counts[f], cavity);
                to[k] = g.open[here.entry + k] ? value : -INF;
                top = larger(to[k], top);
            }
            for (int64_t k = 0; k < here.entries; ++k) to[k] = exponential(to[k] - top);
            normalise(to, here.entries);
        }
    }

  private:
    static void normalise(double *x, int64_t size) {
        double mass = 0.0;
        for (int64_t k = 0; k < size; ++k) mass += x[k];
        for (int64_t k = 0; k < size; ++k) x[k] /= mass;
    }

    // Beliefs of every other slot without this factor's message, the largest 1, or their
    // logarithms.
    void take_cavities(const Factor &here, int64_t skip, const double *message,
                       const double *belief, bool logs) {
        for (int64_t s = here.first; s < here.last; ++s) {
            const double *known = belief + here.node(s), *sent = message + g.place[s];
            double *to = cavity + here.at(s), top = -INF;
            const int64_t cards = here.cards(s);
            if (s == skip) {
                for (int64_t k = 0; k < cards; ++k) to[k] = logs ? 0.0 : 1.0;
                continue;
            }
            for (int64_t k = 0; k < cards; ++k) {
                to[k] = known[k] - sent[k];
                top = larger(to[k], top);
            }
            for (int64_t k = 0; k < cards; ++k)
                to[k] = logs ? to[k] - top : exponential(to[k] - top);
        }
    }

    // Send the message of a factor to its slot s, the largest entry 0.
    void send(int64_t s, double damping) {
        Factor here(g, g.owner[s], state);
        const int64_t cards = here.cards(s), *now = state + (s - here.first);
        const int8_t *open = g.open + here.node(s);
        take_cavities(here, s, read.old_message(), read.old_belief(), false);
        const double *entries = table + (here.entry - g.table_start[0]);
        for (int64_t k = 0; k < cards; ++k) out[k] = 0.0;
        for (int64_t k = 0; k < here.entries; ++k, here.next())
            out[*now] += here.times(entries[k], cavity);
        bool poor = false;
        for (int64_t k = 0; k < cards; ++k) poor |= open[k] && out[k] < POOR;
        if (poor) sum_logarithms(here, s);
        double top = -INF, *into = read.message + g.place[s];
        for (int64_t k = 0; k < cards; ++k) top = larger(out[k], top);
        for (int64_t k = 0; k < cards; ++k) {
            if (!open[k]) continue;
            const double sent = poor ? out[k] - top : logarithm(out[k] / top);
            into[k] = sent + damping * (into[k] - sent);
        }
    }

    // The same sums where they underflow: from logarithms, each state by its own largest term.
    void sum_logarithms(Factor &here, int64_t s) {
        const int64_t cards = here.cards(s), *now = state + (s - here.first);
        const double c = g.counts[g.owner[s]];
        take_cavities(here, s, read.old_message(), read.old_belief(), true);
        for (int64_t own = 0; own < cards; ++own) {
            double top = -INF, mass = 0.0;
            for (int turn = 0; turn < 2; ++turn)
                for (int64_t k = here.entry; k < here.entry + here.entries; ++k, here.next()) {
                    if (*now != own || !g.open[k]) continue;
                    const double value = here.plus(score[k] / c, cavity);
                    if (turn == 0)
                        top = larger(value, top);
                    else if (top > -INF)
                        mass += exponential(value - top);
                }
            out[own] = top > -INF ? top + logarithm(mass) : -INF;
        }
    }
};

// ------------------------------------------------------------------------------------------- pairs

constexpr double CLOSED = -1e300;  // score of closed states and padding: nothing finite changes it
constexpr double TINY = 1e-250;    // for messages into closed states; others are above e^-NARROW
constexpr double HARDLY = -1e250;  // no finite score

// Nodes have ROWS times eight states, or any number where ROWS is 0. Closed states and padding have
// chance 0, so whatever messages say of them is lost. Messages into a node lie one after the other
// without padding: kernels write beyond each, in order, and read finite numbers there.
template <int ROWS>
struct Pairs {
    const message_graph &g;
    const pair_messages &b;
    double *field, *table;
    double *log;            // of messages
    double *belief;         // logarithms
    double *linear;         // one over messages
    double *chance;         // exponentials of beliefs
    double *mass, *cavity;  // of one node's messages, and of all its neighbours
    Read read;

    Pairs(const message_graph &graph, const pair_messages &pairs, const Widest &widest,
          bool flooding, Arena &arena)
        : g(graph),
          b(pairs),
          field(arena.array<double>(states())),
          table(arena.array<double>(b.table_start[b.factors])),
          log(arena.array<double>(room(widest))),
          belief(arena.array<double>(states())),
          linear(arena.array<double>(room(widest))),
          chance(arena.array<double>(states())),
          mass(arena.array<double>(2 * whole_eights(widest.cards) * (widest.degree + 1), 0.0)),
          cavity(arena.array<double>(whole_eights(widest.cards) * (widest.degree + 1), 0.0)),
          read(linear, room(widest), chance, states(), flooding, arena) {}

    int64_t nodes() const { return b.nodes; }
    const int64_t *near_start() const { return b.near_start; }
    const int64_t *near() const { return b.near; }
    int64_t states() const { return b.node_start[b.nodes]; }
    // Of all messages, with what is read beyond the last one.
    int64_t room(const Widest &widest) const {
        return b.into[b.messages] + whole_eights(widest.cards);
    }
    int64_t wide(int64_t i) const {
        return ROWS ? ROWS * EIGHT : b.node_start[i + 1] - b.node_start[i];
    }

    void begin(const double *score, const double *message, const double *known) {
        take_tables(score);
        for (int64_t k = 0; k < read.messages; ++k) log[k] = 0.0;
        for (int64_t i = 0; i < b.nodes; ++i) {
            const int64_t first = g.node_start[i], at = b.node_start[i], own = b.cards[i];
            for (int64_t k = 0; k < wide(i); ++k) {
                const bool open = k < own && g.open[first + k];
                field[at + k] = open ? score[first + k] : CLOSED;
                belief[at + k] = open ? known[first + k] : CLOSED * (1.0 / b.whole[i]);
                chance[at + k] = open ? larger(known[first + k], -CLIP) : CLOSED;
            }
            for (int64_t p = b.near_start[i]; p < b.near_start[i + 1]; ++p) {
                const double *from = message + g.place[g.around[p]];
                for (int64_t k = 0; k < own; ++k)
                    if (g.open[first + k]) log[b.into[p] + k] = larger(from[k], -NARROW);
            }
        }
        exponentiate(chance, states());
        for (int64_t k = 0; k < read.messages; ++k) linear[k] = -log[k];
        exponentiate(linear, read.messages / EIGHT * EIGHT);
    }

    // Send all messages to node i, one step for all of them at a time, so that they overlap.
    double move(int64_t i, double damping) {
        const int64_t begin = b.near_start[i], end = b.near_start[i + 1];
        const int64_t own = b.cards[i], into = begin < end ? b.into[begin] : 0;
        double *at = cavity;
        for (int64_t p = begin; p < end; ++p) {
            const int64_t j = b.near[p], others = wide(j);
            without(read.old_belief() + b.node_start[j], read.old_message() + b.back[p], others,
                    at);
            at += others;
        }
        at = cavity;
        for (int64_t p = begin; p < end; ++p) {
            sum_states(p, i, at, mass + own * (p - begin));
            at += wide(b.near[p]);
        }
        take_logarithms(own * (end - begin), damping, log + into, linear + into);
        return believe(i, into);
    }

    // Messages and beliefs as the general kernel has them, and those of nodes and edges.
    void end(double *message, double *known, double *tau) {
        for (int64_t i = 0; i < b.nodes; ++i) {
            const int64_t first = g.node_start[i], own = b.cards[i];
            const double *logs = belief + b.node_start[i];
            double total = 0.0;
            for (int64_t k = 0; k < own; ++k) {
                const bool open = g.open[first + k];
                known[first + k] = open ? logs[k] : -INF;
                tau[first + k] = open ? exponential(logs[k]) : 0.0;
                total += tau[first + k];
            }
            for (int64_t k = 0; k < own; ++k) tau[first + k] /= total;
            for (int64_t p = b.near_start[i]; p < b.near_start[i + 1]; ++p) {
                const double *sent = log + b.into[p];
                double *to = message + g.place[g.around[p]], top = -INF;
                for (int64_t k = 0; k < own; ++k)
                    if (g.open[first + k]) top = larger(sent[k], top);
                for (int64_t k = 0; k < own; ++k) to[k] = g.open[first + k] ? sent[k] - top : 0.0;
                if (!b.second[p]) edge(p, i, tau);
            }
        }
    }

  private:
    // exp(score_f / c_f) in padded rows, the largest 1.
    void take_tables(const double *score) {
        for (int64_t f = 0; f < b.factors; ++f) {
            const int64_t first = g.table_start[f], last = g.table_start[f + 1];
            const int64_t j = g.scope[g.scope_start[f] + 1], cards = b.cards[j];
            double *to = table + b.table_start[f], top = -INF;
            for (int64_t k = first; k < last; ++k)
                if (g.open[k]) top = larger(score[k], top);
            for (int64_t row = first; row < last; row += cards, to += wide(j)) {
                for (int64_t k = 0; k < cards; ++k)
                    to[k] = g.open[row + k] ? (score[row + k] - top) / g.counts[f] : CLOSED;
                for (int64_t k = cards; k < wide(j); ++k) to[k] = CLOSED;
            }
        }
        exponentiate(table, b.table_start[b.factors]);
    }

    // A neighbour's belief without what this node told it.
    static INLINE void without(const double *known, const double *inverse, int64_t size,
                               double *to) {
        for (int64_t k = 0; k < size; k += EIGHT)
            store(to + k, load(known + k) * load(inverse + k));
    }
    static INLINE double most(const double *values, int64_t size) {
        Row found = load(values);
        for (int64_t k = EIGHT; k < size; k += EIGHT) found = larger(load(values + k), found);
        return largest(found);
    }

    // The message at position p, some entry between 1/states and states.
    INLINE void sum_states(int64_t p, int64_t i, const double *from, double *to) {
        const int64_t j = b.near[p], others = wide(j), own = wide(i);
        const double *entry = table + b.entry[p];
        const Row scale = row_of(1.0 / most(from, others));
        if (b.second[p]) {
            for (int64_t k = 0; k < own; k += (ROWS ? ROWS : 1) * EIGHT)
                sum_down<ROWS ? ROWS : 1>(entry + k, own, b.cards[j], from, scale, to + k);
        } else {
            for (int64_t k = 0; k < b.cards[i]; k += EIGHT)
                store(to + k,
                      sums_across(entry + k * others, others, b.cards[i] - k, from) * scale);
        }
    }
    // Sum rows of a table, so many times each.
    template <int EIGHTS>
    static INLINE void sum_down(const double *entry, int64_t step, int64_t count,
                                const double *from, Row scale, double *to) {
        Row found[EIGHTS];
        for (int r = 0; r < EIGHTS; ++r) found[r] = load(entry + r * EIGHT) * row_of(from[0]);
        for (int64_t x = 1; x < count; ++x) {
            entry += step;
            const Row times = row_of(from[x]);
            for (int r = 0; r < EIGHTS; ++r)
                found[r] = add_product(found[r], load(entry + r * EIGHT), times);
        }
        for (int r = 0; r < EIGHTS; ++r) store(to + r * EIGHT, found[r] * scale);
    }
    // Products of eight rows of a table with one; after the last row that row again.
    static INLINE Row sums_across(const double *entry, int64_t step, int64_t count,
                                  const double *from) {
        return sums([=](int64_t lane) __attribute__((always_inline)) {
            const double *row = entry + step * (lane < count ? lane : count - 1);
            Row found = load(row) * load(from);
            for (int64_t k = EIGHT; k < step; k += EIGHT)
                found = add_product(found, load(row + k), load(from + k));
            return found;
        });
    }

    // Logarithms of messages, damped or not, and one over messages.
    INLINE void take_logarithms(int64_t size, double damping, double *logs, double *inverse) {
        if (damping > 0.0) {
            const Row kept = row_of(damping);
            for (int64_t k = 0; k < size; k += EIGHT) {
                const Row fresh = logarithm(larger(load(mass + k), row_of(TINY)));
                const Row damped = fresh + kept * (load(logs + k) - fresh);
                store(logs + k, damped);
            }
            for (int64_t k = 0; k < size; k += EIGHT)  // apart: more of these long chains overlap
                store(inverse + k, exponential(-load(logs + k)));
            return;
        }
        for (int64_t k = 0; k < size; k += EIGHT) {
            const Row sent = larger(load(mass + k), row_of(TINY));
            store(logs + k, logarithm(sent));
            store(inverse + k, 1.0 / sent);
        }
    }

    // Write a node's log-beliefs and chances, and return how far the former moved.
    INLINE double believe(int64_t i, int64_t into) {
        const int64_t first = b.node_start[i], begin = b.near_start[i], end = b.near_start[i + 1];
        const int64_t own = b.cards[i];
        double *total = mass;
        Row top = row_of(-INF), apart = row_of(0.0);
        for (int64_t k = 0; k < wide(i); k += EIGHT) {
            Row here = load(field + first + k);
            for (int64_t p = begin; p < end; ++p)
                here = here + b.weight[p] * load(log + into + own * (p - begin) + k);
            store(total + k, here);
            top = larger(here, top);
        }
        const Row highest = row_of(largest(top)), scale = row_of(1.0 / b.whole[i]);
        for (int64_t k = 0; k < wide(i); k += EIGHT) {
            const Row now = (load(total + k) - highest) * scale;
            const Row moved = now - load(belief + first + k);
            const Row kept = select(now > row_of(HARDLY), larger(now, row_of(-CLIP)), now);
            apart = larger(larger(moved, -moved), apart);
            store(belief + first + k, now);
            store(chance + first + k, exponential(kept));
        }
        return largest(apart);
    }

    // The table of the message at position p: chances of both ends without each other's words.
    void edge(int64_t p, int64_t i, double *tau) {
        const int64_t j = b.near[p], f = g.owner[g.around[p]], cards = b.cards[j];
        double *ahead = mass, *behind = mass + wide(j), *to = tau + g.table_start[f], total = 0.0;
        without(chance + b.node_start[j], linear + b.back[p], wide(j), ahead);
        without(chance + b.node_start[i], linear + b.into[p], wide(i), behind);
        const double scale = 1.0 / (most(ahead, wide(j)) * most(behind, wide(i)));
        const double *entry = table + b.entry[p];
        for (int64_t row = 0; row < b.cards[i]; ++row, entry += wide(j)) {
            const double by = scale * behind[row];
            for (int64_t k = 0; k < cards; ++k) {
                to[row * cards + k] = entry[k] * ahead[k] * by;
                total += to[row * cards + k];
            }
        }
        for (int64_t k = 0; k < b.cards[i] * cards; ++k) to[k] /= total;
    }
};

// ------------------------------------------------------------------------------------ binary pairs

// A belief is one log-odds, and a message into a node is (a + b o) / (c + d o) for odds o of the
// cavity at the other end: the neighbour's odds over what this node told it.
struct Odds {
    const message_graph &g;
    const binary_messages &b;
    double *field, *ratio;  // a, b, c and d of eight messages, in turn
    double *log, *belief;   // logarithms of messages and odds
    double *linear, *odds;  // and both themselves
    Read read;

    Odds(const message_graph &graph, const binary_messages &pairs, bool flooding, Arena &arena)
        : g(graph),
          b(pairs),
          field(arena.array<double>(b.nodes)),
          ratio(arena.array<double>(4 * b.room)),
          log(arena.array<double>(b.room)),
          belief(arena.array<double>(b.nodes)),
          linear(arena.array<double>(b.room)),
          odds(arena.array<double>(whole_eights(b.nodes), 0.0)),
          read(linear, b.room, odds, b.nodes, flooding, arena) {}

    int64_t nodes() const { return b.nodes; }
    const int64_t *near_start() const { return b.near_start; }
    const int64_t *near() const { return b.near; }

    void begin(const double *score, const double *message, const double *known) {
        take_ratios(score);
        for (int64_t i = 0; i < b.nodes; ++i) {
            const int64_t node = b.order[i];
            field[i] = score[2 * node + 1] - score[2 * node];
            belief[i] = known[2 * node + 1] - known[2 * node];
            odds[i] = clipped(belief[i], CLIP);
        }
        for (int64_t i = b.nodes; i < whole_eights(b.nodes); ++i) odds[i] = 0.0;  // not yet e^e^...
        exponentiate(odds, b.nodes);
        for (int64_t p = 0; p < b.room; ++p) {
            const double *sent = message + b.outside[p];
            linear[p] = log[p] = b.outside[p] < 0 ? 0.0 : clipped(sent[1] - sent[0], NARROW);
        }
        exponentiate(linear, b.room);
    }

    double move(int64_t i, double damping) {
        double total = field[i];
        const bool few = b.near_start[i + 1] - b.near_start[i] <= EIGHT / 2;
        if (few && b.row[i] < b.row[i + 1])
            total += damping > 0.0 ? send<true, true>(b.row[i], damping)
                                   : send<true, false>(b.row[i], damping);
        for (int64_t p = b.row[i]; p < b.row[i + 1] && !few; p += EIGHT)
            total += damping > 0.0 ? send<false, true>(p, damping) : send<false, false>(p, damping);
        total /= b.whole[i];
        const double moved = __builtin_fabs(total - belief[i]);
        belief[i] = total;
        odds[i] = exponential(clipped(total, CLIP));
        return moved;
    }

    static void write_log_odds(double x, double *two) {
        two[0] = smaller(-x, 0.0);
        two[1] = smaller(x, 0.0);
    }

    // Messages and beliefs as the general kernel has them, and those of nodes and edges.
    void end(double *message, double *known, double *tau) const {
        for (int64_t i = 0; i < b.nodes; ++i) {
            const int64_t node = b.order[i];
            write_log_odds(belief[i], known + 2 * node);
            const double small = exponential(-__builtin_fabs(belief[i]));
            const double likely = 1.0 / (1.0 + small), rare = small / (1.0 + small);
            tau[2 * node + 1] = belief[i] > 0.0 ? likely : rare;
            tau[2 * node] = belief[i] > 0.0 ? rare : likely;
        }
        for (int64_t p = 0; p < b.room; ++p) {
            if (b.outside[p] < 0) continue;
            write_log_odds(log[p], message + b.outside[p]);
            if (!b.second[p]) edge(p, tau + b.table[p]);
        }
    }

  private:
    // Send eight messages from number p on, or the first four: compilers leave out what nobody
    // reads. Return the sum of their logarithms, so many times each.
    template <bool FEW, bool DAMPED>
    INLINE double send(int64_t p, double damping) {
        const Row o = gathered(read.old_belief(), b.ahead + p);
        const Row r = gathered(read.old_message(), b.back + p);
        const double *at = ratio + 4 * p;
        Row sent = add_product(load(at) * r, load(at + 8), o) /
                   add_product(load(at + 16) * r, load(at + 24), o);
        Row logs = logarithm(sent);
        if (DAMPED) {
            logs = logs + row_of(damping) * (load(log + p) - logs);
            sent = exponential(logs);
        }
        const Row weighted = load(b.weight + p) * logs;
        (FEW ? store_half : store)(log + p, logs);
        (FEW ? store_half : store)(linear + p, sent);
        return FEW ? half_sum(weighted) : sum(weighted);
    }
    static INLINE Row gathered(const double *from, const int64_t *at) {
        Row found;
        for (int p = 0; p < PARTS; ++p)
            for (int k = 0; k < WIDTH; ++k) found.part[p][k] = from[at[p * WIDTH + k]];
        return found;
    }

    void take_ratios(const double *score) {
        for (int64_t p = 0; p < b.room; ++p) {
            const double *table = score + b.table[p];
            double *at = ratio + p / EIGHT * 4 * EIGHT + p % EIGHT;
            const bool is_padding = b.outside[p] < 0;
            const double top = larger(larger(table[0], table[1]), larger(table[2], table[3]));
            const int order[] = {b.second[p] ? 1 : 2, 3, 0, b.second[p] ? 2 : 1};
            for (int k = 0; k < 4; ++k)
                at[k * EIGHT] = is_padding ? 0.0 : (table[order[k]] - top) / b.weight[p];
        }
        exponentiate(ratio, 4 * b.room);
    }

    // The table of the message at position p, whose node is the first of the edge's.
    void edge(int64_t p, double *tau) const {
        const int64_t q = b.back[p];
        const double own = belief[b.ahead[q]] - log[p], other = belief[b.ahead[p]] - log[q];
        const double i = exponential(-__builtin_fabs(own)), j = exponential(-__builtin_fabs(other));
        const double i0 = own > 0.0 ? i : 1.0, i1 = own > 0.0 ? 1.0 : i;
        const double j0 = other > 0.0 ? j : 1.0, j1 = other > 0.0 ? 1.0 : j;
        const double *at = ratio + p / EIGHT * 4 * EIGHT + p % EIGHT;
        tau[0] = at[16] * i0 * j0;
        tau[1] = at[24] * i0 * j1;
        tau[2] = at[0] * i1 * j0;
        tau[3] = at[8] * i1 * j1;
        const double mass = tau[0] + tau[1] + tau[2] + tau[3];
        for (int k = 0; k < 4; ++k) tau[k] /= mass;
    }
};

template <int ROWS>
status solve_pairs(Solver &solver, General &general, const pair_messages &pairs,
                   const Widest &widest, Arena &arena) {
    Pairs<ROWS> kernel(solver.g, pairs, widest, solver.how.schedule == FLOODING, arena);
    return solver.solve_all(general, &kernel, arena);
}

}  // namespace

status send_messages(const message_graph *graph, const pair_messages *pairs,
                     const binary_messages *binary, const message_examples *examples,
                     const message_schedule *how, message_state *state, message_results *results) {
    const Widest widest(*graph);
    const bool flooding = how->schedule == FLOODING;
    Arena arena;
    Solver solver(*graph, *examples, *how, *state, *results, widest, arena);
    General general(*graph, widest, flooding, arena);
    if (binary) {
        Odds kernel(*graph, *binary, flooding, arena);
        return solver.solve_all(general, &kernel, arena);
    }
    if (!pairs) return solver.solve_all(general, static_cast<General *>(nullptr), arena);
    int64_t rows = whole_eights(widest.cards) / EIGHT;
    for (int64_t i = 0; i < graph->nodes; ++i)
        if (whole_eights(pairs->cards[i]) != rows * EIGHT) rows = 0;
    const auto solve = rows == 1   ? solve_pairs<1>
                       : rows == 2 ? solve_pairs<2>
                       : rows == 3 ? solve_pairs<3>
                       : rows == 4 ? solve_pairs<4>
                                   : solve_pairs<0>;
    return solve(solver, general, *pairs, widest, arena);
}
