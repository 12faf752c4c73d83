// Frank-Wolfe on a dual objective: block steps, one after the other, on R*(r) - sum w H.
//
// tau is the point, r the residual moments, theta = R*'(r) the weights; H has a term -a t log t for
// every view t: a coordinate, its complement, or a row of C tau + c0 (mixed views). Jaggi,
// Revisiting Frank-Wolfe (ICML 2013); Lacoste-Julien and Jaggi, On the Global Linear Convergence of
// Frank-Wolfe Optimization Variants (NIPS 2015), for pairwise steps.
#include "frank_wolfe.h"

#include "lanes.h"

namespace {

constexpr double FLOOR = 1e-16;      // as in entropy.py: logarithms are clipped here
constexpr double PRECISION = 1e-6;   // |phi'| relative to |phi'(0)| at which a step counts as exact
constexpr double MOST = 1.0 - 1e-9;  // of the way to a vertex in plain steps: slopes stay finite
constexpr int64_t IDLE = 12;         // rounds after which a vertex without weight may be forgotten
constexpr int64_t PAIRS = 2;         // steps per scoring: a line search costs less than a scoring
constexpr int64_t FRESH = 4;    // rounds, or corrective passes, between recomputations of stiffness
constexpr double ENOUGH = 0.1;  // of a block's first difference of scores: a smaller one ends it

double size_of(double x) { return __builtin_fabs(x); }
double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0; }
double within(double x, double low, double high) { return smaller(larger(x, low), high); }

// --------------------------------------------------------------------------------------- slopes

// Weights on columns: theta = R*'(r), by lambda, prior, l1 and bounds.
struct Terms {
    const double *lam, *prior, *l1, *lower, *upper;

    Terms(const double *terms, int64_t d)
        : lam(terms),
          prior(terms + d),
          l1(terms + 2 * d),
          lower(terms + 3 * d),
          upper(terms + 4 * d) {}

    // The weight before it is clipped; l1 and bounds may be left out for a ridge.
    double free(double r, int64_t k) const {
        const double x = r + lam[k] * prior[k];
        return sign_of(x) * larger(size_of(x) - l1[k], 0.0) / lam[k];
    }
    double weight(double r, int64_t k, bool ridge) const {
        return ridge ? (r + lam[k] * prior[k]) / lam[k] : within(free(r, k), lower[k], upper[k]);
    }
};

void refresh_weights(const int64_t *column, int64_t wide, const dual_problem &p,
                     const dual_point &x) {
    const Terms terms(p.terms, p.weights);
    for (int64_t j = 0; j < wide; ++j)
        x.theta[column[j]] = terms.weight(x.r[column[j]], column[j], p.ridge);
}

// Slopes of up to eight coordinates; each has the same bits whichever stand beside it.
INLINE void slopes_of_eight(const int64_t *place, int64_t count, const dual_problem &p,
                            const dual_point &x) {
    Row tau = row_of(0.0), bias = tau, a = tau, b = tau;
    double taken[4][EIGHT] = {}, found[3][EIGHT];
    for (int64_t i = 0; i < count; ++i) {
        const int64_t k = place[i];
        taken[0][i] = x.tau[k], taken[1][i] = p.bias[k], taken[2][i] = p.a[k];
        taken[3][i] = p.b[k];
    }
    tau = load(taken[0]), bias = load(taken[1]), a = load(taken[2]), b = load(taken[3]);
    const Row least = row_of(FLOOR), t = larger(tau, least), level = logarithm(t);
    Row slope = bias - a * (level + 1.0), stiff = a / t, held = -(a * tau * level);
    if (any(b != row_of(0.0))) {
        const Row rest = 1.0 - tau, u = larger(rest, least), other = logarithm(u);
        slope = slope + b * (other + 1.0);
        stiff = stiff + b / u;
        held = held - b * rest * other;
    }
    store(found[0], slope), store(found[1], larger(stiff, row_of(0.0))), store(found[2], held);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t k = place[i];
        x.smooth[k] = found[0][i], x.stiff[k] = found[1][i], x.held[k] = found[2][i];
    }
}

void smooth_slopes(const int64_t *place, int64_t count, const dual_problem &p,
                   const dual_point &x) {
    for (int64_t i = 0; i < count; i += EIGHT)
        slopes_of_eight(place + i, count - i < EIGHT ? count - i : EIGHT, p, x);
}

// A mixed view at a point.
double view_of(int64_t v, const dual_problem &p, const double *tau) {
    double t = p.c0[v];
    for (int64_t e = p.ptr[v]; e < p.ptr[v + 1]; ++e) t += p.value[e] * tau[p.index[e]];
    return t;
}

// Up to eight of a block's mixed views, and their logarithms at once.
struct Views {
    int64_t first, count;
    double at[EIGHT], level[EIGHT];

