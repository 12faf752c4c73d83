// Frank-Wolfe on active sets: atoms, pairwise steps between them, and quadratic programs.
//
// Lacoste-Julien and Jaggi, On the Global Linear Convergence of Frank-Wolfe Optimization Variants
// (NIPS 2015), for pairwise steps. What lines and moves are is in frank_wolfe.cpp.
#include "dual_steps.h"

namespace {

constexpr int64_t IDLE = 12;    // rounds after which a vertex without weight may be forgotten
constexpr int64_t PAIRS = 2;    // steps per scoring: a line search costs less than a scoring
constexpr int64_t FRESH = 4;    // rounds, or corrective passes, between recomputations of stiffness
constexpr double ENOUGH = 0.1;  // of a block's first difference of scores: a smaller one ends it
// A pass that gains less than this share of the new vertices' gain is its round's last; quadratic
// programs take eight passes for each pass of the others.
constexpr double WORTH = 0.25, QUADRATIC_WORTH = 0.01;
constexpr int64_t QUADRATIC_PASSES = 8;

// Numbers at places that ascend; dense without places, ones without amounts.
struct AtomRow {
    int32_t *place;
    double *amount;
    int64_t count;

    double at(int64_t e) const { return amount ? amount[e] : 1.0; }

    // out += factor * the row.
    void add_to(double *out, double factor) const {
        for (int64_t e = 0; e < count; ++e) out[place ? place[e] : e] += factor * at(e);
    }

    INLINE Row gathered(const double *values, int64_t e) const {
        double some[EIGHT];
        for (int64_t k = 0; k < EIGHT; ++k) some[k] = values[place[e + k]];
        return load(some);
    }
    // <values, row>, by lanes and then what is left.
    double product(const double *values) const {
        double left = 0.0;
        int64_t e = 0;
        if (place && !amount) {
            double lane[4] = {};
            for (; e + 4 <= count; e += 4)
                for (int k = 0; k < 4; ++k) lane[k] += values[place[e + k]];
            for (; e < count; ++e) left += values[place[e]];
            return ((lane[0] + lane[2]) + (lane[1] + lane[3])) + left;
        }
        Row total = row_of(0.0);
        for (; e + EIGHT <= count; e += EIGHT)
            total = add_product(total, place ? gathered(values, e) : load(values + e),
                                load(amount + e));
        for (; e < count; ++e) left += values[place ? place[e] : e] * amount[e];
        return sum(total) + left;
    }
};

// A known vertex and its moments. Outcomes are `ones`, whose places take four bytes each, since
// scoring waits for memory. `related`: its products with the others are known.
struct Atom {
    double weight, stiff;
    int64_t used;
    bool ones, related;
    void *memory;
    AtomRow vertex, moment;
};

// Fill a row with what it has room for: all numbers, or those that are not 0.
void fill(const AtomRow &row, const double *flat, int64_t size) {
    int64_t e = 0;
    for (int64_t k = 0; k < size; ++k) {
        if (row.place && flat[k] == 0.0) continue;
        if (row.place) row.place[e] = static_cast<int32_t>(k);
        if (row.amount) row.amount[e] = flat[k];
        ++e;
    }
}

int64_t entries(const double *flat, int64_t size) {
    int64_t count = 0;
    for (int64_t k = 0; k < size; ++k) count += flat[k] != 0.0;
    return count;
}

}  // namespace

struct active_sets {
    int64_t blocks, cap;
    bool sparse;
    Atom *atoms;       // cap for every block; those of weight 0 are kept to be used again
    double **product;  // of the moments of a block's atoms, in the metric 1 / lambda
    int64_t *room;     // for the products of so many atoms
};

namespace {

// The active set of one block, whose base is slot -1.
struct Block {
    const dual_problem &p;
    active_sets &sets;
    int64_t m, first, size, here, wide;
    int64_t &known;
    double &rest, &interior;
    AtomRow base, base_moment;
    Atom *atoms;

