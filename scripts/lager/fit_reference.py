#!/usr/bin/env python3
# torch==2.15.0 (CPU, float64) numpy not needed
"""Layer-weight fits by PyTorch, for crates/judge-core/tests/fixtures/fit.json.

Written from the formulas (see the documentation of `LayerWeightFit`), not from any published program. PyTorch gives the
gradient (autograd), Adam, ReduceLROnPlateau, the order of items (DataLoader) and bfloat16 softmax; this crate must give the same numbers without it.

    python scripts/lager/fit_reference.py > crates/judge-core/tests/fixtures/fit.json
"""

import itertools
import json
import math
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

EXPECTED_TORCH = "2.15.0"

LAYERS, SCORES = 4, 5


def logits(n, layers=LAYERS):
    """z[i][l][s]; any language can compute it again."""
    z = [
        [[math.sin(1 + 0.7 * i + 1.3 * l + 0.9 * s) * (l + 1) for s in range(SCORES)] for l in range(layers)]
        for i in range(n)
    ]
    return torch.tensor(z, dtype=torch.float64)


def human(n, fractions):
    """Whole scores 1 to 5, or scores with a fraction that are points of no scale."""
    return [1 + (2 * i) % 5 if not fractions else 1 + (7 * i % 13) / 3.25 for i in range(n)]


def fit(case):
    z = logits(case["items"])
    if case["states"] == "drop-last":
        z = z[:, :-1]
    y = torch.tensor(human(case["items"], case["fractions"]), dtype=torch.float64)
    if case["targets"] == "truncate":
        y = y.floor()
    classes = (y - 0.5).ceil().long() - 1  # nearest point, the smaller of two equally near

    theta = torch.zeros(z.shape[1], dtype=torch.float64)
    if case["init"] == "last-one":
        theta[-1] = 1.0
    theta.requires_grad_(True)
    learned = "learned" in case["alpha"]
    if learned:
        alpha = torch.tensor(case["alpha"]["learned"]["init"], dtype=torch.float64, requires_grad=True)
        parameters = [theta, alpha]
    else:
        alpha = torch.tensor(case["alpha"]["fixed"], dtype=torch.float64)
        parameters = [theta]
    adam = torch.optim.Adam(parameters, lr=case["lr"])
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(adam, factor=0.5, patience=1, min_lr=1e-3)

    torch.manual_seed(case["seed"])
    loader = DataLoader(TensorDataset(z, y, classes), batch_size=case["batch"], shuffle=True)
    points = torch.arange(1, SCORES + 1, dtype=torch.float64)
    losses, rates = [], []
    for _ in range(case["epochs"]):
        share = torch.sigmoid(alpha) if learned else alpha  # once per epoch
        rates.append(adam.param_groups[0]["lr"])
        epoch = []
        for zb, yb, cb in loader:
            zhat = (torch.softmax(theta, 0)[None, :, None] * zb).sum(1)
            cross_entropy = torch.nn.functional.cross_entropy(zhat, cb)
            expected = (torch.softmax(zhat, 1) * points).sum(1)
            distance = torch.nn.functional.mse_loss if case["loss"] == "mse" else torch.nn.functional.l1_loss
            loss = share * cross_entropy + (1 - share) * distance(expected, yb)
            adam.zero_grad()
            loss.backward(retain_graph=True)  # the share's graph serves the whole epoch
            adam.step()
            epoch.append(loss.item())
        losses += epoch
        plateau.step(sum(epoch) / len(epoch))
    return {
        "theta": theta.detach().tolist(),
        "weights": torch.softmax(theta.detach(), 0).tolist(),
        "alpha": alpha.item(),
        "losses": losses,
        "learning_rates": rates,
    }


def cases():
    base = {"items": 10, "fractions": False, "targets": "nearest", "lr": 0.01, "seed": 42, "batch": 4, "epochs": 1}
    learned, fixed = {"learned": {"init": 0.5}}, {"fixed": 0.3}
    for loss, alpha, states, init in itertools.product(
        ["mae", "mse"], [learned, fixed], ["all", "drop-last"], ["zeros", "last-one"]
    ):
        yield base | {"loss": loss, "alpha": alpha, "states": states, "init": init}
    # Epochs, batches (one item, a short last one, all items, more than all), seeds beyond 32 bits, fractions.
    mse = base | {"loss": "mse", "alpha": learned, "states": "drop-last", "init": "zeros"}
    mae = base | {"loss": "mae", "alpha": learned, "states": "all", "init": "zeros"}
    for epochs, batch, items in [(2, 4, 10), (3, 1, 7), (3, 3, 11), (2, 10, 10), (2, 64, 10), (1, 8, 990), (2, 4, 700)]:
        yield mse | {"epochs": epochs, "batch": batch, "items": items}
        yield mae | {"epochs": epochs, "batch": batch, "items": items, "seed": 2**32 + 7 + batch}
    for targets in ["nearest", "truncate"]:
        for other in [mse, mae]:
            yield other | {"fractions": True, "targets": targets, "items": 26, "epochs": 3}
    # Steps so long that the loss rises: the plateau halves the rate several times.
    for other in [mse, mae]:
        yield other | {"lr": 3.0, "epochs": 12, "items": 25, "seed": 1}


def orders():
    """What a shuffling loader visits in three epochs, whole for short lists, the first 12 for long ones."""
    for seed, n in [(42, 1), (42, 2), (42, 10), (42, 990), (42, 1000), (0, 5), (2**32 + 1, 17), (2**63, 9)]:
        torch.manual_seed(seed)
        loader = DataLoader(TensorDataset(torch.arange(n)), batch_size=n, shuffle=True)
        yield {"seed": seed, "items": n, "epochs": [next(iter(loader))[0].tolist()[:12] for _ in range(3)]}


def bfloat16():
    """Sum of value times bfloat16 probability, as LAGER's program stores its e_score."""
    generator = torch.Generator().manual_seed(3)
    for _ in range(40):
        z = (torch.rand(SCORES, generator=generator, dtype=torch.float64) * 16 + 12).tolist()
        p = torch.softmax(torch.tensor(z, dtype=torch.float64).to(torch.bfloat16), 0)
        assert p.dtype == torch.bfloat16
        yield {"logits": z, "e_score": sum((s + 1) * q for s, q in enumerate(p.double().tolist()))}


def main():
    found = torch.__version__.split("+")[0]
    print(f"torch {torch.__version__}, python {sys.version.split()[0]}", file=sys.stderr)
    if found != EXPECTED_TORCH:
        sys.exit(f"the fixture is made with torch {EXPECTED_TORCH}, found {found}")
    torch.set_num_threads(1)
    fits = [{"case": case, "expected": fit(case)} for case in cases()]
    for entry in fits:
        # Long runs: the first and the last losses tell as much as all of them.
        losses = entry["expected"]["losses"]
        entry["expected"]["steps"] = len(losses)
        if len(losses) > 40:
            entry["expected"]["losses"] = losses[:20] + losses[-20:]
    if not any(len(set(entry["expected"]["learning_rates"])) > 2 for entry in fits):
        sys.exit("the plateau never fired")
    lines = ",\n".join(json.dumps(entry) for entry in fits)
    order_lines = ",\n".join(json.dumps(entry) for entry in orders())
    bf16_lines = ",\n".join(json.dumps(entry) for entry in bfloat16())
    print(f'{{"torch": "{found}",\n"fits": [\n{lines}\n],\n"orders": [\n{order_lines}\n],\n"bfloat16": [\n{bf16_lines}\n]}}')


main()