    Views(int64_t first, int64_t last, const dual_problem &p, const double *tau)
        : first(first), count(last - first < EIGHT ? last - first : EIGHT) {
        for (int64_t i = 0; i < EIGHT; ++i) at[i] = i < count ? view_of(first + i, p, tau) : 1.0;
        store(level, logarithm(larger(load(at), row_of(FLOOR))));
    }
    // Add the slopes of one view to those of its coordinates.
    void add_slope(int64_t i, const dual_problem &p, double *slope) const {
        const int64_t v = first + i;
        const double steep = -p.mixed[v] * (level[i] + 1.0);
        for (int64_t e = p.ptr[v]; e < p.ptr[v + 1]; ++e) slope[p.index[e]] += steep * p.value[e];
    }
};

void rough_slope(int64_t m, const dual_problem &p, const dual_point &x) {
    if (p.start[m] == p.start[m + 1]) return;
    for (int64_t k = p.offsets[m]; k < p.offsets[m + 1]; ++k) x.rough[k] = 0.0;
    for (int64_t v = p.start[m]; v < p.start[m + 1]; v += EIGHT) {
        const Views views(v, p.start[m + 1], p, x.tau);
        for (int64_t i = 0; i < views.count; ++i)
            if (p.mixed[v + i] != 0.0) views.add_slope(i, p, x.rough);
    }
}

// H of a block's views at tau, and by how much the tangent elsewhere overestimates it.
struct Tangent {
    const dual_problem &p;
    const dual_point &x;
    double share, held, over;

    // At tau itself all slopes are known.
    void at_point(int64_t m, double *at, double *slope) {
        for (int64_t k = p.offsets[m]; k < p.offsets[m + 1]; ++k) {
            held += x.held[k] + p.bias[k] * x.tau[k];
            at[k] = x.tau[k];
            slope[k] = x.smooth[k] + x.rough[k];
        }
    }
    void beside(int64_t m, const double *u, double *at, double *slope) {
        Row known = row_of(0.0), more = known;
        const Row least = row_of(FLOOR);
        for (int64_t k = p.offsets[m]; k < p.offsets[m + 1]; k += EIGHT) {
            const int64_t left = p.offsets[m + 1] - k, count = left < EIGHT ? left : EIGHT;
            const auto taken = [&](const double *from) {
                return load_some(from + k, count, from + k + count, 0.0);
            };
            const Row tau = taken(x.tau), a = taken(p.a), b = taken(p.b), bias = taken(p.bias);
            const Row here = (1.0 - share) * tau + share * taken(u), own = taken(x.held);
            const Row level = logarithm(larger(here, least));
            Row steep = bias - a * (level + 1.0);
            more = more - own + a * (here - tau - tau * level);
            if (any(b != row_of(0.0))) {
                const Row other = logarithm(larger(1.0 - here, least));
                steep = steep + b * (other + 1.0);
                more = more + b * (tau - here - (1.0 - tau) * other);
            }
            known = known + (own + bias * tau);
            double found[2][EIGHT];
            store(found[0], here), store(found[1], steep);
            std::memcpy(at + k, found[0], count * sizeof(double));
            std::memcpy(slope + k, found[1], count * sizeof(double));
        }
        held += sum(known), over += sum(more);
    }
    void views(int64_t m, const double *at, double *slope) {
        for (int64_t v = p.start[m]; v < p.start[m + 1]; v += EIGHT) {
            const Views point(v, p.start[m + 1], p, x.tau), there(v, p.start[m + 1], p, at);
            for (int64_t i = 0; i < point.count; ++i) {
                const double a = p.mixed[v + i], t = point.at[i];
                if (a == 0.0) continue;
                const double own = t > 0.0 ? -a * t * point.level[i] : 0.0;
                held += own;
                if (share == 0.0) continue;
                there.add_slope(i, p, slope);
                over += a * (there.at[i] - t - larger(t, 0.0) * there.level[i]) - own;
            }
        }
    }
};

// ---------------------------------------------------------------------------------- line search

struct Slopes {
    double first, second;  // phi' and phi''
};

// -<theta(r - gamma change), change> and the size of its derivative.
Slopes pull(const step_line &line, double gamma) {
    const Terms terms(line.terms, line.weights);
    Slopes found = {0.0, 0.0};
    for (int64_t j = 0; j < line.wide; ++j) {
        const int64_t k = line.column[j];
        const double change = line.change[j];
        if (change == 0.0) continue;
        const double weight = terms.free(line.r[k] - gamma * change, k);
        const bool inside = terms.lower[k] < weight && weight < terms.upper[k];
        found.first -= within(weight, terms.lower[k], terms.upper[k]) * change;
        if (inside && (weight != 0.0 || terms.l1[k] == 0.0))
            found.second += change * change / terms.lam[k];
    }
    return found;
}

Slopes derivative(const step_line &line, double gamma) {
    Row slope = row_of(0.0), curvature = slope;
    for (int64_t k = 0; k < line.eights * EIGHT; k += EIGHT) {
        const Row dt = load(line.dt + k), steep = load(line.a + k) * dt;
        const Row x = larger(load(line.t + k) + gamma * dt, row_of(FLOOR));
        slope = slope + steep * (logarithm(x) + 1.0);
        curvature = curvature + steep * dt / x;
    }
    const double first = line.weight * sum(slope) + line.linear;
    const double second = line.weight * sum(curvature);
    if (line.ridge) return {first + line.quadratic * gamma, second + line.quadratic};
    const Slopes more = pull(line, gamma);
    return {first + more.first, second + more.second};
}

