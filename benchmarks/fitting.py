"""Gradients of procedural fitting: against the forward pass, and against PyTorch's autograd.

PyTorch computes the same thing in the same order: vertical factors of a row at once, horizontal
ones of a column at once, which for these is what one after the other gives, messages in logarithms,
all images of a batch together, on one thread. Times are CPU seconds, the least of a few runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._clock import least
from mlestruct.families.fitting.losses import LOSSES
from mlestruct.families.fitting.procedural import Procedural
from mlestruct.families.fitting.truncated import Messages, beliefs

Row = dict[str, Any]

# rows, columns, states, images, iterations
WORKLOADS = ((28, 28, 2, 90, 4), (28, 28, 2, 1, 4), (100, 100, 5, 1, 5))
AT_MOST, AT_LEAST = 4.0, 5.0


def run(quick: bool) -> Iterator[Row]:
    """Each workload's gradient in forward passes, and beside PyTorch's where that is installed."""
    for workload in WORKLOADS[1:2] if quick else WORKLOADS:
        yield from compared(*workload)


def compared(rows: int, columns: int, states: int, count: int, iterations: int) -> Iterator[Row]:
    """Alternating runs of both sides."""
    rng, graph = np.random.default_rng(0), ms.grid(rows, columns, states)
    batch = ms.Batch.of(graph, list(rng.integers(states, size=(count, rows * columns))))
    score, method = rng.standard_normal(batch.size), Messages()
    objective = Procedural(LOSSES["ucl"], method, iterations)
    found = objective(batch, {"score": score}, None, 0.0)

    def forward() -> Any:
        return beliefs(batch, [score], method, iterations, whole=False)

    def backward() -> Any:
        return objective(batch, {"score": score}, found.warm, 0.0)

    once, ours = least(forward), least(backward)
    name = f"{count} of {rows}x{columns}, {states} states, T={iterations}"
    target = f"<= {AT_MOST:g}"
    yield row(name, "gradient / forward pass", ours / once, target, ours / once <= AT_MOST)
    try:
        import torch
    except ModuleNotFoundError:
        yield {"benchmark": "fitting", "workload": f"{name}: skipped, torch is not installed"}
        return
    torch.set_num_threads(1)
    theirs_value, theirs_slope = autograd(torch, batch, score, rows, columns, states, iterations)
    off = float(np.abs(theirs_slope - found.gradient["score"]).max())
    off = max(off, abs(theirs_value / found.value - 1.0))
    yield row(name, "difference from torch", off, "<= 1e-8", off <= 1e-8)
    theirs = least(
        lambda: autograd(torch, batch, score, rows, columns, states, iterations), repeats=3
    )
    ours = min(ours, least(backward))
    ratio = theirs / ours
    rest = {"peer": theirs, "peer_name": f"torch {torch.__version__}", "ratio": ratio}
    yield row(name, "gradient, CPU s", ours, f"ratio >= {AT_LEAST:g}", ratio >= AT_LEAST, **rest)


def row(workload: str, quantity: str, ours: float, target: str, met: bool, **rest: Any) -> Row:
    """One line of the table."""
    common = {"benchmark": "fitting", "workload": workload, "quantity": quantity}
    return {**common, "ours": ours, "target": target, "met": bool(met), **rest}


def autograd(
    torch: Any, batch: Any, score: Any, rows: int, columns: int, states: int, iterations: int
) -> tuple[float, Any]:
    """(loss, gradient by score) of the same truncated belief propagation."""
    count, nodes = len(batch), rows * columns
    flat = torch.tensor(score.reshape(count, -1), requires_grad=True)
    unary = flat[:, : nodes * states].reshape(count, rows, columns, states)
    tables = flat[:, nodes * states :].reshape(count, -1, states, states)
    split = rows * (columns - 1)
    across = tables[:, :split].reshape(count, rows, columns - 1, states, states)
    down = tables[:, split:].reshape(count, rows - 1, columns, states, states)
    line = [unary[:, r] for r in range(rows)]  # log-beliefs row by row, then column by column
    zeros = {
        "down": torch.zeros(count, columns, states, dtype=flat.dtype),
        "across": torch.zeros(count, rows, states, dtype=flat.dtype),
    }
    sent = {
        "down": [(zeros["down"], zeros["down"])] * (rows - 1),
        "across": [(zeros["across"], zeros["across"])] * (columns - 1),
    }

    def sweep(line: list[Any], way: str, order: Any) -> None:
        for k in order:
            table = down[:, k] if way == "down" else across[:, :, k]
            to_first, to_second = sent[way][k]
            first, second = line[k] - to_first, line[k + 1] - to_second
            new_second = torch.logsumexp(table + first.unsqueeze(-1), -2)
            new_first = torch.logsumexp(table + second.unsqueeze(-2), -1)
            new_second = new_second - new_second.mean(-1, keepdim=True)  # or they grow for ever
            new_first = new_first - new_first.mean(-1, keepdim=True)
            line[k], line[k + 1] = first + new_first, second + new_second
            sent[way][k] = (new_first, new_second)

    for _ in range(iterations):
        sweep(line, "down", range(rows - 1))
        turned = list(torch.stack(line, 1).unbind(2))
        sweep(turned, "across", range(columns - 1))
        sweep(turned, "across", range(columns - 2, -1, -1))
        line = list(torch.stack(turned, 2).unbind(1))
        sweep(line, "down", range(rows - 2, -1, -1))
    belief = torch.log_softmax(torch.stack(line, 1), -1)
    truth = np.stack([batch.target[batch.coordinates(m)][: nodes * states] for m in range(count)])
    loss = -(belief * torch.tensor(truth).reshape(belief.shape)).sum()
    loss.backward()
    return float(loss.detach()), flat.grad.numpy().reshape(-1)
