// Frank-Wolfe on a dual objective: block steps, one after the other, on R*(r) - sum w H.
//
// tau is the point, r the residual moments, theta = R*'(r) the weights; H has a term -a t log t for
// every view t: a coordinate, its complement, or a row of C tau + c0 (mixed views). Jaggi,
// Revisiting Frank-Wolfe (ICML 2013). Steps between known vertices are in active_sets.cpp.
#include "dual_steps.h"

namespace {

constexpr double FLOOR = 1e-16;      // as in entropy.py: logarithms are clipped here
constexpr double PRECISION = 1e-6;   // |phi'| relative to |phi'(0)| at which a step counts as exact
constexpr double MOST = 1.0 - 1e-9;  // of the way to a vertex in plain steps: slopes stay finite

double size_of(double x) { return __builtin_fabs(x); }
double sign_of(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0; }

// Weights on columns: theta = R*'(r), by lambda, prior, l1 and bounds.
struct Terms {
    const double *lam, *prior, *l1, *lower, *upper;

    explicit Terms(const dual_problem &p)
        : lam(p.terms),
          prior(lam + p.weights),
          l1(prior + p.weights),
          lower(l1 + p.weights),
          upper(lower + p.weights) {}

    // The weight before it is clipped; l1 and bounds may be left out for a ridge.
    double free(double r, int64_t k) const {
        const double x = r + lam[k] * prior[k];
        return sign_of(x) * larger(size_of(x) - l1[k], 0.0) / lam[k];
    }
    double weight(double r, int64_t k, bool ridge) const {
        return ridge ? (r + lam[k] * prior[k]) / lam[k] : within(free(r, k), lower[k], upper[k]);
    }
};

// --------------------------------------------------------------------------------------- slopes

// Slopes of up to eight coordinates; each has the same bits whichever stand beside it.
INLINE void slopes_of_eight(const int64_t *place, int64_t count, const dual_point &x) {
    const dual_problem &p = *x.p;
    double taken[4][EIGHT] = {}, found[3][EIGHT];
    for (int64_t i = 0; i < count; ++i) {
        const int64_t k = place[i];
        taken[0][i] = x.tau[k], taken[1][i] = p.bias[k], taken[2][i] = p.a[k];
        taken[3][i] = p.b[k];
    }
    const Row tau = load(taken[0]), bias = load(taken[1]), a = load(taken[2]), b = load(taken[3]);
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

void rough_slope(int64_t m, const dual_point &x) {
    const dual_problem &p = *x.p;
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
Slopes pull(const Line &line, double gamma) {
    const Terms terms(*line.x.p);
    Slopes found = {0.0, 0.0};
    for (int64_t j = 0; j < line.wide; ++j) {
        const int64_t k = line.column[j];
        const double change = line.change[j];
        if (change == 0.0) continue;
        const double weight = terms.free(line.x.r[k] - gamma * change, k);
        const bool inside = terms.lower[k] < weight && weight < terms.upper[k];
        found.first -= within(weight, terms.lower[k], terms.upper[k]) * change;
        if (inside && (weight != 0.0 || terms.l1[k] == 0.0))
            found.second += change * change / terms.lam[k];
    }
    return found;
}

Slopes derivative(const Line &line, double gamma) {
    Row slope = row_of(0.0), curvature = slope;
    for (int64_t k = 0; k < line.size; k += EIGHT) {
        const Row dt = load(line.dt + k), steep = load(line.a + k) * dt;
        const Row x = larger(load(line.t + k) + gamma * dt, row_of(FLOOR));
        slope = slope + steep * (logarithm(x) + 1.0);
        curvature = curvature + steep * dt / x;
    }
    const double first = line.weight * sum(slope) + line.linear;
    const double second = line.weight * sum(curvature);
    if (line.x.p->ridge) return {first + line.quadratic * gamma, second + line.quadratic};
    const Slopes more = pull(line, gamma);
    return {first + more.first, second + more.second};
}

}  // namespace

// By safeguarded Newton. phi' only rises, so the end point is looked at no earlier than Newton
// reaches for it; it is `most` where phi'(most) <= 0.
double Line::search(double most, double *slope_at_0) {
    while (size % EIGHT) add(0.0, 0.0, 0.0);
    if (x.p->ridge)
        for (int64_t j = 0; j < wide; ++j) {
            const int64_t k = column[j];
            linear -= x.theta[k] * change[j];
            quadratic += change[j] * change[j] / x.p->terms[k];
        }
    const Slopes start = derivative(*this, 0.0);
    *slope_at_0 = start.first;
    if (start.first >= 0.0 || most <= 0.0) return 0.0;
    double gamma = 0.0, low = 0.0, high = most;
    Slopes here = start;
    bool end_seen = false;
    for (int turn = 0; turn < 100; ++turn) {
        double step = here.second > 0.0 ? gamma - here.first / here.second : most;
        if (step >= high && !end_seen) {
            if (derivative(*this, most).first <= 0.0) return most;
            end_seen = true;
        }
        if (!(low < step && step < high)) step = 0.5 * (low + high);
        gamma = step;
        here = derivative(*this, gamma);
        if (size_of(here.first) <= PRECISION * -start.first) break;
        (here.first < 0.0 ? low : high) = gamma;
        if (high - low <= 1e-15 * most) break;
    }
    return gamma;
}

// ----------------------------------------------------------------------------------------- steps

Room::Room(const dual_problem &p, int64_t count, const int64_t *order, int64_t cap) {
    int64_t block = 0, width = 0, views = 0;
    const auto raise = [](int64_t &most, int64_t m, const int64_t *edges) {
        most = edges[m + 1] - edges[m] > most ? edges[m + 1] - edges[m] : most;
    };
    for (int64_t i = 0; i < count; ++i) {
        raise(block, order[i], p.offsets), raise(width, order[i], p.column_start);
        raise(views, order[i], p.start);
    }
    const int64_t terms = whole_eights(2 * block + views);
    delta = arena.array<double>(block, 0.0), place = arena.array<int64_t>(2 * block);
    change = arena.array<double>(width), column = arena.array<int64_t>(width);
    a = arena.array<double>(terms), t = arena.array<double>(terms), dt = arena.array<double>(terms);
    theta = arena.array<double>(width), score = arena.array<double>(cap);
    up = arena.array<double>(cap), down = arena.array<double>(cap);
}

void Steps::refresh_weights(const int64_t *column, int64_t wide) const {
    const Terms terms(p);
    for (int64_t j = 0; j < wide; ++j)
        x.theta[column[j]] = terms.weight(x.r[column[j]], column[j], p.ridge);
}

double Steps::collect(int64_t m, int64_t count, double factor, Line &line) const {
    const int64_t first = p.offsets[m];
    double linear = 0.0;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t k = s.place[i];
        const double step = s.delta[k - first];
        linear -= p.bias[k] * step;
        if (p.a[k] != 0.0) line.add(factor * p.a[k], x.tau[k], step);
        if (p.b[k] != 0.0) line.add(factor * p.b[k], 1.0 - x.tau[k], -step);
    }
    for (int64_t v = p.start[m]; v < p.start[m + 1]; ++v) {
        if (p.mixed[v] == 0.0) continue;
        double dt = 0.0;
        for (int64_t e = p.ptr[v]; e < p.ptr[v + 1]; ++e)
            dt += p.value[e] * s.delta[p.index[e] - first];
        if (dt != 0.0) line.add(factor * p.mixed[v], view_of(v, p, x.tau), dt);
    }
    return linear;
}

Moved Steps::move(int64_t m, double most, int64_t count, int64_t wide, double gamma) const {
    Line line = {x, 0.0, 0.0, p.weight[m], wide, s.column, s.change, 0, s.a, s.t, s.dt};
    line.linear = p.weight[m] * collect(m, count, 1.0, line);
    for (int64_t j = 0; j < wide; ++j) s.change[j] *= p.weight[m];
    double slope = 0.0;
    if (gamma < 0.0) gamma = line.search(most, &slope);
    if (gamma > 0.0) {
        for (int64_t j = 0; j < wide; ++j) x.r[s.column[j]] -= gamma * s.change[j];
        refresh_weights(s.column, wide);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t k = s.place[i];
            x.tau[k] = within(x.tau[k] + gamma * s.delta[k - p.offsets[m]], 0.0, 1.0);
        }
        for (int64_t i = 0; i < count; i += EIGHT)
            slopes_of_eight(s.place + i, count - i < EIGHT ? count - i : EIGHT, x);
        rough_slope(m, x);
    }
    return {gamma, -0.5 * slope * gamma};
}

