# torch==2.15.0
"""Expected values of the optimiser test in crates/judge-models/src/train/tests/run.rs: three steps of torch.optim.AdamW."""

import torch

print("torch", torch.__version__)
weight = torch.nn.Parameter(torch.tensor([[0.5, -1.0, 2.0]]))
optimizer = torch.optim.AdamW([weight], lr=0.1, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1)
for gradient in ([1.0, -2.0, 0.0], [0.5, 4.0, 1e-3], [-1.0, 0.25, 1e-3]):
    weight.grad = torch.tensor([gradient])
    optimizer.step()
    print([float(value) for value in weight.detach()[0]])
