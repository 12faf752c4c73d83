"""Every sentence of the report and of the page."""

from __future__ import annotations

FILE = "roommates.toml"  # of a project

REPORT = {
    # the lines on top
    "people": "{people} people in {pairs} pairs; {alone} without a partner.",
    "picks": (
        "Shown a pair that came about and one that did not, the model picks the right one "
        "{model} times in 100. {others}. {told}"
    ),
    "told apart": "It beats the simple regression on the same pairs, by more than chance explains.",
    "not told apart": "It is not told from the simple regression: they differ within the error.",
    "baseline random": "Guessing does so {share} times",
    "baseline logistic": "a simple regression on pairs {share}",
    "untested": "How good it is here is not known: nobody has said who shares with whom.",
    "matters most": "What matters most: {effects}.",
    "nothing sure": "No answer is surely of influence: too few pairs, or people do not mind.",
    # effects
    "per step": "people whose answers to {column} differ by 1",
    "same": "people with the same answer to {column}",
    "two answers": "{a} with {b} on {column}",
    # the plan
    "both say": "both answer {a} to {column}",
    "they say": "{a} and {b} on {column}",
    "no answer": "no answer",
    "for it": "{answers}: {factor} times as likely",
    "protected sum": "protected answers together: {factor} times as likely",
}


def words(key: str, **values: object) -> str:
    """A sentence of a report: ``words("people", people=4, …)``."""
    return REPORT[key].format(**values)


def number(value: float, digits: int = 2) -> str:
    """To so many significant digits.

    >>> number(-0.567)
    '−0.57'
    """
    plain = f"{value:.{digits}g}"
    if "e" in plain and 1e-4 <= abs(value) < 1e6:
        plain = f"{value:.0f}"
    return plain.replace("-", "−")


def percent(share: float) -> str:
    """A share in two digits."""
    return f"{number(100 * share)} %"


SENTENCES: dict[str, dict[str, str | tuple[str, ...]]] = {
    # how severe a finding is, its code: what was found, what to do in the file, and on the page
    "stop": {
        "refused": "{words}",
        "code": (
            "column {column!r}: {value!r}, {count} times, the first in {where}, looks like a code "
            "for no answer",
            " and is proposed as one (no_answer); if it is an answer, write trust = true instead",
            "; if it is, tick that beside the column",
        ),
        "spelled": (
            "column {column!r}: {listed} differ in case or signs only, and count as different",
            "; for one answer write spelled.{first!r} = {most!r} there, and so for others",
            "; write each of them in one way in the table",
        ),
        "word": "column {column!r} holds numbers, and {value!r} in {where}: is that an answer, or "
        "a person?",
        "leak": (
            "column {column!r}: {agreed} If so, ",
            "its role is ignore; else write trust = true",
            "it is better not used",
        ),
        "rule": (
            "column {column!r}: {agreed}: is that a rule? If so, {agreed.once}",
            "list it in same; if partners may differ in it, in differ",
            "use it as a rule; if partners may differ in it, tick that",
        ),
    },
    "puzzle": {
        "no ids": ("no column looks like ids of people", "; name one: id ="),
        "no shares": (
            "no columns look as if they said who shares",
            "; name them: partners = two columns of ids, room = or partner = one column",
            "; choose them below",
        ),
        "turned": "most columns are called by numbers: do people stand in columns? A table has a "
        "row for each person",
        "no questions": (
            "no column looks like answers to a question",
            "; give columns a role: ordinal, binary or categorical",
            "; choose below what columns are used as",
        ),
    },
    "note": {
        "nobody shares": "nothing says who shares, so there is nothing to learn from",
        "ids taken": "column {column!r} is taken for the ids of people",
        "partners taken": "columns {columns} are taken for who shares",
        "room taken": "column {columns} is taken for the room of a person",
        "partner taken": "column {columns} is taken for the partner of a person",
        "rule proposed": (
            "column {column!r} is proposed as a rule: {agreed}; if partners may differ in it, ",
            "move it from same to differ",
            "say so beside the column",
        ),
        "gone": "column {column!r}: {count} people are {value!r}; who is not to be planned is "
        "listed by mlestruct roommates change left ID --yes",
        "odd": "{group}: an odd number of people ({count}), so one of them stays alone",
        "alone": "{alone} of {people} people are in no pair, and nothing is learned from them",
        "few": "{pairs} pairs are few for {questions} questions: at least {least} would tell more; "
        "intervals will be wide",
    },
}
FINDINGS = {
    code: (severity, *((told,) if isinstance(told, str) else told))
    for severity, sentences in SENTENCES.items()
    for code, told in sentences.items()
}

CROSSED = {
    "found": (
        "column {column!r}: {agreed}, and {broken} of {planned} planned pairs do not, or are not "
        "known to: if that is a rule, {agreed.once}"
    ),
    "once": "write each of them in one way and ",
    "fit": "fit with same={column!r}; if partners may differ there, say mix={column!r}",
    "page": (
        "choose “rule: partners have the same” for it; if not, tick “no rule: partners may "
        "differ”; then learn again"
    ),
}

COMMENTS = {  # in a project's files
    "file": "Room-mates: what the tables are and how to learn from them. Nobody is named here.",
    "people": "Room-mates: what was decided about people, by their ids. Private.",
    "tables": "files (BOOK.xlsx#SHEET), and the columns of ids and of who shares",
    "groups": "partners have the same there; they may differ in others; whom to plan",
    "columns": "role: ordinal (numbers), binary, categorical or ignore",
    "fit": "answers that are missing, or new since the fit; rooms of three and more",
}

PAGE = {
    "id": "id of a person",
    "names": "shown beside ids",
    "cohort": "year or cohort",
    "who shared": "who shared is said by",
    "no answer": "means no answer",
    "protected": "protected",
    "ignore": "not used",
    "trust": "answers as they are meant",
    "spelled": "spellings of one answer",
    "levels": "answers in their order",
    "words": "words of a question",
    "same": "rule: partners have the same",
    "mix": "no rule: partners may differ",
    "ordinal": "question with steps (1, 2, 3 …)",
    "categorical": "question with kinds (tea, coffee …)",
    "binary": "question with two answers",
    "no change": "No home would change.",
    "cost": "By what was learned, the present plan is {factor} times as probable.",
    "new pairs": "New pairs: {pairs}.",
    "let go by it": "Let go by that: {gone}.",
    "decided require": "{who} are locked together",
    "decided forbid": "{who} are kept apart",
    "decided together": "{who} were put together",
    "decided fixed": "{who} are locked in room {room}",
    "decided left": "{who} left",
    "decided column": "column {who}",
    "decided planned": "to be paired up: {who}",
    "not in use": "Not in use now: {why}.",
    "unfit nobody yet": "nobody can be paired up yet",
    "unfit gone": "nobody among those who are paired up has the id {who}",
    "unfit groups": "they are of groups that never share: {first} and {second}",
    "unfit room": "there is no room {room}",
    "unfit room of": "room {room} is for {group}",
    "unfit column": "there is no such column now; it was used as: {roles}",
    "unfit planned": "nobody is of it now",
    "alone": "without a partner",
    "room": "Room {room}",
}
