"""A strict reader of pages, and the sections a report has."""

from html.parser import HTMLParser

import pytest

VOID = {"meta", "input"}


class Strict(HTMLParser):
    """Every element closes where it should; collects ids, texts and references."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.tags, self.targets, self.words = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert len(given) == len(attrs), f"<{tag}> has an attribute twice"
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.targets += [v for k, v in attrs if k in ("href", "src", "srcset", "action", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read_strictly(text: str) -> Strict:
    reader = Strict()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="session")
def parsed():
    """What a page holds, after checking that every element closes where it should."""
    return read_strictly


@pytest.fixture(scope="session")
def sections():
    """The ids of a report's sections, in order."""
    return ["plan", "effects", "evaluation", "proof", "data", "limits"]
