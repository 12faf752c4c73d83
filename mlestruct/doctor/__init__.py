"""The data doctor: what is wrong with tables of people and pairs, what looks odd, what to do."""

from mlestruct.doctor.diagnosis import Diagnosis, Finding, examine
from mlestruct.doctor.fixes import Change, cleaned

__all__ = ["Change", "Diagnosis", "Finding", "cleaned", "examine"]
