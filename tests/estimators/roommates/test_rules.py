"""Rules are kept, and those that leave no plan are named with the people they strand."""

import pytest

from mlestruct import Infeasible


@pytest.fixture
def people(year):
    return year(12, seed=7, first=201, year=3)[0]


def refused(fitted, people, message, **rules):
    with pytest.raises(ValueError, match=message):
        fitted.assign(people, **rules)


def test_faults(fitted, people) -> None:
    refused(fitted, people, r"forbid\[0\]: nobody has id 1", forbid=[(1, 202)])
    refused(fitted, people, r"require\[1\] is \(201,\); expected", require=[(202, 203), (201,)])
    refused(fitted, people, r"forbid\[0\] is '12'; expected two ids", forbid=["12"])
    refused(fitted, people, r"forbid\[0\] is 201; expected two ids", forbid=[201, 202])
    refused(fitted, people, r"forbid\[0\] names 201 twice", forbid=[(201, 201)])


def test_contradictions(fitted, people) -> None:
    with pytest.raises(Infeasible, match=r"201 \(year 3, gender F\) and 212 .*never share"):
        fitted.assign(people, require=[(201, 212)])
    with pytest.raises(Infeasible, match=r"202 cannot be in 2 pairs: 201 with 202, 202 with 203"):
        fitted.assign(people, require=[(201, 202), (202, 203)])
    with pytest.raises(Infeasible, match="201 with 202 is both forbidden and required"):
        fitted.assign(people, forbid=[(202, 201)], require=[(201, 202)])


def test_a_person_nobody_may_join(fitted, people) -> None:
    forbid = [(201, other) for other in range(202, 207)]
    with pytest.raises(
        Infeasible, match=r"gender F: .*too few may share with 201, because .*\(201, 202\)"
    ):
        fitted.assign(people, forbid=forbid)


def test_too_few_partners_for_too_many(fitted, people) -> None:
    """202 to 206 keep apart, so of six women only one pair can be made."""
    forbid = [(a, b) for a in range(202, 207) for b in range(a + 1, 207)]
    with pytest.raises(Infeasible) as caught:
        fitted.assign(people, forbid=forbid)
    message = str(caught.value)
    named = message.partition("share with ")[2].partition(", because")[0].split(", ")
    assert len(named) >= 3
    assert "(202, 203)" in message


def test_dropping_one_of_the_rules_resolves_the_conflict(fitted, people) -> None:
    forbid = [(201, other) for other in range(202, 207)]
    plan = fitted.assign(people, forbid=forbid[1:])
    assert plan.partner(201) == 202
