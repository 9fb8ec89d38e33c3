"""GPT-2 by PyTorch, as its users write it: the model that the package's step is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from burstproof.tensor.gpt.config import GptConfig
from burstproof.tensor.ops.adamw import AdamW


def make_model(config: GptConfig, weights: dict[str, Any]) -> Any:
    """A ``torch.nn.Module`` on the device with the given weights (``GptParameters.on_host``)."""
    import torch
    from torch import nn

    width = config.width

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (t.view(batch, length, config.heads, config.head).transpose(1, 2) for t in (q, k, v))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.joined(y.transpose(1, 2).contiguous().view(batch, length, width))
            return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(config.padded_vocabulary, width)
            self.places = nn.Embedding(config.context, width)
            self.blocks = nn.ModuleList(Block() for _ in range(config.layers))
            self.norm = nn.LayerNorm(width)

        def forward(self, tokens: Any, targets: Any) -> Any:
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            logits = nn.functional.linear(self.norm(x), self.tokens.weight)
            return nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    model = Model()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(_weight(name, weights)))
    return model.cuda()


def _own_name(name: str) -> tuple[str, bool]:
    """The package's name of a PyTorch parameter, and whether PyTorch stores it transposed."""
    *parts, kind = name.removeprefix("blocks.").split(".")
    own = ".".join(parts)
    if own in ("tokens", "places"):
        return own, False
    if parts[-1].startswith("norm"):
        return f"{own}_{'scale' if kind == 'weight' else 'shift'}", False
    return (f"{own}_bias", False) if kind == "bias" else (own, True)


def _weight(name: str, weights: dict[str, Any]) -> Any:
    own, transposed = _own_name(name)
    return np.ascontiguousarray(weights[own].T) if transposed else weights[own]


def gradients(model: Any) -> dict[str, Any]:
    """Gradients by the package's names and in its orientation, as NumPy arrays."""
    found = {}
    for name, parameter in model.named_parameters():
        own, transposed = _own_name(name)
        gradient = parameter.grad.float().cpu().numpy()
        found[own] = gradient.T if transposed else gradient
    return found


def make_optimiser(model: Any, constants: AdamW) -> Any:
    """PyTorch's fused AdamW with the same constants; matrices decay."""
    import torch

    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim == 2], "weight_decay": constants.decay},
        {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
    ]
    betas = (constants.beta1, constants.beta2)
    return torch.optim.AdamW(groups, lr=constants.rate, betas=betas, eps=constants.epsilon, fused=True)


def train_step(model: Any, optimiser: Any, tokens: Any, targets: Any) -> Any:
    """One step in bfloat16 autocast; the loss, still on the device."""
    import torch

    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(tokens, targets)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return loss.detach()


def train_step_float32(model: Any, optimiser: Any, tokens: Any, targets: Any) -> Any:
    """One step in float32 (PyTorch's default: no TF32); the loss, still on the device."""
    loss = model(tokens, targets)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return loss.detach()


def first_gradients(model: Any, tokens: Any, targets: Any, autocast: bool) -> dict[str, Any]:
    """Gradients of one batch without a step."""
    import torch

    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
        loss = model(tokens, targets)
    model.zero_grad(set_to_none=True)
    loss.backward()
    return gradients(model)
