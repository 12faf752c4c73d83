"""Settings as scikit-learn keeps them: the constructor's arguments, by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Self


class Parameters:
    """``get_params`` returns what the constructor was given; ``clone`` and searches need no more.

    A class that takes ``**settings`` has those of the classes it extends.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's settings."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change settings by name, all or none."""
        self.check_names(params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """A ValueError for the first name that is no setting."""
        for name in names:
            if name not in cls._defaults():
                known = ", ".join(cls._defaults())
                raise ValueError(f"{cls.__name__} has no setting {name!r}; it has {known}")

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Settings of the class and of the classes it extends."""
        found: dict[str, Any] = {}
        for kind in cls.__mro__[:-1]:
            own = inspect.signature(vars(kind).get("__init__", object))
            for name, parameter in own.parameters.items():
                if name != "self" and parameter.kind not in (
                    parameter.VAR_KEYWORD,
                    parameter.VAR_POSITIONAL,
                ):
                    found.setdefault(name, parameter.default)
        return found

    def __repr__(self) -> str:
        defaults = self._defaults()
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn's searches ask: a supervised estimator that needs y."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))