    Block(const dual_point &x, active_sets &sets, int64_t m)
        : p(*x.p),
          sets(sets),
          m(m),
          first(p.offsets[m]),
          size(p.offsets[m + 1] - first),
          here(p.column_start[m]),
          wide(p.column_start[m + 1] - here),
          known(x.known[m]),
          rest(x.rest[m]),
          interior(x.interior[m]),
          base{nullptr, x.base + first, size},
          base_moment{nullptr, x.moment + here, wide},
          atoms(sets.atoms + m * sets.cap) {}

    const AtomRow &vertex(int64_t slot) const { return slot < 0 ? base : atoms[slot].vertex; }
    const AtomRow &moment(int64_t slot) const {
        return slot < 0 ? base_moment : atoms[slot].moment;
    }
    double &weight(int64_t slot) const { return slot < 0 ? rest : atoms[slot].weight; }

    bool same(const AtomRow &own, const double *vertex, int64_t count) const {
        bool equal = own.count == count;
        for (int64_t e = 0; equal && e < count; ++e) equal = vertex[own.place[e]] == own.at(e);
        return equal;
    }

    // Put a vertex into a slot, without weight; false without memory.
    bool put(int64_t slot, const double *vertex, const double *moments, int64_t now) {
        Atom &own = atoms[slot];
        const int64_t count = entries(vertex, size);
        const int64_t kept = sets.sparse ? entries(moments, wide) : wide;
        own.ones = true, own.related = false;
        for (int64_t k = 0; k < size; ++k) own.ones &= vertex[k] == 0.0 || vertex[k] == 1.0;
        own.weight = 0.0, own.stiff = INF;  // promises nothing until it is known
        own.used = now;
        const int64_t numbers = kept + (own.ones ? 0 : count);
        std::free(own.memory);
        own.memory = std::malloc(static_cast<uint64_t>(8 * numbers + 4 * (count + kept)) + 8);
        if (!own.memory) return false;
        double *amounts = static_cast<double *>(own.memory);
        int32_t *places = reinterpret_cast<int32_t *>(amounts + numbers);
        own.vertex = {places, own.ones ? nullptr : amounts + kept, count};
        own.moment = {sets.sparse ? places + count : nullptr, amounts, kept};
        fill(own.vertex, vertex, size);
        fill(own.moment, moments, wide);
        return true;
    }

    // Put a vertex into its own slot if known, else into a free or the least useful one. Return -1
    // without memory.
    int64_t insert(const double *vertices, const double *moments, int64_t now) {
        int64_t stale = -1, chosen = -1;
        const int64_t count = entries(vertices + first, size);
        double lightest = INF;
        for (int64_t slot = 0; slot < known; ++slot) {
            Atom &own = atoms[slot];
            if (same(own.vertex, vertices + first, count)) {
                own.used = now;
                return slot;
            }
            const int64_t idle = now - own.used;
            if (own.weight == 0.0 && idle > IDLE) stale = slot;
            const double rank = own.weight > 0.0 ? own.weight : -1.0 - double(idle);
            if (rank < lightest) {
                chosen = slot;
                lightest = rank;
            }
        }
        if (stale >= 0)
            chosen = stale;
        else if (known < sets.cap)
            chosen = known++;
        else if (atoms[chosen].weight > 0.0)
            merge(atoms[chosen]);
        return put(chosen, vertices + first, moments + here, now) ? chosen : -1;
    }

    // Add an atom's weight to the base, so that a full set forgets an atom but no mass.
    void merge(Atom &atom) {
        const double keep = rest / (rest + atom.weight);
        for (int64_t k = 0; k < size; ++k) base.amount[k] *= keep;
        atom.vertex.add_to(base.amount, 1.0 - keep);
        for (int64_t j = 0; j < wide; ++j) base_moment.amount[j] *= keep;
        atom.moment.add_to(base_moment.amount, 1.0 - keep);
        interior *= keep;
        rest += atom.weight;
        atom.weight = 0.0;
    }