// A root of phi' by safeguarded Newton; writes phi'(0). phi' only rises, so the end point is looked
// at no earlier than Newton reaches for it.
double search(const step_line &line, double most, double *slope_at_0) {
    const Slopes start = derivative(line, 0.0);
    *slope_at_0 = start.first;
    if (start.first >= 0.0 || most <= 0.0) return 0.0;
    double gamma = 0.0, low = 0.0, high = most;
    Slopes here = start;
    bool end_seen = false;
    for (int turn = 0; turn < 100; ++turn) {
        double step = here.second > 0.0 ? gamma - here.first / here.second : most;
        if (step >= high && !end_seen) {
            if (derivative(line, most).first <= 0.0) return most;
            end_seen = true;
        }
        if (!(low < step && step < high)) step = 0.5 * (low + high);
        gamma = step;
        here = derivative(line, gamma);
        if (size_of(here.first) <= PRECISION * -start.first) break;
        (here.first < 0.0 ? low : high) = gamma;
        if (high - low <= 1e-15 * most) break;
    }
    return gamma;
}

// ----------------------------------------------------------------------------------------- atoms

// One slot's row.
struct AtomRow {
    const int32_t *place;  // none where the row is dense
    const double *amount;  // none where all are ones
    int64_t count;

    AtomRow(const atom_rows &rows, int64_t m, int64_t slot) {
        const int64_t start = rows.start[m] + slot * rows.width[m];
        place = rows.places ? rows.place + start : nullptr;
        amount = rows.amounts ? rows.amount + start : nullptr;
        count = place || amount ? rows.length[m * rows.cap + slot] : 0;
    }
    double at(int64_t e) const { return amount ? amount[e] : 1.0; }

    // out += factor * the row; `out` begins at the flat position `first`.
    void add_to(double *out, double factor, int64_t first) const {
        if (!place)
            for (int64_t e = 0; e < count; ++e) out[e] += factor * amount[e];
        else if (!amount)
            for (int64_t e = 0; e < count; ++e) out[place[e] - first] += factor;
        else
            for (int64_t e = 0; e < count; ++e) out[place[e] - first] += factor * amount[e];
    }

    INLINE Row gathered(const double *values, int64_t e) const {
        double some[EIGHT];
        for (int64_t k = 0; k < EIGHT; ++k) some[k] = values[place[e + k]];
        return load(some);
    }
    // <values, row>, by lanes and then what is left.
    double product(const double *values, int64_t first) const {
        Row total = row_of(0.0);
        double left = 0.0;
        int64_t e = 0;
        if (!place) {
            for (; e + EIGHT <= count; e += EIGHT)
                total = add_product(total, load(values + e), load(amount + e));
            for (; e < count; ++e) left += values[e] * amount[e];
            return sum(total) + left;
        }
        const double *from = values - first;
        if (!amount) {
            double lane[4] = {};
            for (; e + 4 <= count; e += 4)
                for (int k = 0; k < 4; ++k) lane[k] += from[place[e + k]];
            for (; e < count; ++e) left += from[place[e]];
            return ((lane[0] + lane[2]) + (lane[1] + lane[3])) + left;
        }
        for (; e + EIGHT <= count; e += EIGHT)
            total = add_product(total, gathered(from, e), load(amount + e));
        for (; e < count; ++e) left += from[place[e]] * amount[e];
        return sum(total) + left;
    }
};

// Every slot's product, added to `out` or not.
void products(const atom_rows &rows, int64_t m, int64_t known, const double *values, int64_t first,
              bool more, double *out) {
    for (int64_t slot = 0; slot < known; ++slot) {
        const double found = AtomRow(rows, m, slot).product(values, first);
        out[slot] = more ? out[slot] + found : found;
    }
}

void fill(const atom_rows &rows, int64_t m, int64_t slot, const double *flat,
          const int64_t *edges) {
    const int64_t start = rows.start[m] + slot * rows.width[m];
    int64_t e = start;
    for (int64_t k = edges[m]; k < edges[m + 1]; ++k) {
        if (rows.places && flat[k] == 0.0) continue;
        if (rows.places) rows.place[e] = static_cast<int32_t>(k);
        if (rows.amounts) rows.amount[e] = flat[k];
        ++e;
    }
    rows.length[m * rows.cap + slot] = e - start;
}

// The active set of one block.
struct Block {
    const dual_problem &p;
    const atom_set &atoms;
    int64_t m, first, last, here, wide;
    int64_t &known, *used, *tag;
    double *weight, *stiff, &rest;

    Block(const dual_problem &p, const atom_set &atoms, int64_t m)
        : p(p),
          atoms(atoms),
          m(m),
          first(p.offsets[m]),
          last(p.offsets[m + 1]),
          here(p.column_start[m]),
          wide(p.column_start[m + 1] - here),
          known(atoms.known[m]),
          used(atoms.used + m * atoms.cap),
          tag(atoms.tag + m * atoms.cap),
          weight(atoms.weight + m * atoms.cap),
          stiff(atoms.stiff + m * atoms.cap),
          rest(atoms.rest[m]) {}

