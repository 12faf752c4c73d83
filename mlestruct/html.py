"""Signs in texts that would be obeyed instead of seen."""

from __future__ import annotations

import re

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls, invisible signs, and those that turn the direction of what follows; not \\t and \\n."""


def visible(text: str) -> str:
    r"""The text with an escape where it has a sign that would be obeyed instead of seen.

    >>> visible("exe.\u202efdp") == r"exe.\u202efdp"
    True
    """
    return HIDDEN.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)
