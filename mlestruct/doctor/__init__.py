"""The data doctor: what is wrong with tables of people and pairs, what looks odd, what to do."""

from mlestruct.doctor.diagnosis import Diagnosis, Finding, Told, examine, paired
from mlestruct.doctor.fixes import Change, cleaned

__all__ = ["Change", "Diagnosis", "Finding", "Told", "cleaned", "examine", "paired"]