    // The base's least weight that leaves the interior point `floor` in it.
    double least(double floor) const { return floor > 0.0 ? floor / interior : 0.0; }

    // The atom that is nearly the whole mean: then none lies below it.
    int64_t heaviest() const {
        int64_t found = -1;
        for (int64_t slot = 0; slot < known; ++slot)
            if (weight(slot) > weight(found)) found = slot;
        return found;
    }
};

// ---------------------------------------------------------------------------- pairwise steps

struct Pairs : Steps {
    Pairs(const dual_point &x, Room &room) : Steps(x, room) {}

    // Add sign * atom to the direction; the support grows by coordinates not yet in it.
    int64_t spread(const Block &block, int64_t slot, double sign, int64_t count) const {
        const AtomRow &own = block.vertex(slot);
        for (int64_t e = 0; e < own.count; ++e) {
            const int64_t k = own.place ? own.place[e] : e;
            if (s.delta[k] == 0.0) s.place[count++] = block.first + k;
            s.delta[k] += sign * own.at(e);
        }
        return count;
    }

    // s.delta = toward - away; returns the size of its support.
    int64_t difference(const Block &block, int64_t toward, int64_t away) const {
        const int64_t count = spread(block, away, -1.0, spread(block, toward, 1.0, 0));
        int64_t kept = 0;  // without coordinates whose changes cancelled
        for (int64_t i = 0; i < count; ++i)
            if (s.delta[s.place[i] - block.first] != 0.0) s.place[kept++] = s.place[i];
        return kept;
    }

    // s.change = moments of toward - away, on s.column; returns the size of its support.
    int64_t changes(const Block &block, int64_t toward, int64_t away) const {
        for (int64_t j = 0; j < block.wide; ++j) s.theta[j] = 0.0;
        block.moment(toward).add_to(s.theta, 1.0);
        block.moment(away).add_to(s.theta, -1.0);
        return compressed(block, s.theta);
    }
    // s.change = what of these moments is not 0, on s.column; returns how many are.
    int64_t compressed(const Block &block, const double *moments) const {
        int64_t wide = 0;
        for (int64_t j = 0; j < block.wide; ++j) {
            if (moments[j] == 0.0) continue;
            s.column[wide] = p.column[block.here + j];
            s.change[wide++] = moments[j];
        }
        return wide;
    }

    // Move weight from one atom to another: only coordinates where they differ are touched.
    double pairwise(Block &block, int64_t toward, int64_t away, double most) const {
        const int64_t count = difference(block, toward, away);
        const int64_t wide = changes(block, toward, away);
        const Moved moved = move(block.m, most, count, wide, -1.0);
        for (int64_t i = 0; i < count; ++i) s.delta[s.place[i] - block.first] = 0.0;
        double &from = block.weight(away);
        from = away >= 0 && moved.gamma == most ? 0.0 : from - moved.gamma;  // and no crumbs
        block.weight(toward) += moved.gamma;
        return moved.decrease;
    }

    // <Phi theta + bias, atom> of every atom, without the slopes of mixed views.
    void score(const Block &block) const {
        for (int64_t j = 0; j < block.wide; ++j) s.theta[j] = x.theta[p.column[block.here + j]];
        for (int64_t slot = 0; slot < block.known; ++slot) {
            const Atom &own = block.atoms[slot];
            s.score[slot] = own.moment.product(s.theta);
            s.score[slot] += own.vertex.product(x.smooth + block.first);
        }
    }
    double base_score(const Block &block) const {
        double total = 0.0;
        for (int64_t j = 0; j < block.wide; ++j) total += s.theta[j] * block.base_moment.amount[j];
        for (int64_t k = 0; k < block.size; ++k)
            total += (x.smooth[block.first + k] + x.rough[block.first + k]) * block.base.amount[k];
        return total;
    }

