"""What learning minimises: (batch, heads) → value and gradient per head, anything in between."""

from mlestruct.objectives.base import Head, Objective, Sum, Surrogate, Values

__all__ = ["Head", "Objective", "Sum", "Surrogate", "Values"]
