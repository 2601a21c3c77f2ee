"""Reads a memory folder with NumPy alone and answers; nothing of memcap is used.  The format, in twenty lines."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def answers(folder, rows):
    """Label numbers of padded token rows (rows, length), or of keys (rows, 1)."""
    net = json.loads(Path(folder, "memory.json").read_text())["network"]
    numbers = load_file(Path(folder, "weights.safetensors"))
    pairs = {m["name"] for m in net["maps"] if m["storage"] == "pairs"}

    def apply(name, x):
        w, b = numbers[name + ".weight"], numbers[name + ".bias"]
        return ((x.reshape(*x.shape[:-1], -1, 2) * w).sum(-1) if name in pairs else x @ w.T) + b

    state = [np.asarray(rows), np.broadcast_to(np.arange(net["length"]), np.shape(rows))][: len(net["inputs"])]
    if net["key_limbs"]:
        state = [state[0] >> net["key_limbs"][0], state[0] % 2 ** net["key_limbs"][1]]
    state = apply("embed", np.stack(state, -1).astype(numbers["embed.weight"].dtype))
    for i, stage in enumerate(net["stages"]):
        if "attention" in stage:
            name = f"{i:04d}.{stage['attention']}"
            state = state + apply(name + ".output", apply(name + ".value", state).mean(1, keepdims=True))
        else:
            x = state
            for depth in range(stage["layers"]):
                x = apply(f"{i:04d}.{stage['block']}.{depth}", np.maximum(x, 0) if depth else x)
            state = state + x
    out = apply("read", state)[..., 0] / int(net["unit"], 16)
    return out if net["per_position"] else out[:, -1]
