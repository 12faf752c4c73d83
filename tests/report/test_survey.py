"""A survey counts what is there."""

from mlestruct.roommates.frames import Surveyed, survey
from mlestruct.tables import table


def test_columns_are_described():
    wide = table(
        {
            "id": ["a", "b", "c", "d", "e", "f", "g"],
            "same": [1] * 7,
            "score": [0.5, None, 0.5, 2.5, 0.5, 0.5, 0.5],
            "blank": [None] * 7,
            "sure": [True, False] * 3 + [True],
            "far": [1.0, float("inf")] + [0.0] * 5,
        }
    )
    assert survey(wide) == [
        Surveyed("id", "text", 0, 7, "a … g"),
        Surveyed("same", "whole numbers", 0, 1, "1"),
        Surveyed("score", "numbers", 1, 2, "0.5, 2.5"),
        Surveyed("blank", "text", 7, 0, ""),
        Surveyed("sure", "yes/no", 0, 2, "False, True"),
        Surveyed("far", "numbers", 0, 3, "0, 1, inf"),
    ]
