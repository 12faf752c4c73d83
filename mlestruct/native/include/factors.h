// What messages, bounds and the repair of marginals share: factors of any order, entry by entry.
#pragma once

#include "../messages.h"
#include "lanes.h"

constexpr double NARROW = 150.0;  // log range of tables whose exponentials kernels may multiply

// The slots of one factor, and the entries of its table one after the other.
struct Factor {
    const message_graph &g;
    int64_t first, last;  // slots
    int64_t entry, entries;
    int64_t *state;  // of every slot, at the present entry: room for the longest scope

    Factor(const message_graph &graph, int64_t f, int64_t *room)
        : g(graph),
          first(graph.scope_start[f]),
          last(graph.scope_start[f + 1]),
          entry(graph.table_start[f]),
          entries(graph.table_start[f + 1] - entry),
          state(room) {
        for (int64_t s = first; s < last; ++s) state[s - first] = 0;
    }
    int64_t cards(int64_t s) const { return g.place[s + 1] - g.place[s]; }
    int64_t node(int64_t s) const { return g.node_start[g.scope[s]]; }
    // Where slot s begins in an array with all slots' states one after the other.
    int64_t at(int64_t s) const { return g.place[s] - g.place[first]; }
    int64_t width() const { return g.place[last] - g.place[first]; }

    void next() {
        for (int64_t s = last - 1; s >= first; --s) {
            if (++state[s - first] < cards(s)) return;
            state[s - first] = 0;
        }
    }
    // value and the numbers of all slots' present states, added or multiplied.
    double plus(double value, const double *numbers) const {
        for (int64_t s = first; s < last; ++s) value += numbers[at(s) + state[s - first]];
        return value;
    }
    double times(double value, const double *numbers) const {
        for (int64_t s = first; s < last; ++s) value *= numbers[at(s) + state[s - first]];
        return value;
    }
};

// Sizes of the rooms that calls need.
struct Widest {
    int64_t order = 1, width = 1, table = 1, cards = 1, degree = 0;

    explicit Widest(const message_graph &g) {
        for (int64_t f = 0; f < g.factors; ++f) {
            const int64_t first = g.scope_start[f], last = g.scope_start[f + 1];
            raise(order, last - first);
            raise(width, g.place[last] - g.place[first]);
            raise(table, g.table_start[f + 1] - g.table_start[f]);
        }
        for (int64_t i = 0; i < g.nodes; ++i) {
            raise(cards, g.node_start[i + 1] - g.node_start[i]);
            raise(degree, g.start[i + 1] - g.start[i]);
        }
    }
    static void raise(int64_t &most, int64_t x) { most = x > most ? x : most; }
};

// Proportional fitting of tables to node marginals, and the surrogate's value there.
struct Repair {
    const message_graph &g;
    double *sums;  // room for one factor's states
    int64_t *state;

    Repair(const message_graph &graph, const Widest &widest, Arena &arena)
        : g(graph),
          sums(arena.array<double>(widest.width)),
          state(arena.array<int64_t>(widest.order)) {}
    double fit_all(double *tau) const;
    double value(const double *score, const double *tau) const;

  private:
    double fit(int64_t f, double *tau) const;
    void round(int64_t f, double *tau) const;
};

// The largest range of an open table's logarithms over its counting number.
double widest_range(const message_graph &g, const double *score);
