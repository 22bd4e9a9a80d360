"""The twin of gpt.tsr in PyTorch: the same weights, batches and optimiser. Prints both curves as CSV.

python tests/twins/gpt.py FOLDER
"""

import json
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

HEADS = 4
folder = sys.argv[1]
torch.set_num_threads(1)


def read_safetensors(path):
    raw = open(path, "rb").read()
    (size,) = struct.unpack("<Q", raw[:8])
    out = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            a, b = entry["data_offsets"]
            values = np.frombuffer(raw[8 + size + a : 8 + size + b], np.float32).reshape(entry["shape"])
            out[name] = torch.from_numpy(values.copy()).requires_grad_()
    return out


p = read_safetensors(folder + "/start.safetensors")
layers = 1 + max(int(n.split(".")[1]) for n in p if n.startswith("blocks."))


def norm(x, name):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])


def attention(x, name):
    q, k, v = (
        torch.einsum("btd,dhe->bhte", x, p[f"{name}.{part}"]) + p[f"{name}.{part}_bias"][:, None]
        for part in ("query", "key", "value")
    )
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.einsum("bhte,hed->btd", y, p[name + ".out"]) + p[name + ".out_bias"]


def mlp(x, name):
    h = x @ p[name + ".up.weight"] + p[name + ".up.bias"]
    return F.gelu(h, approximate="tanh") @ p[name + ".down.weight"] + p[name + ".down.bias"]


def loss(ids, following):
    x = p["tokens.table"][ids] + p["positions.table"]
    for i in range(layers):
        x = x + attention(norm(x, f"blocks.{i}.norm1"), f"blocks.{i}.attention")
        x = x + mlp(norm(x, f"blocks.{i}.norm2"), f"blocks.{i}.mlp")
    scores = norm(x, "norm") @ p["tokens.table"].T
    return F.cross_entropy(scores.flatten(0, 1), following.flatten())


batches, rates = np.load(folder + "/batches.npy"), np.load(folder + "/rates.npy")
wanted = np.load(folder + "/losses.npy")
optimiser = torch.optim.AdamW(
    [
        {"params": [w for w in p.values() if w.ndim >= 2], "weight_decay": 0.1},
        {"params": [w for w in p.values() if w.ndim < 2], "weight_decay": 0.0},
    ],
    betas=(0.9, 0.99),
)
print("step,tessera,pytorch")
for step, (x, y) in enumerate(torch.from_numpy(batches)):
    for group in optimiser.param_groups:
        group["lr"] = float(rates[step])
    optimiser.zero_grad()
    value = loss(x, y)
    value.backward()
    torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
    optimiser.step()
    print(f"{step},{wanted[step]:.5f},{value.item():.5f}", flush=True)
