"""Sum-product on graphs of pairs in the linear domain: one log per message entry, no exp.

Tables within exp(±RANGE) and beliefs clipped at exp(−CLIP) keep all products finite, and a clipped
state lies so far below the others that no message feels it. States are padded to whole eights
(:mod:`mlestruct.lanes`). Closed states and padding score CLOSED, which nothing finite changes, and
have chance 0, so whatever messages say of them is lost. Messages into a node lie one after the
other without padding: kernels write beyond each, in order, and read finite numbers there.
"""

from __future__ import annotations

import numpy as np

from mlestruct.inference.graph.exponents import exponential, exponentiate, logarithm
from mlestruct.inference.graph.plan import PairMessages
from mlestruct.inference.graph.sweeps import CLIP, RANGE, Sent, move
from mlestruct.kernels import class_of, kernel, variant
from mlestruct.lanes import EIGHT, Row, across, down, most, rows

CLOSED = -1e300
TINY = 1e-250  # in place of messages into closed states; those into open ones are above e^−RANGE
HARDLY = -1e250  # no finite score


@kernel(error_model="numpy")
def begin_edges(score, message, belief, plan, edges):
    """Scores as :func:`_move` reads them, and what :func:`.sweeps.run` works on."""
    size = edges.node_start[-1]
    field, log = np.full(size, CLOSED), np.empty(size)
    room = edges.into[-1] + widest_row(edges)  # with what is read beyond the last message
    chance, logs, inverse = np.zeros(size), np.zeros(room), np.ones(room)
    for i in range(len(edges.whole)):
        first, own = plan.node_start[i], plan.node_start[i + 1] - plan.node_start[i]
        at = edges.node_start[i]
        for k in range(own):
            if plan.open[first + k]:
                field[at + k] = score[first + k]
                chance[at + k] = np.exp(max(belief[first + k], -CLIP))
        for k in range(edges.node_start[i + 1] - at):
            log[at + k] = CLOSED * (1.0 / edges.whole[i])  # as `believe` leaves it
        for k in range(own):
            if plan.open[first + k]:
                log[at + k] = belief[first + k]
        for p in range(edges.near_start[i], edges.near_start[i + 1]):
            begin, place = edges.into[p], plan.place[plan.around[p]]
            for k in range(own):
                if plan.open[first + k]:
                    logs[begin + k] = max(message[place + k], -RANGE)
                    inverse[begin + k] = np.exp(-logs[begin + k])
    return field, Sent(logs, log, inverse, chance)


@kernel(error_model="numpy")
def end_edges(sent, message, belief, plan, edges):
    """Messages and beliefs as the general kernel has them."""
    for i in range(len(edges.whole)):
        first, own = plan.node_start[i], plan.node_start[i + 1] - plan.node_start[i]
        for k in range(own):
            is_open = plan.open[first + k]
            belief[first + k] = sent.belief[edges.node_start[i] + k] if is_open else -np.inf
        for p in range(edges.near_start[i], edges.near_start[i + 1]):
            begin, place, top = edges.into[p], plan.place[plan.around[p]], -np.inf
            for k in range(own):
                if plan.open[first + k]:
                    top = max(top, sent.message[begin + k])
            for k in range(own):
                is_open = plan.open[first + k]
                message[place + k] = sent.message[begin + k] - top if is_open else 0.0


@kernel(error_model="numpy")
def padded_tables(score, plan, edges):
    """exp(η_α/c_α) with padded rows, the largest 1; the largest range of its logs in one factor."""
    table, widest = np.zeros(edges.table_start[-1]), 0.0
    for f in range(len(plan.counts)):
        first, last = plan.table_start[f], plan.table_start[f + 1]
        cards, wide = _shape(f, plan)
        top, least = -np.inf, np.inf
        for k in range(first, last):
            if plan.open[k]:
                top, least = max(top, score[k]), min(least, score[k])
        widest = max(widest, (top - least) / plan.counts[f])
        at = edges.table_start[f]
        for row in range(first, last, cards):
            for k in range(cards):
                lifted = (score[row + k] - top) / plan.counts[f]
                table[at + k] = lifted if plan.open[row + k] else CLOSED
            for k in range(cards, wide):
                table[at + k] = CLOSED
            at += wide
    exponentiate(len(table) >> 3, table, 0, table, 0)
    return widest, table


@kernel(error_model="numpy")
def edge_tables(sent, table, gauge, tau, plan, edges):
    """Beliefs of nodes and edges, these only as consistent as messages have converged."""
    for i in range(len(edges.whole)):
        first, own, at = plan.node_start[i], edges.cards[i], edges.node_start[i]
        mass = 0.0
        for k in range(own):
            tau[first + k] = np.exp(sent.belief[at + k]) if plan.open[first + k] else 0.0
            mass += tau[first + k]
        for k in range(own):
            tau[first + k] /= mass
    for p in range(len(edges.near)):
        if not edges.second[p]:
            _edge(p, sent, table, gauge, tau, plan, edges)