    AtomRow vertex(int64_t slot) const { return AtomRow(*atoms.vertex, m, slot); }
    AtomRow moment(int64_t slot) const { return AtomRow(*atoms.moment, m, slot); }

    // A number of the vertex, and how many entries it has.
    int64_t tag_of(const double *vertices, int64_t *length) const {
        uint64_t found = 7;
        *length = 0;
        for (int64_t k = first; k < last; ++k) {
            if (vertices[k] == 0.0) continue;
            found = found * 1000003 + static_cast<uint64_t>(k - first) * 4 +
                    static_cast<uint64_t>(static_cast<int64_t>(2.0 * vertices[k]));
            ++*length;
        }
        return static_cast<int64_t>(found);
    }
    bool same(int64_t slot, const double *vertices, int64_t length) const {
        const AtomRow own = vertex(slot);
        bool equal = own.count == length;
        for (int64_t e = 0; equal && e < length; ++e) equal = vertices[own.place[e]] == own.at(e);
        return equal;
    }

    // Put a vertex into its own slot if known, else into a free or the least useful one.
    int64_t insert(const double *vertices, const double *moments, int64_t now) {
        int64_t length, stale = -1, chosen = -1;
        const int64_t own = tag_of(vertices, &length);
        double lightest = INF;
        for (int64_t slot = 0; slot < known; ++slot) {
            if (tag[slot] == own && same(slot, vertices, length)) {
                used[slot] = now;
                return slot;
            }
            const int64_t idle = now - used[slot];
            if (weight[slot] == 0.0 && idle > IDLE) stale = slot;
            const double rank = weight[slot] > 0.0 ? weight[slot] : -1.0 - double(idle);
            if (rank < lightest) {
                chosen = slot;
                lightest = rank;
            }
        }
        if (stale >= 0)
            chosen = stale;
        else if (known < atoms.cap)
            chosen = known++;
        else if (weight[chosen] > 0.0)
            merge(chosen);
        fill(*atoms.vertex, m, chosen, vertices, p.offsets);
        fill(*atoms.moment, m, chosen, moments, p.column_start);
        stiff[chosen] = INF;  // promises nothing until it is known
        tag[chosen] = own;
        used[chosen] = now;
        weight[chosen] = 0.0;
        return chosen;
    }

    // Add an atom's weight to the base, so that a full set forgets an atom but no mass.
    void merge(int64_t slot) {
        const double keep = rest / (rest + weight[slot]);
        double *moments = atoms.base_moment + here;
        for (int64_t k = first; k < last; ++k) atoms.base[k] *= keep;
        vertex(slot).add_to(atoms.base, 1.0 - keep, 0);
        for (int64_t j = 0; j < wide; ++j) moments[j] *= keep;
        moment(slot).add_to(moments, 1.0 - keep, here);
        atoms.interior[m] *= keep;
        rest += weight[slot];
        weight[slot] = 0.0;
    }

    // The base's least weight that leaves the interior point `floor` in it.
    double least(double floor) const { return floor > 0.0 ? floor / atoms.interior[m] : 0.0; }

    // The atom that is nearly the whole mean: then none lies below it.
    int64_t heaviest() const {
        int64_t found = -1;
        double most = rest;
        for (int64_t slot = 0; slot < known; ++slot)
            if (weight[slot] > most) {
                found = slot;
                most = weight[slot];
            }
        return found;
    }
};

// ----------------------------------------------------------------------------------------- steps

struct Moved {
    double gamma, decrease;
};

struct Steps {
    const dual_problem &p;
    const dual_point &x;
    const step_room &s;

    explicit Steps(const dual_iterate &at) : p(*at.p), x(*at.x), s(*at.s) {}

    // The entropy's terms along s.delta into a line; returns the bias's part of phi'.
    double collect(int64_t m, int64_t count, step_line *line) const {
        const int64_t first = p.offsets[m];
        int64_t size = 0;
        double linear = 0.0;
        const auto add = [&](double a, double t, double dt) {
            s.a[size] = a, s.t[size] = t, s.dt[size] = dt;
            ++size;
        };
        for (int64_t i = 0; i < count; ++i) {
            const int64_t k = s.place[i];
            const double step = s.delta[k - first];
            linear -= p.bias[k] * step;
            if (p.a[k] != 0.0) add(p.a[k], x.tau[k], step);
            if (p.b[k] != 0.0) add(p.b[k], 1.0 - x.tau[k], -step);
        }
        for (int64_t v = p.start[m]; v < p.start[m + 1]; ++v) {
            if (p.mixed[v] == 0.0) continue;
            double dt = 0.0;
            for (int64_t e = p.ptr[v]; e < p.ptr[v + 1]; ++e)
                dt += p.value[e] * s.delta[p.index[e] - first];
            if (dt != 0.0) add(p.mixed[v], view_of(v, p, x.tau), dt);
        }
        while (size % EIGHT) add(0.0, 0.0, 0.0);
        line->eights = size / EIGHT;
        return linear;
    }

