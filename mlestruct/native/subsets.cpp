// Matchings by dynamic programming over subsets of nodes.
//
// Tables hold a number for every subset, by the bits of its members.
#include "subsets.h"

#include "lanes.h"

namespace {

// to += weight * source
INLINE void add_more(double *__restrict to, const double *__restrict source, double weight,
                     int64_t size) {
    for (int64_t k = 0; k < size; ++k) to[k] += weight * source[k];
}

// Every set with j gets `weight` times what the set without it has.
void take(const double *source, double *to, int64_t j, double weight, int64_t size) {
    const int64_t half = int64_t{1} << j;
    for (int64_t low = 0; low < size; low += 2 * half)
        add_more(to + low + half, source + low, weight, half);
}

// Every set without j gets `weight` times what the set with it has; return the sum, over sets
// without j, of `without` there times what the set with j has.
double give(const double *__restrict source, double *__restrict to,
            const double *__restrict without, int64_t j, double weight, int64_t size) {
    const int64_t half = int64_t{1} << j;
    Row total = row_of(0.0);
    double rest = 0.0;
    for (int64_t low = 0; low < size; low += 2 * half) {
        int64_t k = low;
        for (; k + EIGHT <= low + half; k += EIGHT) {
            const Row had = load(source + k + half);
            store(to + k, load(to + k) + weight * had);
            total = add_product(total, load(without + k), had);
        }
        for (; k < low + half; ++k) {
            to[k] += weight * source[k + half];
            rest += without[k] * source[k + half];
        }
    }
    return sum(total) + rest;
}

// The weight of all places that are not in a set, for every set.
void weigh_idle(const double *idle, int64_t places, bool full, double *left) {
    left[0] = 1.0;
    for (int64_t j = 0; j < places; ++j) {
        const int64_t half = int64_t{1} << j;
        for (int64_t k = 0; k < half; ++k) {
            left[half + k] = left[k];
            left[k] *= full ? 0.0 : idle[j];
        }
    }
}

INLINE int64_t highest_bit(int64_t set) {
    return 63 - __builtin_clzll(static_cast<unsigned long long>(set));
}

// Every item takes one place: a set of k places is filled by the first k items. Return Z.
double sum_by_rows(const place_weights *given, const double *weight, int8_t *members,
                   double *before, double *after, double *tau) {
    const int64_t rows = given->items, columns = given->places, size = int64_t{1} << columns;
    members[0] = 0;
    before[0] = 1.0;
    // A set's highest members first: tables of the others were written but a moment ago.
    for (int64_t taken = 1; taken < size; ++taken) {
        const int64_t i = members[taken >> 1] + (taken & 1);
        members[taken] = static_cast<int8_t>(i);
        double mass = 0.0;
        if (i <= rows)
            for (int64_t left = taken; left;) {
                const int64_t j = highest_bit(left), bit = int64_t{1} << j;
                mass += before[taken ^ bit] * weight[(i - 1) * columns + j];
                left ^= bit;
            }
        before[taken] = mass;
    }
    double z = 0.0;
    for (int64_t taken = size - 1; taken >= 0; --taken) {
        const int64_t i = members[taken];
        if (i == rows) z += before[taken] * after[taken];
        if (i >= rows) continue;
        const double *row = weight + i * columns;
        const double here = before[taken];
        double *out = tau + i * columns, mass = 0.0;
        for (int64_t left = size - 1 - taken; left;) {
            const int64_t j = highest_bit(left), bit = int64_t{1} << j;
            const double there = row[j] * after[taken | bit];
            mass += there;
            out[j] += here * there;
            left ^= bit;
        }
        after[taken] = mass;
    }
    return z;
}

void clear(double *values, int64_t size) {
    for (int64_t k = 0; k < size; ++k) values[k] = 0.0;
}

}  // namespace

status sum_sets_by_items(const place_weights *given, double *z, double *tau) {
    const int64_t items = given->items, places = given->places, size = int64_t{1} << places;
    Arena arena;
    double *before = arena.array<double>((items + 1) * size);
    double *after = arena.array<double>(size), *fresh = arena.array<double>(size);
    if (arena.failed) return NO_MEMORY;
    clear(tau, given->count * items * places);
    for (int64_t m = 0; m < given->count; ++m) {
        const double *weight = given->weight + m * items * places;
        const double *alone = given->alone + m * items;
        double *out = tau + m * items * places;
        weigh_idle(given->idle + m * places, places, given->full, after);
        clear(before, (items + 1) * size);
        before[0] = 1.0;
        for (int64_t i = 0; i < items; ++i) {
            double *here = before + i * size;
            add_more(here + size, here, alone[i], size);
            for (int64_t j = 0; j < places; ++j)
                take(here, here + size, j, weight[i * places + j], size);
        }
        z[m] = 0.0;
        for (int64_t k = 0; k < size; ++k) z[m] += before[items * size + k] * after[k];
        for (int64_t i = items - 1; i >= 0; --i) {
            clear(fresh, size);
            add_more(fresh, after, alone[i], size);
            for (int64_t j = 0; j < places; ++j) {
                const double w = weight[i * places + j];
                out[i * places + j] = w * give(after, fresh, before + i * size, j, w, size);
            }
            double *used = after;
            after = fresh;
            fresh = used;
        }
    }
    return OK;
}

status sum_sets_by_rows(const place_weights *given, double *z, double *tau) {
    const int64_t size = int64_t{1} << given->places, table = given->items * given->places;
    Arena arena;
    double *before = arena.array<double>(size), *after = arena.array<double>(size);
    int8_t *members = arena.array<int8_t>(size);
    if (arena.failed) return NO_MEMORY;
    clear(tau, given->count * table);
    for (int64_t m = 0; m < given->count; ++m) {
        weigh_idle(given->idle + m * given->places, given->places, given->full, after);
        z[m] =
            sum_by_rows(given, given->weight + m * table, members, before, after, tau + m * table);
    }
    return OK;
}

status sum_pairs(int64_t count, int64_t n, const double *weight, const double *alone, double *z,
                 double *tau) {
    const int64_t size = int64_t{1} << n;
    Arena arena;
    double *inside = arena.array<double>(size), *outside = arena.array<double>(size);
    if (arena.failed) return NO_MEMORY;
    clear(tau, count * n * n);
    for (int64_t m = 0; m < count; ++m, weight += n * n, alone += n, tau += n * n) {
        clear(inside, size);
        clear(outside, size);
        inside[0] = outside[size - 1] = 1.0;
        for (int64_t i = 0; i < n; ++i) {  // the highest node of a set first
            const int64_t half = int64_t{1} << i;
            add_more(inside + half, inside, alone[i], half);
            for (int64_t j = 0; j < i; ++j) take(inside, inside + half, j, weight[j * n + i], half);
        }
        for (int64_t i = n - 1; i >= 0; --i) {
            const int64_t half = int64_t{1} << i;
            add_more(outside, outside + half, alone[i], half);
            for (int64_t j = 0; j < i; ++j) {
                const double w = weight[j * n + i];
                tau[j * n + i] = w * give(outside + half, outside, inside, j, w, half);
            }
        }
        z[m] = inside[size - 1];
    }
    return OK;
}
