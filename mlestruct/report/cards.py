"""The plan as cards: one for every pair, room or single person, with its reasons in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Any

from mlestruct.estimators.roommates import Explanation, Pair, Plan
from mlestruct.estimators.roommates.explanation import Contribution
from mlestruct.estimators.roommates.pairing import nearest
from mlestruct.html import Html, element
from mlestruct.report.words import number, percent, words

REASONS = 2  # answers named for and against a pair
SLIGHT = 0.05  # |log odds| that are not worth a word
NEAR = 2  # other partners named for a person

Name = Callable[[Any], str]


def cards(plan: Plan, reasons: Sequence[Explanation], name: Name) -> list[Html]:
    """Group by group, what can be searched and sorted by the page's script."""
    why = {frozenset((e.a, e.b)): e for e in reasons}
    others = _others(plan, name)
    found: dict[str, list[Html]] = {}
    for home in plan.shared:
        own = [why[frozenset((pair.a, pair.b))] for pair in home]
        card = _shared(home, own, others, name)
        found.setdefault(home[0].group, []).append(card)
    for single in plan.singles:
        title = f"{name(single.person)} · {words('alone')}"
        where = [] if single.room is None else [element("p", words("room", room=single.room))]
        card = element("li", element("h4", title), where, class_="card", data_probability=0)
        found.setdefault(single.group, []).append(card)
    parts = [_tools()]
    for group, listed in found.items():
        parts += [element("h3", group), element("ul", listed, class_="cards")]
    return parts


def _tools() -> Html:
    """A search field and an order; hidden where no script runs."""
    orders = {"plan": "by order", "doubt": "by doubt", "sure": "by sure"}
    options = [element("option", words(key), value=value) for value, key in orders.items()]
    return element(
        "div",
        element("label", words("find"), " ", Html('<input type="search">')),
        element("label", words("order"), " ", element("select", options)),
        class_="tools",
        hidden="hidden",
    )


def _shared(
    home: Sequence[Pair], reasons: Sequence[Explanation], others: Mapping[Any, str], name: Name
) -> Html:
    """A card: who shares, how probable it is, what speaks for it, who else was near."""
    who = " + ".join(f"{name(pair.a)} + {name(pair.b)}" for pair in home)
    room = "" if home[0].room is None else f"{words('room', room=home[0].room)}: "
    probability = min(pair.probability for pair in home)
    body: list[object] = []
    for pair, explained in zip(home, reasons, strict=True):
        share = words("probable", share=percent(pair.probability))
        title = share if len(home) == 1 else f"{name(pair.a)} + {name(pair.b)}: {share}"
        body += [element("p", title), _meter(pair.probability), _reasons(explained)]
        near = [f"{name(who)}: {others[who] or '–'}" for who in (pair.a, pair.b)]
        body.append(
            element(
                "details", element("summary", words("also near")), [element("p", n) for n in near]
            )
        )
    head = element("h4", f"{room}{who}")
    return element("li", head, body, class_="card", data_probability=f"{probability:.6g}")


def _meter(share: float) -> Html:
    """A bar that says by its length how probable a pair is; the number stands beside it."""
    width = element("span", style=f"width:{100 * min(max(share, 0.0), 1.0):.1f}%")
    return element("div", width, class_="meter", aria_hidden="true")


def _reasons(found: Explanation) -> Html:
    told = [
        element("li", f"{words(side)}: {reason(part)}")
        for side, sign in (("for", 1.0), ("against", -1.0))
        for part in _largest(found.contributions, sign)
    ]
    if abs(found.withheld) > SLIGHT:
        told.append(element("li", words("protected sum", factor=number(exp(found.withheld)))))
    return element("ul", told) if told else element("p", words("no reason"))


def _largest(parts: Sequence[Contribution], sign: float) -> list[Contribution]:
    chosen = [part for part in parts if sign * part.contribution > SLIGHT]
    return sorted(chosen, key=lambda part: -abs(part.contribution))[:REASONS]


def reason(part: Contribution) -> str:
    """One answer's share of a pair's odds, in words.

    >>> reason(Contribution("tidy", 2, 2, 0.69))
    'both answer 2 to tidy: 2 times the odds'
    """
    factor, column = number(exp(part.contribution)), part.column
    if part.answer_a is None and part.answer_b is None:
        answers = column
    elif part.answer_a == part.answer_b:
        answers = words("both say", a=part.answer_a, column=column)
    else:
        a, b = (words("no answer") if x is None else x for x in (part.answer_a, part.answer_b))
        answers = words("they say", a=a, b=b, column=column)
    return words("for it", answers=answers, factor=factor)


def _others(plan: Plan, name: Name) -> dict[Any, str]:
    """Everybody's most probable partners but for the plan's, in words."""
    found = {}
    for pairing in plan.pairings:
        who, how = nearest(pairing, NEAR + 1)
        for me, person in enumerate(pairing.ids):
            partner = pairing.solution.partner[me]
            near = [k for k in range(who.shape[1]) if how[me, k] > 0 and who[me, k] != partner]
            found[person] = ", ".join(
                f"{name(pairing.ids[who[me, k]])} ({percent(float(how[me, k]))})"
                for k in near[:NEAR]
            )
    return found
