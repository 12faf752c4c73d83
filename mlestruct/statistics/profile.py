"""Ends of intervals where the likelihood has fallen by so much, and directions without an end."""

from __future__ import annotations

import numpy as np

from mlestruct.statistics.firth import KEPT, Firth, Point, Unsettled
from mlestruct.structures.base import Array

TRIES, CLOSE = 30, 1e-3  # steps to an end; and of its fall, relative
FAR = 40.0  # standard errors from the estimate, beyond which there is no end
DRIFT = 0.02  # of a separated direction's length, that a contrast may have in it


def end(firth: Firth, top: Point, contrast: Array, fall: float, side: int) -> float:
    """Where 2 (top − profile of ⟨contrast, θ⟩) reaches ``fall`` on one side; ±inf where never.

    The root of the fall is nearly linear, so it is followed by secants; others are kept at their
    best, one Newton search each. :class:`Unsettled` where that ends nowhere.
    """
    centre, best = float(contrast @ top.theta), top.reached(firth.weight)
    unit = float(np.linalg.norm(top.basis.T @ contrast))
    root, point = np.sqrt(fall), top
    near, far = (0.0, 0.0), None
    distance = root
    for _ in range(TRIES):
        if distance > FAR:
            return side * np.inf
        point = _moved(point, contrast, centre + side * distance * unit)
        try:
            point = firth.start(point.theta, point.basis, point.volume)
        except np.linalg.LinAlgError:
            far, distance, point = (distance, 2 * root), 0.5 * (near[0] + distance), top
            continue
        point = firth.maximise(point, contrast)
        fell = float(np.sqrt(max(2.0 * (best - point.reached(firth.weight)), 0.0)))
        if abs(fell - root) <= CLOSE * root:
            return centre + side * distance * unit
        if fell < root:
            near = (distance, fell)
        else:
            far = (distance, fell)
        if far is not None and far[0] - near[0] <= CLOSE * far[0]:  # it falls in one leap
            return centre + side * far[0] * unit
        distance = _next(near, far, root)
    raise Unsettled


def _next(near: tuple[float, float], far: tuple[float, float] | None, root: float) -> float:
    if far is None:
        return near[0] * float(np.clip(root / max(near[1], 1e-3), 1.05, 2.0))
    share = (root - near[1]) / (far[1] - near[1])
    return near[0] + float(np.clip(share, 0.05, 0.95)) * (far[0] - near[0])


def _moved(point: Point, contrast: Array, value: float) -> Point:
    """The nearest θ with this value of the contrast, nearness by the point's own information."""
    c = point.basis.T @ contrast
    step = c * (value - contrast @ point.theta) / (c @ c)
    return Point(point.theta + point.basis @ step, point.basis, point.slopes, point.volume)


def without_end(firth: Firth, top: Point) -> Array | None:
    """The direction in which the plain likelihood rises for ever (separation), or None.

    Newton's steps double their way along it, while its information dies; towards a maximum they
    become small.
    """
    found, left, _ = Firth(firth.likelihood, 0.0).climb(top)
    drift = found.theta - top.theta
    far = np.linalg.norm(np.linalg.lstsq(top.basis, drift, rcond=None)[0]) > FAR / 4
    if left <= KEPT and not far:
        return None
    return np.asarray(drift)


def open_sides(drift: Array | None, top: Point, contrast: Array) -> tuple[bool, bool]:
    """Whether a contrast has no (lower, upper) end, because a separation moves it."""
    if drift is None:
        return False, False
    moved = float(contrast @ drift) / float(np.linalg.norm(top.basis.T @ contrast))
    length = float(np.linalg.norm(np.linalg.lstsq(top.basis, drift, rcond=None)[0]))
    return moved < -DRIFT * length, moved > DRIFT * length