    // Exact step along s.delta (on s.place) and s.change (on s.column). A given gamma >= 0 replaces
    // the line search (the papers' fixed steps). The decrease is the trapezoid's, at most twice and
    // at least half the truth at an interior minimum.
    Moved move(int64_t m, double most, int64_t count, int64_t wide, double gamma) const {
        step_line line = {0.0,  0.0,      p.weight[m], p.ridge, p.weights, x.r, p.terms,
                          wide, s.column, s.change,    0,       s.a,       s.t, s.dt};
        line.linear = p.weight[m] * collect(m, count, &line);
        for (int64_t j = 0; j < wide; ++j) {
            const int64_t k = s.column[j];
            s.change[j] *= p.weight[m];
            if (p.ridge) {
                line.linear -= x.theta[k] * s.change[j];
                line.quadratic += s.change[j] * s.change[j] / p.terms[k];
            }
        }
        double slope = 0.0;
        if (gamma < 0.0) gamma = search(line, most, &slope);
        if (gamma > 0.0) {
            for (int64_t j = 0; j < wide; ++j) x.r[s.column[j]] -= gamma * s.change[j];
            refresh_weights(s.column, wide, p, x);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t k = s.place[i];
                x.tau[k] = within(x.tau[k] + gamma * s.delta[k - p.offsets[m]], 0.0, 1.0);
            }
            smooth_slopes(s.place, count, p, x);
            rough_slope(m, p, x);
        }
        return {gamma, -0.5 * slope * gamma};
    }

    // tau_m towards its vertex; x.moment holds its moments.
    void plain(int64_t m, const double *vertices, const double *moments, double gamma) const {
        const int64_t first = p.offsets[m], size = p.offsets[m + 1] - first;
        const int64_t here = p.column_start[m], wide = p.column_start[m + 1] - here;
        for (int64_t k = 0; k < size; ++k) {
            s.delta[k] = vertices[first + k] - x.tau[first + k];
            s.place[k] = first + k;
        }
        for (int64_t j = 0; j < wide; ++j) {
            s.column[j] = p.column[here + j];
            s.change[j] = moments[here + j] - x.moment[here + j];
        }
        const double taken = move(m, MOST, size, wide, gamma).gamma;
        for (int64_t j = here; j < here + wide; ++j)
            x.moment[j] += taken * (moments[j] - x.moment[j]);
        for (int64_t k = 0; k < size; ++k) s.delta[k] = 0.0;
    }

    // ---------------------------------------------------------------------------- pairwise steps

    // Add sign * atom to the direction; the support grows by coordinates not yet in it.
    int64_t spread(const Block &block, int64_t slot, double sign, int64_t count) const {
        const AtomRow own = block.vertex(slot);
        for (int64_t e = 0; e < own.count; ++e) {
            const int64_t k = own.place[e];
            double &delta = s.delta[k - block.first];
            if (delta == 0.0) s.place[count++] = k;
            delta += sign * own.at(e);
        }
        return count;
    }

    // s.delta = toward - away, the base being slot -1; returns the size of its support.
    int64_t difference(const Block &block, int64_t toward, int64_t away) const {
        int64_t count = 0;
        if (toward >= 0 && away >= 0) {
            count = spread(block, away, -1.0, spread(block, toward, 1.0, 0));
        } else {
            const double sign = toward < 0 ? 1.0 : -1.0;
            for (int64_t k = block.first; k < block.last; ++k, ++count) {
                s.delta[count] += sign * block.atoms.base[k];
                s.place[count] = k;
            }
            block.vertex(toward < 0 ? away : toward).add_to(s.delta, -sign, block.first);
        }
        int64_t kept = 0;  // without coordinates whose changes cancelled
        for (int64_t i = 0; i < count; ++i)
            if (s.delta[s.place[i] - block.first] != 0.0) s.place[kept++] = s.place[i];
        return kept;
    }

    // s.change = moments of toward - away, on s.column; returns the size of its support.
    int64_t changes(const Block &block, int64_t toward, int64_t away) const {
        if (block.atoms.moment->places && toward >= 0 && away >= 0)
            return merged_changes(block.moment(toward), block.moment(away));
        for (int64_t j = 0; j < block.wide; ++j) {
            s.column[j] = p.column[block.here + j];
            s.change[j] = 0.0;
        }
        for (int side = 0; side < 2; ++side) {
            const int64_t slot = side ? away : toward;
            const double sign = side ? -1.0 : 1.0;
            if (slot >= 0)
                block.moment(slot).add_to(s.change, sign, block.here);
            else
                for (int64_t j = 0; j < block.wide; ++j)
                    s.change[j] += sign * block.atoms.base_moment[block.here + j];
        }
        return block.wide;
    }

    // The same by merging two rows of ascending places.
    int64_t merged_changes(const AtomRow &toward, const AtomRow &away) const {
        int64_t i = 0, j = 0, wide = 0;
        while (i < toward.count || j < away.count) {
            const int64_t a = i < toward.count ? toward.place[i] : p.columns;
            const int64_t b = j < away.count ? away.place[j] : p.columns;
            double value = 0.0;
            if (a <= b) value += toward.amount[i++];
            if (b <= a) value -= away.amount[j++];
            if (value == 0.0) continue;
            s.column[wide] = p.column[a < b ? a : b];
            s.change[wide++] = value;
        }
        return wide;
    }

    // Move weight from one atom to another: only coordinates where they differ are touched.
    double pairwise(Block &block, int64_t toward, int64_t away, double most) const {
        const int64_t count = difference(block, toward, away);
        const int64_t wide = changes(block, toward, away);
        const Moved moved = move(block.m, most, count, wide, -1.0);
        for (int64_t i = 0; i < count; ++i) s.delta[s.place[i] - block.first] = 0.0;
        if (moved.gamma > 0.0) {
            if (away < 0)
                block.rest -= moved.gamma;
            else  // to 0.0 itself, and no crumbs
                block.weight[away] = moved.gamma == most ? 0.0 : block.weight[away] - moved.gamma;
            (toward < 0 ? block.rest : block.weight[toward]) += moved.gamma;
        }
        return moved.decrease;
    }

    double base_score(const Block &block) const {
        double total = 0.0;
        for (int64_t j = 0; j < block.wide; ++j)
            total += s.theta[j] * block.atoms.base_moment[block.here + j];
        for (int64_t k = block.first; k < block.last; ++k)
            total += (x.smooth[k] + x.rough[k]) * block.atoms.base[k];
        return total;
    }

    // <Phi theta + bias, atom> of every atom, without the slopes of mixed views.
    void score(const Block &block) const {
        for (int64_t j = 0; j < block.wide; ++j) s.theta[j] = x.theta[p.column[block.here + j]];
        const int64_t m = block.m, known = block.known;
        products(*block.atoms.moment, m, known, s.theta, block.here, false, s.score);
        products(*block.atoms.vertex, m, known, x.smooth, 0, true, s.score);
    }

    // Every atom's score <Phi theta + bias + H'(tau), atom - mean> and what a step to or from it
    // promises: score^2 / stiffness, or all its weight's worth where that is less. Choosing by
    // slope alone would forever chase coordinates of tiny probability. The stiffness may be a few
    // passes old (a gather saved). Returns the base's score.
    double promises(const Block &block, bool fresh, bool loose) const {
        const int64_t m = block.m, known = block.known;
        score(block);
        if (p.start[m] < p.start[m + 1])
            products(*block.atoms.vertex, m, known, x.rough, 0, true, s.score);
        if (fresh) products(*block.atoms.vertex, m, known, x.stiff, 0, false, block.stiff);
        const double base = loose ? base_score(block) : 0.0;
        double mass = loose ? block.rest : 0.0, mean = base * mass;
        for (int64_t slot = 0; slot < known; ++slot) {
            mean += s.score[slot] * block.weight[slot];
            mass += block.weight[slot];
        }
        mean /= larger(mass, 1e-300);
        for (int64_t slot = 0; slot < known; ++slot) {
            const double ahead = s.score[slot] - mean, behind = larger(-ahead, 0.0);
            const double curvature = block.stiff[slot] + 1e-12;
            s.up[slot] = ahead > 0.0 ? ahead * ahead / curvature : 0.0;
            s.down[slot] = behind * smaller(block.weight[slot], behind / curvature);
        }
        return base - mean;
    }

    // The most promising pairwise steps of a block, the first towards `forced` where given.
    double pairs(Block &block, int64_t forced, bool fresh, const step_turn &turn) const {
        const double floor = block.least(turn.floor);
        const bool loose = block.rest > 2.0 * floor;
        const double base = promises(block, fresh, loose);
        double spare = loose ? (block.rest - floor) * -base : 0.0, decrease = 0.0;
        const int64_t steps = PAIRS + turn.more * block.known / (block.last - block.first);
        for (int64_t step = 0; step < steps; ++step) {
            int64_t toward = -2, away = spare > 0.0 ? -1 : -2;
            double down = larger(spare, 0.0);
            for (int64_t slot = 0; slot < block.known; ++slot) {
                if (s.up[slot] > 0.0 && (toward < 0 || s.up[slot] > s.up[toward])) toward = slot;
                if (s.down[slot] > down) {
                    away = slot;
                    down = s.down[slot];
                }
            }
            if (forced >= 0) {
                toward = forced;
                forced = -1;
                if (away == -2) away = block.heaviest();
            }
            if (toward < 0 || away == -2 || toward == away) break;
            const double most = away < 0 ? block.rest - floor : block.weight[away];
            block.used[toward] = turn.now;
            decrease += pairwise(block, toward, away, most);
            s.up[toward] = 0.0;
            (away < 0 ? spare : s.down[away]) = 0.0;
        }
        return decrease;
    }
};

