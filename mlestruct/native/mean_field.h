// Mean field: products of node distributions.
#pragma once
#include "messages.h"

extern "C" {
/** Move the nodes one after the other to their best responses, until none moves by more than
``tol``; write tables as products, and the value. ``damping`` is the share of the old marginal that
is kept. */
EXPORT status ascend_products(const struct message_graph *graph,
                              const struct message_examples *examples, double damping, double tol,
                              int64_t sweeps, double *tau N(examples.size),
                              double *log_z N(examples.count));

/** From the data: nodes that are not ``known`` go from there to their best responses, which gives
``data`` and the free energy there; then so many steps of all nodes together give ``tau`` and the
free energy. */
EXPORT status relax_products(const struct message_graph *graph,
                             const struct message_examples *examples,
                             const bool *known N(examples.count *graph.nodes), int64_t steps,
                             double *data N(examples.size), double *tau N(examples.size),
                             double *free_energy N(2 * examples.count));
}
