// Sweeps of messages, whatever kernel sends them: schedules, damping, stopping, and examples.
#pragma once

#include "factors.h"

constexpr int64_t FLOODING = 1, RESIDUAL = 2;
constexpr int64_t PATIENCE = 40;  // sweeps in which the residual must halve, or damping grows
constexpr double IDLE = 0.1;      // pending changes below this share of the largest one wait
constexpr double CLIP = 500.0;    // log of the rarest belief that is kept linear
constexpr double APART = 1e-5, FAR = 10.0;  // how far tables may be from nodes at rest

INLINE double clipped(double x, double most) { return smaller(larger(x, -most), most); }
INLINE void exponentiate(double *x, int64_t size) {
    for (int64_t k = 0; k < size; k += EIGHT) store(x + k, exponential(load(x + k)));
}

// What a node reads of its neighbours: the numbers as they are, or as they were before the sweep.
struct Read {
    double *message, *belief;
    double *message_copy, *belief_copy;
    int64_t messages, beliefs;

    Read(double *sent, int64_t sent_size, double *known, int64_t known_size, bool flooding,
         Arena &arena)
        : message(sent),
          belief(known),
          message_copy(flooding ? arena.array<double>(sent_size) : nullptr),
          belief_copy(flooding ? arena.array<double>(known_size) : nullptr),
          messages(sent_size),
          beliefs(known_size) {}

    const double *old_message() const { return message_copy ? message_copy : message; }
    const double *old_belief() const { return belief_copy ? belief_copy : belief; }
    void repeat() const {
        if (!message_copy) return;
        copy(message_copy, message, messages);
        copy(belief_copy, belief, beliefs);
    }
};

// Send sweeps until no log-belief moves by more than the tolerance; return how many, and write the
// last residual.
template <class Kernel>
int64_t run(Kernel &kernel, const message_schedule &how, double *pending, double *last) {
    const int64_t n = kernel.nodes();
    const bool waits = how.schedule == RESIDUAL;
    double damping = how.damping, waiting = 0.0, best = INF, residual = INF;
    int64_t since = 0;
    for (int64_t i = 0; i < n; ++i) pending[i] = INF;
    kernel.read.repeat();
    for (int64_t sweep = 0; sweep < how.sweeps; ++sweep) {
        const double threshold = waiting;
        residual = 0.0;
        for (int64_t t = 0; t < n; ++t) {
            const int64_t i = sweep % 2 == 0 ? t : n - 1 - t;
            if (waits && pending[i] < IDLE * threshold) continue;
            const double moved = kernel.move(i, damping);
            residual = larger(moved, residual);
            if (!waits) continue;
            pending[i] = 0.0;
            for (int64_t p = kernel.near_start()[i]; p < kernel.near_start()[i + 1]; ++p) {
                double &other = pending[kernel.near()[p]];
                other = larger(moved, other);
            }
        }
        if (waits) {
            waiting = -INF;
            for (int64_t i = 0; i < n; ++i) waiting = larger(pending[i], waiting);
            residual = larger(waiting, residual);
        }
        *last = residual;
        if (residual <= how.residual) return sweep + 1;
        kernel.read.repeat();
        ++since;
        if (residual < 0.5 * best) {
            best = residual;
            since = 0;
        } else if (since >= PATIENCE) {
            damping = smaller(0.5 + 0.5 * damping, 0.9);
            best = residual;
            since = 0;
        }
    }
    *last = residual;
    return how.sweeps;
}

// Solve examples by a kernel that knows its scores, its messages and its tables.
struct Solver {
    const message_graph &g;
    const message_examples &examples;
    const message_schedule &how;
    message_state &state;
    message_results &results;
    Repair repair;
    double *pending;

    Solver(const message_graph &graph, const message_examples &given, const message_schedule &by,
           message_state &kept, message_results &out, const Widest &widest, Arena &arena)
        : g(graph),
          examples(given),
          how(by),
          state(kept),
          results(out),
          repair(graph, widest, arena),
          pending(arena.array<double>(graph.nodes)) {}

    const double *score(int64_t m) const { return examples.score + examples.offset[m]; }

    template <class Kernel>
    void solve(int64_t m, Kernel &kernel) {
        double *message = state.message + m * state.messages;
        double *belief = state.belief + m * state.beliefs;
        double *tau = results.tau + examples.offset[m], residual = INF;
        kernel.begin(score(m), message, belief);
        state.sweeps[m] = run(kernel, how, pending, &residual);
        kernel.end(message, belief, tau);
        const double apart = repair.fit_all(tau);
        const bool far = apart > APART + FAR * how.residual;
        state.residual[m] = far ? larger(apart, residual) : residual;
        results.log_z[m] = repair.value(score(m), tau);
    }

    // Solve all examples; those with narrow tables by a kernel for them, where there is one.
    template <class Wide, class Narrow>
    status solve_all(Wide &wide, Narrow *narrow, const Arena &arena) {
        if (arena.failed) return NO_MEMORY;
        for (int64_t m = 0; m < examples.count; ++m)
            if (narrow && widest_range(g, score(m)) <= NARROW)
                solve(m, *narrow);
            else
                solve(m, wide);
        return OK;
    }
};
