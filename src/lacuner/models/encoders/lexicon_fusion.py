"""How an encoder reads the lexicon entries that a word is part of: four published ways, with one signature.

A fusion is called with the vectors of an encoder `[batch, words, width]`, those of the matching entries
`[matches, size]`, the matches of the batch (`lexicon.MatchArrays`, as tensors) and the mask `[batch, words]`. It
returns vectors of the same shape as those of the encoder.
"""

from collections.abc import Mapping
from math import log

import torch
from torch import Tensor, nn

from lacuner.models.encoders.lstm import run_lstm

Matches = Mapping[str, Tensor]

_LATTICE_WIDTH = 64
_HEADS = 4
_FARTHEST = 256
"""Distance in words beyond which all distances of the lattice are the same."""


class SoftLexicon(nn.Module):
    """SoftLexicon (Ma et al., 2020): for each word the entries that it begins, continues, ends or is, then a BiLSTM.

    Each of the four sets is the mean of its entries' vectors, weighted by how often they occur in the training
    sentences. (The weights are counts plus one: an entry that training did not contain still says where words begin.)
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width + 4 * size, width // 2, batch_first=True, bidirectional=True)

    def forward(self, vectors: Tensor, entries: Tensor, matches: Matches, mask: Tensor) -> Tensor:
        words = mask.numel()
        weights = (matches["frequency"][matches["pair_match"]] + 1).to(entries.dtype)
        weighted = weights.unsqueeze(1) * entries[matches["pair_match"]]
        sets = entries.new_zeros(4 * words, entries.shape[1])
        sets = sets.index_add(0, 4 * matches["pair_word"] + matches["pair_position"], weighted)
        totals = entries.new_zeros(words).index_add(0, matches["pair_word"], weights).clamp(min=1.0)
        means = 4 * sets.view(words, -1) / totals.unsqueeze(1)
        return run_lstm(self.lstm, torch.cat([vectors, means.view(*mask.shape, -1)], dim=-1), mask)


class EntryAttention(nn.Module):
    """For each word the mean of the entries that contain it, weighted by bilinear attention; zero if there are none."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, size, bias=False)

    def forward(self, vectors: Tensor, entries: Tensor, matches: Matches) -> Tensor:
        word, values = matches["pair_word"], entries[matches["pair_match"]]
        flat = vectors.flatten(0, 1)
        logits = (self.query(flat)[word] * values).sum(dim=1)
        weights = _softmax_by_word(logits, word, len(flat))
        means = entries.new_zeros(len(flat), entries.shape[1]).index_add(0, word, weights.unsqueeze(1) * values)
        return means.view(*vectors.shape[:2], -1)


class WordAttention(nn.Module):
    """BERT+Word (Liu et al., 2021): attention over the entries that contain a word, beside its vector; a BiLSTM."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.attention = EntryAttention(width, size)
        self.lstm = nn.LSTM(width + size, width // 2, batch_first=True, bidirectional=True)

    def forward(self, vectors: Tensor, entries: Tensor, matches: Matches, mask: Tensor) -> Tensor:
        means = self.attention(vectors, entries, matches)
        return run_lstm(self.lstm, torch.cat([vectors, means], dim=-1), mask)


class LexiconAdapter(nn.Module):
    """LEBERT (Liu et al., 2021): entries are added to the words inside the encoder, after its first layer.

    Entry vectors pass through two linear layers first; the sum is normalised. `LexiconEncoder` calls it there.
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.transform = nn.Sequential(nn.Linear(size, width), nn.Tanh(), nn.Linear(width, width))
        self.attention = EntryAttention(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, vectors: Tensor, entries: Tensor, matches: Matches, mask: Tensor) -> Tensor:
        normed: Tensor = self.norm(vectors + self.attention(vectors, self.transform(entries), matches))
        return normed