// -------------------------------------------------------------------------- quadratic programs

// Without entropy and under a ridge a pairwise step changes the other vertices' scores by rows of
// their moments' products. So after one scoring a block takes as many steps as it has vertices, of
// O(vertices) each, and its point and the weights theta follow once.
struct Quadratic {
    const Steps &steps;
    Block &block;
    int64_t *tag;
    double *product;
    int64_t cap;

    Quadratic(const Steps &steps, Block &block, const atom_products &all)
        : steps(steps),
          block(block),
          tag(all.tag + block.m * all.cap),
          product(all.product + block.m * all.cap * all.cap),
          cap(all.cap) {}

    // Products of one slot's moments with all of its block's. Each sums in the order of the
    // weights, so that it has the same bits from either slot.
    void relate(int64_t slot) const {
        const step_room &s = steps.s;
        const int64_t *column = steps.p.column + block.here;
        for (int64_t j = 0; j < block.wide; ++j) s.change[j] = 0.0;
        block.moment(slot).add_to(s.change, 1.0, block.here);
        for (int64_t other = 0; other < block.known; ++other) {
            const AtomRow row = block.moment(other);
            double total = 0.0;
            for (int64_t e = 0; e < row.count; ++e) {
                const int64_t j = row.place ? row.place[e] - block.here : e;
                total += s.change[j] * row.amount[e] / steps.p.terms[column[j]];
            }
            product[slot * cap + other] = product[other * cap + slot] = total;
        }
        tag[slot] = block.tag[slot];
    }