namespace {

// s.delta = vertices - tau on the whole block; returns its size.
int64_t aim(const Steps &steps, int64_t m, const double *vertices) {
    const int64_t first = steps.p.offsets[m], size = steps.p.offsets[m + 1] - first;
    for (int64_t k = 0; k < size; ++k) {
        steps.s.delta[k] = vertices[first + k] - steps.x.tau[first + k];
        steps.s.place[k] = first + k;
    }
    return size;
}

}  // namespace

void refresh_slopes(const dual_point *x) {
    const dual_problem &p = *x->p;
    int64_t place[EIGHT];
    for (int64_t k = 0; k < p.size; k += EIGHT) {
        for (int64_t i = 0; i < EIGHT; ++i) place[i] = k + i;
        slopes_of_eight(place, p.size - k < EIGHT ? p.size - k : EIGHT, *x);
    }
    const Terms terms(p);
    for (int64_t j = 0; j < p.columns; ++j)
        x->theta[p.column[j]] = terms.weight(x->r[p.column[j]], p.column[j], p.ridge);
    for (int64_t m = 0; m < p.blocks; ++m) rough_slope(m, *x);
}

void tangent_slopes(const dual_point *x, double share, const double *u, double *at, double *slope,
                    double *energy) {
    const dual_problem &p = *x->p;
    for (int64_t m = 0; m < p.blocks; ++m) {
        Tangent tangent = {p, *x, share, 0.0, 0.0};
        tangent.beside(m, u, at, slope);
        tangent.views(m, at, slope);
        energy[m] = tangent.held;
        energy[p.blocks + m] = tangent.over;
    }
}

