// Reweighted sum-product on factor graphs: messages, tables that agree, and bounds.
#pragma once
#include "kernel.h"

extern "C" {
/** A factor graph with counting numbers; one message per slot, a variable in a factor's scope.

The message of slot s begins at place[s], and the slot's state counts ``stride`` entries of its
factor's table. Slots around node i are named in ``around`` from start[i] on, and nodes that share
a factor with it in ``near`` from near_start[i] on. ``open`` marks entries that a locally consistent
point may use. ``counts`` are the factors' counting numbers c, ``whole`` a node's own and all of its
factors' together, and ``coefficient`` a in the entropy - sum a t log t of a consistent t. */
struct message_graph {
    int64_t nodes;
    int64_t factors;
    int64_t slots;
    const int64_t *node_start N(nodes + 1);
    const int64_t *table_start N(factors + 1);
    const int64_t *scope_start N(factors + 1);
    const int64_t *scope N(slots) BELOW(nodes);
    const int64_t *owner N(slots) BELOW(factors);
    const int64_t *place N(slots + 1);
    const int64_t *stride N(slots);
    const int64_t *start N(nodes + 1);
    const int64_t *around N(slots) BELOW(slots);
    const int64_t *near_start N(nodes + 1);
    const int64_t *near N(near_start[-1]) BELOW(nodes);
    const int8_t *open N(table_start[-1]);
    const double *counts N(factors);
    const double *whole N(nodes);
    const double *coefficient N(table_start[-1]);
};

/** Messages of a graph of pairs, in the order in which nodes read them.

States are padded to whole eights, and so are rows of tables and all messages into a node, which
follow one another without padding: message p begins at into[p], the one the other way at back[p],
and the edge's table at entry[p]. ``second`` marks messages whose node's states are the columns. */
struct pair_messages {
    int64_t nodes;
    int64_t factors;
    int64_t messages;
    const int64_t *near_start N(nodes + 1);
    const int64_t *near N(messages) BELOW(nodes);
    const int64_t *cards N(nodes);
    const int64_t *node_start N(nodes + 1);
    const int64_t *into N(messages + 1);
    const int64_t *back N(messages) BELOW(into[-1]);
    const int64_t *table_start N(factors + 1);
    const int64_t *entry N(messages) BELOW(table_start[-1]);
    const int8_t *second N(messages);
    const double *weight N(messages);
    const double *whole N(nodes);
};

/** Messages of a graph of pairs of binary variables; each node's are padded to whole eights.

Nodes are in another order, by levels: in a sweep a node waits for its neighbours of lower levels
only, so that a processor begins the next nodes while it works on one. ``order`` names the node,
``row`` where its messages begin, ``ahead`` the neighbour, ``back`` the message the other way,
``outside`` where it is among the graph's messages (-1 for padding), and ``table`` the edge's
table. */
struct binary_messages {
    int64_t nodes;
    int64_t room;
    const int64_t *near_start N(nodes + 1);
    const int64_t *near N(near_start[-1]) BELOW(nodes);
    const int64_t *order N(nodes) BELOW(nodes);
    const int64_t *row N(nodes + 1) BELOW(room + 1);
    const int64_t *ahead N(room) BELOW(nodes);
    const int64_t *back N(room) BELOW(room);
    const int64_t *outside N(room);
    const int64_t *table N(room);
    const int8_t *second N(room);
    const double *weight N(room);
    const double *whole N(nodes);
};

/** Examples of one graph: their coordinates among the scores begin at ``offset``. */
struct message_examples {
    int64_t count;
    int64_t size;
    const int64_t *offset N(count);
    const double *score N(size);
};

/** Messages and log-beliefs of examples, which calls go on from, and how the last sweeps ended. */
struct message_state {
    int64_t count;
    int64_t messages;
    int64_t beliefs;
    double *message N(count *messages);
    double *belief N(count *beliefs);
    double *residual N(count);
    int64_t *sweeps N(count);
};

/** How messages are sent: the schedule (0 node after node, 1 all at once, 2 nodes wait whose
neighbours hardly moved), the share of the last message that is kept, and when sweeps end. */
struct message_schedule {
    int64_t schedule;
    double damping;
    double residual;
    int64_t sweeps;
};

/** What messages give: feasible marginals, and the surrogate's value there. */
struct message_results {
    int64_t count;
    int64_t size;
    double *tau N(size);
    double *log_z N(count);
};

/** Send messages of factors of any order. Where ``pairs`` or ``binary`` are given, they serve the
examples whose tables are narrow enough. */
EXPORT status send_messages(const struct message_graph *graph,
                            const struct pair_messages *pairs MAYBE,
                            const struct binary_messages *binary MAYBE,
                            const struct message_examples *examples,
                            const struct message_schedule *how, struct message_state *state,
                            struct message_results *results);

/** Fit every factor's table to the node marginals, in place: then they are feasible. */
EXPORT status fit_tables(const struct message_graph *graph, double *tau N(graph.table_start[-1]));
}