    // Steps from the atom that one loses least by, to the leading one.
    double exchange(double scale, double *score) const {
        double decrease = 0.0, first = -1.0;
        for (int64_t turn = 0; turn < block.known; ++turn) {
            int64_t toward = 0, away = -1;
            for (int64_t slot = 1; slot < block.known; ++slot)
                if (score[slot] > score[toward]) toward = slot;
            const double *lead = product + toward * cap;
            double gain = 0.0, spread = 0.0, step = 0.0;
            for (int64_t slot = 0; slot < block.known; ++slot) {
                const double ahead = score[toward] - score[slot];
                if (!(block.weight[slot] > 0.0 && ahead > 0.0)) continue;
                spread = larger(spread, ahead);
                const double own = lead[toward] + product[slot * cap + slot];
                const double curvature = scale * (own - 2.0 * lead[slot]);
                const double gamma = smaller(block.weight[slot], ahead / larger(curvature, 1e-300));
                const double promise = gamma * (ahead - 0.5 * gamma * curvature);
                if (promise > gain) {
                    away = slot;
                    gain = promise;
                    step = gamma;
                }
            }
            if (first < 0.0) first = spread;
            if (away < 0 || spread <= ENOUGH * first) break;
            double &weight = block.weight[away];
            weight = step == weight ? 0.0 : weight - step;
            block.weight[toward] += step;
            for (int64_t slot = 0; slot < block.known; ++slot)
                score[slot] -= scale * step * (lead[slot] - product[away * cap + slot]);
            decrease += scale * gain;
        }
        return decrease;
    }

    double solve(int64_t now) const {
        const step_room &s = steps.s;
        const dual_point &x = steps.x;
        if (block.known < 2) return 0.0;
        for (int64_t slot = 0; slot < block.known; ++slot)
            if (tag[slot] != block.tag[slot]) relate(slot);
        steps.score(block);
        double *old = s.up;
        for (int64_t slot = 0; slot < block.known; ++slot) old[slot] = block.weight[slot];
        const double scale = steps.p.weight[block.m], decrease = exchange(scale, s.score);
        for (int64_t j = 0; j < block.wide; ++j) s.change[j] = 0.0;
        for (int64_t slot = 0; slot < block.known; ++slot) {
            const double share = block.weight[slot] - old[slot];
            if (share == 0.0) continue;
            block.used[slot] = now;
            block.vertex(slot).add_to(x.tau, share, 0);
            block.moment(slot).add_to(s.change, share * scale, block.here);
        }
        int64_t touched = 0;
        for (int64_t j = 0; j < block.wide; ++j) {
            if (s.change[j] == 0.0) continue;
            const int64_t k = steps.p.column[block.here + j];
            x.r[k] -= s.change[j];
            s.column[touched++] = k;
        }
        refresh_weights(s.column, touched, steps.p, x);
        return decrease;
    }
};

}  // namespace

void refresh_slopes(const dual_problem *p, const dual_point *x) {
    int64_t place[EIGHT];
    for (int64_t k = 0; k < p->size; k += EIGHT) {
        for (int64_t i = 0; i < EIGHT; ++i) place[i] = k + i;
        slopes_of_eight(place, p->size - k < EIGHT ? p->size - k : EIGHT, *p, *x);
    }
    refresh_weights(p->column, p->columns, *p, *x);
    for (int64_t m = 0; m < p->blocks; ++m) rough_slope(m, *p, *x);
}

void tangent_slopes(const dual_problem *p, const dual_point *x, double share, const double *u,
                    double *at, double *slope, double *energy) {
    for (int64_t m = 0; m < p->blocks; ++m) {
        Tangent tangent = {*p, *x, share, 0.0, 0.0};
        if (share == 0.0)
            tangent.at_point(m, at, slope);
        else
            tangent.beside(m, u, at, slope);
        tangent.views(m, at, slope);
        energy[m] = tangent.held;
        energy[p->blocks + m] = tangent.over;
    }
}

