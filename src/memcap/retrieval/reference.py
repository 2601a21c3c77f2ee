"""The definition: the model written plainly in torch, three gradient steps by autograd on N × L × d tensors, float64.

Everything faster (``closed_form``, ``small_step``) is tested against this page.  Runs on any torch device.
Called by tests and benchmarks, and by anyone who wants to read what is being computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from memcap.retrieval.activation import activation
from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.streams import Sequences
from memcap.retrieval.task import RetrievalTask


@dataclass(frozen=True)
class Weights:
    """What three steps learn: ``value_first`` W_V1 and ``value`` W_V2 (d × m or d × d), ``key_query`` W_KQ1 (d × d)."""

    value_first: Tensor
    key_query: Tensor
    value: Tensor


class ReferenceModel:
    """Attention with one frozen query, a value matrix and a frozen read-out.

    Symbols: ``key_query`` W_KQ, ``value`` W_V; keys k_ij = z_in[x_ij] + z_trig·1{j = ℓ_i}; scores k_ijᵀ W_KQ z_EOS;
    hidden state Σ_j a_ij v_ij; logits Z_outᵀ W_V ψ with ψ = h or φ(W_m h)/√m.

    With K facts a sequence there are K triggers, on positions ℓ_i1 … ℓ_iK, and K queries z_EOS,k: ``marked`` is
    (n, K, L), keys carry every trigger, and scores and logits have one row a query, (n, K, L) and (n, K, V).

    Args:
        attention: ``soft``, ``hard`` (one-hot on the first largest score), ``uniform`` or ``oracle``.

    Source: arXiv 2603.15923, section 2.
    """

    def __init__(
        self, task: RetrievalTask, embeddings: Embeddings, *, attention: str = "soft", device: str = "cpu"
    ) -> None:
        def put(array: object) -> Tensor:
            return torch.as_tensor(array, dtype=torch.float64, device=device)

        self.attention, self.device, self.trigger_in_value = attention, device, task.trigger_in_value
        self.tokens, self.labels = put(embeddings.tokens), put(embeddings.labels)
        self.triggers = torch.vstack([put(embeddings.trigger), *map(put, embeddings.other_triggers)])
        self.ends = torch.vstack([put(embeddings.end), *map(put, embeddings.other_ends)])
        self.mlp = None if embeddings.mlp is None else put(embeddings.mlp)
        self.activation = activation(task.activation)
        columns = task.dimension if self.mlp is None else len(self.mlp)
        self.value = torch.zeros(task.dimension, columns, dtype=torch.float64, device=device)
        self.key_query = torch.zeros(task.dimension, task.dimension, dtype=torch.float64, device=device)

    def triggers_at(self, marked: Tensor) -> Float[Tensor, "n length d"]:
        """The triggers that every position carries; ``marked`` is (n, L) or (n, K, L)."""
        several = marked if marked.ndim == 3 else marked[:, None]
        return (several[..., None] * self.triggers[:, None]).sum(dim=1)

    def scores(self, tokens: Tensor, marked: Tensor) -> Float[Tensor, "n *facts length"]:
        """Attention scores of every position."""
        keys = self.tokens[tokens] + self.triggers_at(marked)
        scores = (keys @ self.key_query @ self.ends.T).transpose(1, 2)
        return scores if marked.ndim == 3 else scores[:, 0]

    def logits(self, tokens: Tensor, marked: Tensor) -> Float[Tensor, "n *facts vocabulary"]:
        """Logits of every label; ``marked`` (n, L) is 1 at the informative position (all 0: a clean query)."""
        values = self.tokens[tokens]
        if self.trigger_in_value:
            values = values + self.triggers_at(marked)
        scores = self.scores(tokens, marked)
        if self.attention == "hard":
            weights = torch.nn.functional.one_hot(scores.argmax(dim=-1), scores.shape[-1]).to(torch.float64)
        elif self.attention == "uniform":
            weights = torch.full_like(scores, 1 / scores.shape[-1])
        elif self.attention == "oracle":
            weights = marked
        else:
            weights = scores.softmax(dim=-1)
        hidden = weights @ values if marked.ndim == 3 else (weights[:, None] @ values)[:, 0]
        if self.mlp is not None:
            hidden = self.activation.value(hidden @ self.mlp.T) / len(self.mlp) ** 0.5
        return hidden @ self.value.T @ self.labels.T


def three_steps(
    model: ReferenceModel, sequences: Sequences, *, first: float, attention: float, second: float
) -> Weights:
    """Three full-batch gradient steps on mean cross-entropy from W_V = 0, W_KQ = 0; ``model`` is left at the end.

    The first two steps see uniform attention (W_KQ = 0 makes soft attention uniform); the third sees
    ``model.attention``.

    Args:
        first, attention, second: the step sizes η, γ, γ_v.
    """
    tokens = torch.as_tensor(sequences.tokens, device=model.device)
    marked = torch.as_tensor(sequences.marked, device=model.device, dtype=torch.float64)
    labels: Int[Tensor, "n *facts"] = torch.as_tensor(sequences.labels, device=model.device)
    final_attention, model.attention = model.attention, "soft"

    def gradient(name: str) -> Tensor:
        weight = getattr(model, name).detach().requires_grad_()
        setattr(model, name, weight)
        logits = model.logits(tokens, marked)
        loss = torch.nn.functional.cross_entropy(logits.flatten(end_dim=-2), labels.flatten())
        result: Tensor = torch.autograd.grad(loss, weight)[0]
        setattr(model, name, weight.detach())
        return result

    model.value = model.value - first * gradient("value")
    value_first = model.value
    model.key_query = model.key_query - attention * gradient("key_query")
    model.attention = final_attention
    model.value = model.value - second * gradient("value")
    return Weights(value_first, model.key_query, model.value)