    // Every atom's score <Phi theta + bias + H'(tau), atom - mean> and what a step to or from it
    // promises: score^2 / stiffness, or all its weight's worth where that is less. Choosing by
    // slope alone would forever chase coordinates of tiny probability. The stiffness may be a few
    // passes old (a gather saved). Returns the base's score.
    double promises(Block &block, bool fresh, bool loose) const {
        score(block);
        const bool views = p.start[block.m] < p.start[block.m + 1];
        const double base = loose ? base_score(block) : 0.0;
        double mass = loose ? block.rest : 0.0, mean = base * mass;
        for (int64_t slot = 0; slot < block.known; ++slot) {
            Atom &own = block.atoms[slot];
            if (views) s.score[slot] += own.vertex.product(x.rough + block.first);
            if (fresh) own.stiff = own.vertex.product(x.stiff + block.first);
            mean += s.score[slot] * own.weight;
            mass += own.weight;
        }
        mean /= larger(mass, 1e-300);
        for (int64_t slot = 0; slot < block.known; ++slot) {
            const double ahead = s.score[slot] - mean, behind = larger(-ahead, 0.0);
            const double curvature = block.atoms[slot].stiff + 1e-12;
            s.up[slot] = ahead > 0.0 ? ahead * ahead / curvature : 0.0;
            s.down[slot] = behind * smaller(block.atoms[slot].weight, behind / curvature);
        }
        return base - mean;
    }

