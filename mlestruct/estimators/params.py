"""Settings as scikit-learn keeps them: the constructor's arguments, by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache
from typing import Any, Self

import numpy as np

from mlestruct.errors import refuse_removed

Wanted = bool | str | None
UNCHANGED = "$UNCHANGED$"  # scikit-learn's own word for a request that stays as it is
WEIGHTS = ("sample_weight", "node_weight")


class _Requests(dict[str, Any]):
    """What was asked of each method; scikit-learn's clone copies it by the attribute's name."""

    def __sklearn_clone__(self) -> _Requests:
        return _Requests(self)


class Parameters:
    """``get_params`` returns what the constructor was given; ``clone`` and searches need no more.

    A class that takes ``**settings`` has those of the classes it extends.
    """

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        for name in settings:
            refuse_removed(f"{cls.__name__}({name}=)")
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's settings."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change settings by name, all or none."""
        self.check_names(params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def check_switches(self) -> None:
        """A ValueError for a yes-or-no setting that is neither: any text would be a yes."""
        for name, default in self._defaults().items():
            value = getattr(self, name)
            if isinstance(default, bool) and not (np.isscalar(value) and value in (0, 1)):
                raise ValueError(f"{name} is {value!r}; it must be True or False")

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """A ValueError for the first name that is no setting."""
        for name in names:
            if name not in cls._defaults():
                refuse_removed(f"{cls.__name__}({name}=)")
                known = ", ".join(cls._defaults())
                raise ValueError(f"{cls.__name__} has no setting {name!r}; it has {known}")

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        """Settings of the class and of the classes it extends."""
        found: dict[str, Any] = {}
        for kind in cls.__mro__[:-1]:
            own = inspect.signature(vars(kind).get("__init__", object))
            for name, parameter in own.parameters.items():
                any_number = parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL
                if name != "self" and parameter.kind not in any_number:
                    found.setdefault(name, parameter.default)
        return found

    def __repr__(self) -> str:
        given = self.get_params()
        changed = (n for n, value in self._defaults().items() if repr(value) != repr(given[n]))
        return f"{type(self).__name__}({', '.join(f'{name}={given[name]!r}' for name in changed)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks: a supervised estimator over lists, not matrices, of examples."""
        from sklearn.utils import InputTags, Tags, TargetTags

        lists = InputTags(two_d_array=False)
        return Tags(None, TargetTags(required=True), input_tags=lists)

    def get_metadata_routing(self) -> Any:
        """Which of fit's and score's arguments scikit-learn's searches are to hand on."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for method in ("fit", "score"):
            asked = getattr(self, "_metadata_request", {}).get(method, {})
            for name in self._routed(method):
                getattr(request, method).add_request(param=name, alias=asked.get(name))
        return request

    def set_fit_request(
        self, *, sample_weight: Wanted = UNCHANGED, node_weight: Wanted = UNCHANGED
    ) -> Self:
        """Whether searches hand weights (True, or another name for them) to ``fit``."""
        return self._request("fit", sample_weight=sample_weight, node_weight=node_weight)

    def set_score_request(self, *, sample_weight: Wanted = UNCHANGED) -> Self:
        """Whether searches hand ``sample_weight`` (True, or another name for it) to ``score``."""
        return self._request("score", sample_weight=sample_weight)

    def _routed(self, method: str) -> list[str]:
        """The weights that a method takes."""
        taken = inspect.signature(getattr(type(self), method, id)).parameters
        return [name for name in WEIGHTS if name in taken]

    def _request(self, method: str, **wanted: Wanted) -> Self:
        new = {name: value for name, value in wanted.items() if value != UNCHANGED}
        strange = next((name for name in new if name not in self._routed(method)), None)
        if strange is not None:
            raise TypeError(f"{type(self).__name__}.{method} takes no {strange}")
        asked = getattr(self, "_metadata_request", {})
        self._metadata_request = _Requests(asked, **{method: {**asked.get(method, {}), **new}})
        return self