void reach_vertices(const dual_point *x, const double *score, const double *vertices, double *out) {
    const dual_problem &p = *x->p;
    for (int64_t m = 0; m < p.blocks; ++m) {
        double vertex = 0.0, point = 0.0, mass = 0.0;
        for (int64_t k = p.offsets[m]; k < p.offsets[m + 1]; ++k) {
            if (vertices[k] != 0.0) {
                vertex += score[k] * vertices[k];
                mass += (size_of(p.a[k]) + size_of(p.b[k])) * vertices[k];
            }
            point += score[k] * x->tau[k];
        }
        for (int64_t v = p.start[m]; v < p.start[m + 1]; ++v)
            mass += size_of(p.mixed[v]) * view_of(v, p, vertices);
        out[m] = vertex;
        out[p.blocks + m] = point;
        out[2 * p.blocks + m] = mass;
    }
}

status step_plainly(const dual_point *x, int64_t count, const int64_t *order,
                    const double *vertices, const double *moments, double gamma) {
    const dual_problem &p = *x->p;
    Room room(p, count, order, 0);
    if (room.arena.failed) return NO_MEMORY;
    const Steps steps(*x, room);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t m = order[i], here = p.column_start[m], wide = p.column_start[m + 1] - here;
        const int64_t size = aim(steps, m, vertices);
        for (int64_t j = 0; j < wide; ++j) {
            room.column[j] = p.column[here + j];
            room.change[j] = moments[here + j] - x->moment[here + j];
        }
        const double taken = steps.move(m, MOST, size, wide, gamma).gamma;
        for (int64_t j = here; j < here + wide; ++j)
            x->moment[j] += taken * (moments[j] - x->moment[j]);
        for (int64_t k = 0; k < size; ++k) room.delta[k] = 0.0;
    }
    return OK;
}

status step_jointly(const dual_point *x, const double *vertices, const double *change, double gamma,
                    double *taken) {
    const dual_problem &p = *x->p;
    Arena arena;
    int64_t *all = arena.array<int64_t>(p.blocks > p.weights ? p.blocks : p.weights);
    double *terms[3];
    for (double *&row : terms) row = arena.array<double>(whole_eights(2 * p.size + p.views));
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < p.blocks || k < p.weights; ++k) all[k] = k;
    Room room(p, p.blocks, all, 0);
    if (room.arena.failed) return NO_MEMORY;
    const Steps steps(*x, room);
    Line line = {*x, 0.0, 0.0, 1.0, p.weights, all, change, 0, terms[0], terms[1], terms[2]};
    for (int64_t m = 0; m < p.blocks; ++m)
        line.linear += p.weight[m] * steps.collect(m, aim(steps, m, vertices), p.weight[m], line);
    double slope;
    *taken = gamma < 0.0 ? line.search(-gamma, &slope) : gamma;
    for (int64_t k = 0; k < p.size; ++k) x->tau[k] += *taken * (vertices[k] - x->tau[k]);
    return OK;
}