class Lattice(nn.Module):
    """FLAT (Li et al., 2020): words and entries in one sequence, and attention by the distances of their ends.

    Each word and entry has a head and a tail. The score of a pair depends on four distances: head or tail of the one
    from head or tail of the other. The result is added to the word's vector. Entries of one word are left out, because
    they are in the sequence already. Narrower than the encoder, because memory grows with the square of the sequence.
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        inner = _LATTICE_WIDTH
        self.words, self.entries = nn.Linear(width, inner), nn.Linear(size, inner)
        self.query, self.key, self.value = (nn.Linear(inner, inner) for _ in range(3))
        self.distances = nn.ModuleList(nn.Linear(inner, inner, bias=False) for _ in range(4))
        self.relation = nn.Linear(inner, inner, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(_HEADS, 1, inner // _HEADS))
        self.relation_bias = nn.Parameter(torch.zeros(_HEADS, 1, inner // _HEADS))
        self.norm = nn.LayerNorm(inner)
        self.output = nn.Sequential(nn.Linear(inner, 2 * inner), nn.ReLU(), nn.Linear(2 * inner, width))
        self.register_buffer("waves", _sinusoids(2 * _FARTHEST + 1, inner), persistent=False)

    def forward(self, vectors: Tensor, entries: Tensor, matches: Matches, mask: Tensor) -> Tensor:
        words = mask.shape[1]
        places = torch.arange(words, device=mask.device).expand_as(mask)
        if len(entries):
            slots = matches["slots"]
            longer = matches["real"] & (matches["last"] > matches["first"])[slots]
            inputs = torch.cat([self.words(vectors), self.entries(entries)[slots]], dim=1)
            head = torch.cat([places, matches["first"][slots]], dim=1)
            tail = torch.cat([places, matches["last"][slots]], dim=1)
            visible = torch.cat([mask, longer], dim=1)
        else:
            inputs, head, tail, visible = self.words(vectors), places, places, mask
        # an empty sentence attends to its padding, because a softmax over nothing is NaN
        visible = visible | ~visible.any(dim=1, keepdim=True)
        context = self._attend(inputs, head, tail, visible)[:, :words]
        fused: Tensor = vectors + self.output(self.norm(inputs[:, :words] + context))
        return fused

    def _attend(self, inputs: Tensor, head: Tensor, tail: Tensor, visible: Tensor) -> Tensor:
        shape = (*inputs.shape[:2], _HEADS, -1)
        query, key, value = (layer(inputs).view(shape).transpose(1, 2) for layer in (self.query, self.key, self.value))
        scores = (query + self.content_bias) @ key.transpose(2, 3)
        # the projection of all relations is moved to the query side, which has far fewer rows
        relation = self.relation.weight.view(_HEADS, -1, _LATTICE_WIDTH)
        projected = torch.einsum("bhnd,hdk->bhnk", query + self.relation_bias, relation)
        scores = scores + torch.einsum("bhnk,bnmk->bhnm", projected, self._relations(head, tail))
        scores = scores / query.shape[-1] ** 0.5
        weights = scores.masked_fill(~visible[:, None, None], -torch.inf).softmax(dim=-1)
        context: Tensor = weights @ value
        return context.transpose(1, 2).flatten(2)

    def _relations(self, head: Tensor, tail: Tensor) -> Tensor:
        """A vector for each pair of the sequence `[batch, sequence, sequence, inner]`, from four distances."""
        relations: Tensor | None = None
        for layer, (left, right) in zip(
            self.distances, ((head, head), (head, tail), (tail, head), (tail, tail)), strict=True
        ):
            distance = (left.unsqueeze(2) - right.unsqueeze(1)).clamp(-_FARTHEST, _FARTHEST) + _FARTHEST
            part = layer(self.waves)[distance]
            relations = part if relations is None else relations + part
        assert relations is not None
        return relations.relu()


FUSIONS: Mapping[str, type[SoftLexicon | WordAttention | LexiconAdapter | Lattice]] = {
    "soft": SoftLexicon,
    "attention": WordAttention,
    "adapter": LexiconAdapter,
    "lattice": Lattice,
}
"""Fusions by their name after `encoder.fusion=`."""


def _softmax_by_word(logits: Tensor, word: Tensor, words: int) -> Tensor:
    """A softmax over the pairs of each word; all arrays `[pairs]`."""
    peaks = logits.new_full((words,), -torch.inf).scatter_reduce(0, word, logits.detach(), "amax")
    powers = (logits - peaks[word]).exp()
    return powers / logits.new_zeros(words).index_add(0, word, powers)[word]


def _sinusoids(rows: int, width: int) -> Tensor:
    rates = torch.exp(torch.arange(0, width, 2) * (-log(10_000) / width))
    angles = torch.arange(rows).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