    // The most promising pairwise steps of a block, the first towards `forced` where given.
    double pairs(Block &block, int64_t forced, bool fresh, const step_turn &turn) const {
        const double floor = block.least(turn.floor);
        const bool loose = block.rest > 2.0 * floor;
        const double base = promises(block, fresh, loose);
        double spare = loose ? (block.rest - floor) * -base : 0.0, decrease = 0.0;
        const int64_t steps = PAIRS + turn.more * block.known / block.size;
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
            const double most = block.weight(away) - (away < 0 ? floor : 0.0);
            block.atoms[toward].used = turn.now;
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
    const Pairs &steps;
    Block &block;
    double *&product;
    int64_t &room;

    Quadratic(const Pairs &steps, Block &block)
        : steps(steps),
          block(block),
          product(block.sets.product[block.m]),
          room(block.sets.room[block.m]) {}

    // Room for the products of all atoms' moments, and these products. Each sums in the order of the
    // weights, so that it has the same bits from either slot.
    bool relate() const {
        if (block.known > room) {
            room = block.known + block.known / 2;
            std::free(product);
            product = static_cast<double *>(std::malloc(8 * static_cast<uint64_t>(room * room)));
            for (int64_t slot = 0; slot < block.known; ++slot) block.atoms[slot].related = false;
            if (!product) room = 0;
            if (!product) return false;
        }
        double *change = steps.s.change;
        const int64_t *column = steps.p.column + block.here;
        for (int64_t slot = 0; slot < block.known; ++slot) {
            if (block.atoms[slot].related) continue;
            for (int64_t j = 0; j < block.wide; ++j) change[j] = 0.0;
            block.atoms[slot].moment.add_to(change, 1.0);
            for (int64_t other = 0; other < block.known; ++other) {
                const AtomRow &row = block.atoms[other].moment;
                double total = 0.0;
                for (int64_t e = 0; e < row.count; ++e) {
                    const int64_t j = row.place ? row.place[e] : e;
                    total += change[j] * row.amount[e] / steps.p.terms[column[j]];
                }
                product[slot * room + other] = product[other * room + slot] = total;
            }
            block.atoms[slot].related = true;
        }
        return true;
    }

    // Steps from the atom that one loses least by, to the leading one.
    double exchange(double scale, double *score) const {
        double decrease = 0.0, first = -1.0;
        for (int64_t turn = 0; turn < block.known; ++turn) {
            int64_t toward = 0, away = -1;
            for (int64_t slot = 1; slot < block.known; ++slot)
                if (score[slot] > score[toward]) toward = slot;
            const double *lead = product + toward * room;
            double gain = 0.0, spread = 0.0, step = 0.0;
            for (int64_t slot = 0; slot < block.known; ++slot) {
                const double ahead = score[toward] - score[slot], weight = block.atoms[slot].weight;
                if (!(weight > 0.0 && ahead > 0.0)) continue;
                spread = larger(spread, ahead);
                const double own = lead[toward] + product[slot * room + slot];
                const double curvature = scale * (own - 2.0 * lead[slot]);
                const double gamma = smaller(weight, ahead / larger(curvature, 1e-300));
                const double promise = gamma * (ahead - 0.5 * gamma * curvature);
                if (promise > gain) {
                    away = slot;
                    gain = promise;
                    step = gamma;
                }
            }
            if (first < 0.0) first = spread;
            if (away < 0 || spread <= ENOUGH * first) break;
            double &weight = block.atoms[away].weight;
            weight = step == weight ? 0.0 : weight - step;
            block.atoms[toward].weight += step;
            for (int64_t slot = 0; slot < block.known; ++slot)
                score[slot] -= scale * step * (lead[slot] - product[away * room + slot]);
            decrease += scale * gain;
        }
        return decrease;
    }

    double solve(int64_t now) const {
        const Room &s = steps.s;
        const dual_point &x = steps.x;
        steps.score(block);
        double *old = s.up;
        for (int64_t slot = 0; slot < block.known; ++slot) old[slot] = block.atoms[slot].weight;
        const double scale = steps.p.weight[block.m], decrease = exchange(scale, s.score);
        for (int64_t j = 0; j < block.wide; ++j) s.theta[j] = 0.0;
        for (int64_t slot = 0; slot < block.known; ++slot) {
            Atom &own = block.atoms[slot];
            const double share = own.weight - old[slot];
            if (share == 0.0) continue;
            own.used = now;
            own.vertex.add_to(x.tau + block.first, share);
            own.moment.add_to(s.theta, share * scale);
        }
        const int64_t wide = steps.compressed(block, s.theta);
        for (int64_t j = 0; j < wide; ++j) x.r[s.column[j]] -= s.change[j];
        steps.refresh_weights(s.column, wide);
        return decrease;
    }
};

}  // namespace

active_sets *active_sets_new(const dual_point *x, int64_t cap, bool sparse) {
    const uint64_t blocks = static_cast<uint64_t>(x->p->blocks);
    active_sets *sets = static_cast<active_sets *>(std::calloc(1, sizeof(active_sets)));
    if (!sets) return nullptr;
    sets->blocks = x->p->blocks, sets->cap = cap, sets->sparse = sparse;
    sets->atoms = static_cast<Atom *>(std::calloc(blocks * uint64_t(cap), sizeof(Atom)));
    sets->product = static_cast<double **>(std::calloc(blocks, sizeof(double *)));
    sets->room = static_cast<int64_t *>(std::calloc(blocks, sizeof(int64_t)));
    if (sets->atoms && sets->product && sets->room) return sets;
    active_sets_free(sets);
    return nullptr;
}

void active_sets_free(active_sets *sets) {
    for (int64_t m = 0; sets->room && m < sets->blocks; ++m) {
        Atom *own = sets->atoms + m * sets->cap;
        for (int64_t slot = 0; slot < sets->cap && own[slot].memory; ++slot)
            std::free(own[slot].memory);
        std::free(sets->product[m]);
    }
    std::free(sets->atoms), std::free(sets->product), std::free(sets->room), std::free(sets);
}

status step_towards(const dual_point *x, active_sets *sets, const step_turn *turn,
                    const double *vertices, const double *moments, double *gained) {
    Room room(*x->p, turn->count, turn->order, sets->cap);
    if (room.arena.failed) return NO_MEMORY;
    const Pairs steps(*x, room);
    *gained = 0.0;
    for (int64_t i = 0; i < turn->count; ++i) {
        Block block(*x, *sets, turn->order[i]);
        const int64_t forced = block.insert(vertices, moments, turn->now);
        if (forced < 0) return NO_MEMORY;
        *gained += steps.pairs(block, forced, turn->now % FRESH == 0, *turn);
    }
    return OK;
}

status step_among(const dual_point *x, active_sets *sets, const step_turn *turn, int64_t passes,
                  double gained) {
    Room room(*x->p, turn->count, turn->order, sets->cap);
    if (room.arena.failed) return NO_MEMORY;
    const Pairs steps(*x, room);
    const bool quadratic = x->p->flat && x->p->ridge;
    if (quadratic) passes *= QUADRATIC_PASSES;
    for (int64_t done = 0; done < passes; ++done) {
        double decrease = 0.0;
        for (int64_t i = 0; i < turn->count; ++i) {
            Block block(*x, *sets, turn->order[i]);
            if (!quadratic) {
                decrease += steps.pairs(block, -1, done % FRESH == 0, *turn);
            } else if (block.known >= 2) {
                const Quadratic program(steps, block);
                if (!program.relate()) return NO_MEMORY;
                decrease += program.solve(turn->now);
            }
        }
        if (decrease < (quadratic ? QUADRATIC_WORTH : WORTH) * gained) return OK;
    }
    return OK;
}

status scale_atoms(const dual_point *x, active_sets *sets, const double *vertices,
                   const double *moments, int64_t now, double gamma) {
    for (int64_t m = 0; m < sets->blocks; ++m) {
        Block block(*x, *sets, m);
        const int64_t chosen = block.insert(vertices, moments, now);
        if (chosen < 0) return NO_MEMORY;
        block.rest *= 1.0 - gamma;
        for (int64_t slot = 0; slot < block.known; ++slot) block.atoms[slot].weight *= 1.0 - gamma;
        block.atoms[chosen].weight += gamma;
    }
    return OK;
}

void rebuild_point(const dual_point *x, active_sets *sets) {
    for (int64_t m = 0; m < sets->blocks; ++m) {
        Block block(*x, *sets, m);
        double total = block.rest, *tau = x->tau + block.first;
        for (int64_t slot = 0; slot < block.known; ++slot) total += block.atoms[slot].weight;
        block.rest /= total;
        for (int64_t k = 0; k < block.size; ++k) tau[k] = block.rest * block.base.amount[k];
        for (int64_t slot = 0; slot < block.known; ++slot) {
            Atom &own = block.atoms[slot];
            own.weight /= total;
            if (own.weight > 0.0) own.vertex.add_to(tau, own.weight);
        }
    }
}

void read_slot(const dual_point *x, active_sets *sets, int64_t slot, double *vertices,
               double *numbers) {
    for (int64_t m = 0; m < sets->blocks; ++m) {
        const Block block(*x, *sets, m);
        if (slot >= block.known) continue;
        const Atom &own = block.atoms[slot];
        own.vertex.add_to(vertices + block.first, 1.0);
        numbers[3 * m] = own.weight, numbers[3 * m + 1] = own.stiff;
        numbers[3 * m + 2] = double(own.used);
    }
}

status write_slot(const dual_point *x, active_sets *sets, int64_t slot, const double *vertices,
                  const double *moments, const double *numbers) {
    for (int64_t m = 0; m < sets->blocks; ++m) {
        Block block(*x, *sets, m);
        if (slot >= block.known) continue;
        const int64_t used = static_cast<int64_t>(numbers[3 * m + 2]);
        if (!block.put(slot, vertices + block.first, moments + block.here, used)) return NO_MEMORY;
        block.atoms[slot].weight = numbers[3 * m], block.atoms[slot].stiff = numbers[3 * m + 1];
    }
    return OK;
}
