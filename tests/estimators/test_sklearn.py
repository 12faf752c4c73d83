"""scikit-learn's own checks, with a reason for each that does not apply."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mlestruct as ms

pytest.importorskip("sklearn", minversion="1.8")
from sklearn.utils import estimator_checks as checks


class Rows(ms.SequenceModel):
    """What the checks can hand over, a row and a label each, as sequences of one position."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(_each(X), _each(y), sample_weight)

    def predict(self, X, decision="map"):
        return np.concatenate(super().predict(_each(X), decision))

    def score(self, X, y):
        return super().score(_each(X), _each(y))


def _each(values):
    return None if values is None else [np.asarray(v)[None] for v in np.asarray(values)]


VALUE_ERROR = "ValueError, not NotFittedError: scikit-learn is optional"
SETTINGS = "settings of the base class are taken as **settings"
POSITIVE = "a weight of 0 is refused: leave the example out"
PLACE = "a ValueError, but one that names the example and the place, in words of its own"
SPARSE = "a sparse matrix is one example's features, not a list of examples"
ANYWHERE = {
    "check_estimators_unfitted": VALUE_ERROR,
    "check_do_not_raise_errors_in_init_or_set_params": SETTINGS,
    "check_all_zero_sample_weights_error": POSITIVE,
    "check_sample_weight_equivalence_on_dense_data": POSITIVE,
    "check_complex_data": PLACE,
    "check_dtype_object": PLACE,
    "check_estimators_empty_data_messages": PLACE,
    "check_estimators_nan_inf": PLACE,
    "check_estimator_sparse_array": SPARSE,
    "check_estimator_sparse_matrix": SPARSE,
}
LISTS = "X is a list of examples of any sizes; the check passes one matrix"
NEEDS_LISTS = (
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
)
ROWS = {
    **ANYWHERE,
    "check_fit2d_predict1d": PLACE,
    "check_n_features_in_after_fitting": PLACE,
    "check_estimator_sparse_tag": SPARSE,
}


def expected(estimator):
    return ROWS if isinstance(estimator, Rows) else ANYWHERE | dict.fromkeys(NEEDS_LISTS, LISTS)


with warnings.catch_warnings():  # scikit-learn is optional, so its BaseEstimator is no base of ours
    warnings.filterwarnings("ignore", message="Estimator .* does not inherit from")
    every = checks.parametrize_with_checks(
        [Rows(tol=1e-4), ms.GridModel(), ms.MatchingModel()],
        expected_failed_checks=expected,
        xfail_strict=True,
    )


@every
def test_scikit_learn_checks(estimator, check):
    """Each check passes, or fails for the reason that is stated."""
    check(estimator)