@kernel(error_model="numpy")
def _edge(p, sent, table, gauge, tau, plan, edges):
    """The table of the message at position p: chances of both ends without each other's words."""
    f = plan.owner[plan.around[p]]
    i, j = plan.scope[plan.scope_start[f]], plan.scope[plan.scope_start[f] + 1]
    cards, wide = _shape(f, plan)
    rows = edges.node_start[i + 1] - edges.node_start[i]
    ahead, behind = edges.node_start[j], edges.node_start[i]
    without(wide >> 3, gauge, 0, sent.chance, ahead, sent.linear, edges.back[p])
    without(rows >> 3, gauge, wide, sent.chance, behind, sent.linear, edges.into[p])
    mass, at, to = 0.0, edges.entry[p], plan.table_start[f]
    scale = 1.0 / (top(wide >> 3, gauge, 0) * top(rows >> 3, gauge, wide))
    for row in range(edges.cards[i]):
        factor = scale * gauge[wide + row]
        for k in range(cards):
            tau[to + k] = table[at + k] * gauge[k] * factor
            mass += tau[to + k]
        at += wide
        to += cards
    for k in range(plan.table_start[f], to):
        tau[k] /= mass


@kernel
def _shape(f, plan):
    """How long a table's rows are, and how long when padded."""
    j = plan.scope[plan.scope_start[f] + 1]
    cards = plan.node_start[j + 1] - plan.node_start[j]
    return cards, (cards + 7) // 8 * 8


@kernel
def widest_row(edges):
    """States of the node that has most, padded."""
    widest = 0
    for i in range(len(edges.whole)):
        widest = max(widest, edges.node_start[i + 1] - edges.node_start[i])
    return widest


@kernel
def room(edges):
    """For one node's messages, and for all its neighbours' beliefs."""
    degree = 0
    for i in range(len(edges.whole)):
        degree = max(degree, edges.near_start[i + 1] - edges.near_start[i])
    return np.zeros(2 * widest_row(edges) * (degree + 1))


@rows
def without(chance: Row, inverse: Row) -> Row:
    """A neighbour's belief without what this node told it."""
    return chance * inverse


@rows(join=most)
def top(values: Row) -> Row:
    """The largest."""
    return values


@rows
def fresh(mass: Row) -> tuple[Row, Row]:
    """Logarithms of messages, and one over messages."""
    mass = mass.most(TINY)
    return logarithm(mass), 1.0 / mass


@rows
def damped(mass: Row, last: Row, damping: Row) -> Row:
    """Logarithms of messages nearer to the last ones."""
    log = logarithm(mass.most(TINY))
    return log + damping * (last - log)


@rows
def inverted(log: Row) -> Row:
    """One over messages; in a loop of its own, where more of these long chains overlap."""
    return exponential(0.0 - log)


@rows
def summed(total: Row, log: Row, weight: Row) -> Row:
    """With one message more."""
    return total + weight * log


@rows(join=most)
def believe(total: Row, largest: Row, scale: Row, last: Row) -> tuple[Row, Row, Row]:
    """Log-beliefs, chances, and how far the former moved."""
    log = (total - largest) * scale
    moved = log - last
    chance = exponential(log.where_above(HARDLY, log.most(-CLIP), log))
    return log, chance, moved.most(0.0 - moved)


@kernel(error_model="numpy", forceinline=True)
def _sums(p, own, wide, mass, cavity, gauge, table, kind):
    """The message at position p into ``gauge[mass:]``, some entry between 1/states and states."""
    j, entry = kind.near[p], kind.entry[p]
    others = kind.node_start[j + 1] - kind.node_start[j]
    scale = 1.0 / top(others >> 3, gauge, cavity)
    if kind.second[p]:
        down(gauge, mass, scale, table, entry, wide, kind.cards[j], gauge, cavity)
    else:
        for k in range(0, wide, EIGHT):
            at = entry + k * others
            across(gauge, mass + k, scale, table, at, others, own - k, others >> 3, gauge, cavity)


@kernel(error_model="numpy", forceinline=True)
def _move(i, score, damping, sent, read, gauge, table, kind):
    """As :func:`.sweeps.move`, one step for all messages at a time, so that they overlap."""
    first, own = kind.node_start[i], kind.cards[i]
    begin, end = kind.near_start[i], kind.near_start[i + 1]
    wide = kind.node_start[i + 1] - first
    eights, into, messages = wide >> 3, kind.into[begin], own * (end - begin)
    several, cavity = (messages + 7) >> 3, messages + wide
    start = cavity
    for p in range(begin, end):
        j = kind.near[p]
        ahead, others = kind.node_start[j], kind.node_start[j + 1] - kind.node_start[j]
        without(others >> 3, gauge, cavity, read.chance, ahead, read.linear, kind.back[p])
        cavity += others
    cavity, mass = start, 0
    for p in range(begin, end):
        _sums(p, own, wide, mass, cavity, gauge, table, kind)
        mass += own
        cavity += kind.node_start[kind.near[p] + 1] - kind.node_start[kind.near[p]]
    if damping > 0.0:
        damped(several, sent.message, into, gauge, 0, sent.message, into, damping)
        inverted(several, sent.linear, into, sent.message, into)
    else:
        fresh(several, sent.message, into, sent.linear, into, gauge, 0)
    weight = kind.weight[begin] if messages else 0.0
    summed(eights, gauge, 0, score, first, sent.message, into, weight)
    for p in range(begin + 1, end):
        into += own
        summed(eights, gauge, 0, gauge, 0, sent.message, into, kind.weight[p])
    largest = top(eights, gauge, 0)
    return believe(
        eights, sent.belief, first, sent.chance, first,
        gauge, 0, largest, 1.0 / kind.whole[i], sent.belief, first,
    )  # fmt: skip


@variant(move, error_model="numpy", forceinline=True)
def _(i, score, damping, sent, read, gauge, table, kind):
    if class_of(kind) is not PairMessages:
        return None
    return lambda i, score, damping, sent, read, gauge, table, kind: _move(
        i, score, damping, sent, read, gauge, table, kind
    )