void reach_vertices(const dual_problem *p, const double *score, const double *vertices,
                    const double *tau, double *out) {
    for (int64_t m = 0; m < p->blocks; ++m) {
        double vertex = 0.0, point = 0.0, mass = 0.0;
        for (int64_t k = p->offsets[m]; k < p->offsets[m + 1]; ++k) {
            if (vertices[k] != 0.0) {
                vertex += score[k] * vertices[k];
                mass += (size_of(p->a[k]) + size_of(p->b[k])) * vertices[k];
            }
            point += score[k] * tau[k];
        }
        for (int64_t v = p->start[m]; v < p->start[m + 1]; ++v)
            mass += size_of(p->mixed[v]) * view_of(v, *p, vertices);
        out[m] = vertex;
        out[p->blocks + m] = point;
        out[2 * p->blocks + m] = mass;
    }
}

void line_slopes(const step_line *line, double gamma, double *out) {
    const Slopes found = derivative(*line, gamma);
    out[0] = found.first;
    out[1] = found.second;
}

double search_line(const step_line *line, double most) {
    double slope;
    return search(*line, most, &slope);
}

void step_plainly(const dual_iterate *iterate, int64_t count, const int64_t *order,
                  const double *vertices, const double *moments, double gamma) {
    const Steps steps(*iterate);
    for (int64_t i = 0; i < count; ++i) steps.plain(order[i], vertices, moments, gamma);
}

double step_towards(const dual_iterate *iterate, const atom_set *atoms, const step_turn *turn,
                    const double *vertices, const double *moments) {
    const Steps steps(*iterate);
    double decrease = 0.0;
    for (int64_t i = 0; i < turn->count; ++i) {
        Block block(steps.p, *atoms, turn->order[i]);
        const int64_t forced = block.insert(vertices, moments, turn->now);
        decrease += steps.pairs(block, forced, turn->now % FRESH == 0, *turn);
    }
    return decrease;
}

void step_among(const dual_iterate *iterate, const atom_set *atoms, const step_turn *turn) {
    const Steps steps(*iterate);
    for (int64_t done = 0; done < turn->passes; ++done) {
        double decrease = 0.0;
        for (int64_t i = 0; i < turn->count; ++i) {
            Block block(steps.p, *atoms, turn->order[i]);
            decrease += steps.pairs(block, -1, done % FRESH == 0, *turn);
        }
        if (decrease < turn->least) return;
    }
}

void step_quadratically(const dual_iterate *iterate, const atom_set *atoms,
                        const atom_products *products, const step_turn *turn) {
    const Steps steps(*iterate);
    for (int64_t done = 0; done < turn->passes; ++done) {
        double decrease = 0.0;
        for (int64_t i = 0; i < turn->count; ++i) {
            Block block(steps.p, *atoms, turn->order[i]);
            decrease += Quadratic(steps, block, *products).solve(turn->now);
        }
        if (decrease < turn->least) return;
    }
}

void scale_atoms(const dual_problem *p, const atom_set *atoms, const double *vertices,
                 const double *moments, int64_t now, double gamma) {
    for (int64_t m = 0; m < p->blocks; ++m) {
        Block block(*p, *atoms, m);
        const int64_t chosen = block.insert(vertices, moments, now);
        block.rest *= 1.0 - gamma;
        for (int64_t slot = 0; slot < block.known; ++slot) block.weight[slot] *= 1.0 - gamma;
        block.weight[chosen] += gamma;
    }
}

void rebuild_point(const dual_problem *p, const atom_set *atoms, double *tau) {
    for (int64_t m = 0; m < p->blocks; ++m) {
        Block block(*p, *atoms, m);
        double total = block.rest;
        for (int64_t slot = 0; slot < block.known; ++slot) total += block.weight[slot];
        block.rest /= total;
        for (int64_t k = block.first; k < block.last; ++k) tau[k] = block.rest * atoms->base[k];
        for (int64_t slot = 0; slot < block.known; ++slot) {
            block.weight[slot] /= total;
            if (block.weight[slot] > 0.0) block.vertex(slot).add_to(tau, block.weight[slot], 0);
        }
    }
}

void best_of_kin(const answer_kin *kin, const known_answers *known, const double *score,
                 const double *tau, double *found, double *gain) {
    for (int64_t m = 0; m < kin->blocks; ++m) {
        double top = 0.0;
        for (int64_t k = kin->offsets[m]; k < kin->offsets[m + 1]; ++k) top += score[k] * tau[k];
        const double here = top;
        int64_t best = -1, shift = 0;
        for (int64_t step = 0; step < kin->size[m] && step < kin->near; ++step) {
            const int64_t place = (kin->place[m] + step) % kin->size[m];
            const int64_t other = kin->member[kin->first[m] + place];
            const int64_t apart = kin->offsets[m] - kin->offsets[other];
            for (int64_t row = other; row < known->rows; row += kin->blocks) {
                double total = 0.0;
                for (int64_t e = known->start[row]; e < known->start[row + 1]; ++e)
                    total += score[known->where[e] + apart] * known->amount[e];
                if (total > top) {
                    top = total;
                    best = row;
                    shift = apart;
                }
            }
        }
        if (best < 0) continue;
        gain[m] = top - here;
        for (int64_t e = known->start[best]; e < known->start[best + 1]; ++e)
            found[known->where[e] + shift] = known->amount[e];
    }
}
