"""The CRF against brute force over all tag sequences, whole and partial."""

from itertools import product

import numpy as np
import pytest
import torch

from lacuner.losses.crf import crf_loss
from lacuner.models.heads.crf import IMPOSSIBLE, CRFHead, log_likelihood, viterbi
from lacuner.models.tag_sets import TagSet
from lacuner.models.types import CRFScores, Targets

LENGTHS = (4, 1, 3)


def random_scores(scheme="BIO", seed=0, scale=1.0, labels=("X",)):
    torch.manual_seed(seed)
    tags = TagSet(labels, scheme)
    follows, first, last = (torch.from_numpy(array) for array in tags.allowed())
    size, words = len(tags), max(LENGTHS)
    mask = torch.arange(words) < torch.tensor(LENGTHS)[:, None]

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64) * scale

    scores = CRFScores(
        draw(len(LENGTHS), words, size),
        draw(size, size).masked_fill(~follows, IMPOSSIBLE),
        draw(size).masked_fill(~first, IMPOSSIBLE),
        draw(size).masked_fill(~last, IMPOSSIBLE),
        mask,
    )
    return tags, scores


def path_score(scores, b, path, skipped=()):
    total = float(scores.end[path[-1]])
    for t, tag in enumerate(path):
        if t in skipped:
            continue
        into = scores.start[tag] if t == 0 else scores.transitions[path[t - 1], tag]
        total += float(into) + float(scores.logits[b, t, tag])
    return total


def log_partition(values):
    values = np.array(values)
    return values.max() + np.log(np.exp(values - values.max()).sum())


def legal_targets(scores, known_share, seed):
    """The best path under other emissions is a legal tagging; some of it is known."""
    torch.manual_seed(seed)
    other = CRFScores(torch.randn_like(scores.logits), scores.transitions, scores.start, scores.end, scores.mask)
    labels = viterbi(other)
    return Targets(labels, torch.rand(labels.shape) < known_share, torch.ones(labels.shape, dtype=torch.float64))


@pytest.mark.parametrize("scheme", ["IO", "BIO", "BIOES"])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("unknown", ["marginal", "drop"])
def test_equals_brute_force(scheme, share, unknown):
    tags, scores = random_scores(scheme)
    targets = legal_targets(scores, share, 3)
    got = log_likelihood(scores, targets, unknown)
    for b, length in enumerate(LENGTHS):
        known = {t: int(targets.labels[b, t]) for t in range(length) if targets.known[b, t]}
        skipped = set(range(length)) - set(known) if unknown == "drop" else ()
        paths = {path: path_score(scores, b, path, skipped) for path in product(range(len(tags)), repeat=length)}
        agreeing = [value for path, value in paths.items() if all(path[t] == tag for t, tag in known.items())]
        want = log_partition(agreeing) - log_partition(list(paths.values())) if known else 0.0
        assert float(got[b]) == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("scheme", ["IO", "BIO", "BIOES"])
def test_observed_keeps_the_tag_of_unknown_words_for_the_next_transition(scheme):
    """The printed formula: one path above the line, without scores of removed words and of transitions into them."""
    tags, scores = random_scores(scheme)
    targets = legal_targets(scores, 0.5, 3)
    free = torch.zeros_like(targets.known)
    free[0, 1] = free[2, 2] = True  # unknown for another reason than removal: no tag was observed
    targets = Targets(targets.labels.masked_fill(free, -1), targets.known & ~free, targets.weight)
    got = log_likelihood(scores, targets, "observed")
    for b, length in enumerate(LENGTHS):
        observed = {t: int(targets.labels[b, t]) for t in range(length) if not free[b, t]}
        skipped = {t for t in range(length) if not targets.known[b, t]}
        paths = {path: path_score(scores, b, path, skipped) for path in product(range(len(tags)), repeat=length)}
        agreeing = [value for path, value in paths.items() if all(path[t] == tag for t, tag in observed.items())]
        want = log_partition(agreeing) - log_partition(list(paths.values())) if len(skipped) < length else 0.0
        assert float(got[b]) == pytest.approx(want, abs=1e-9)
    assert (got <= log_likelihood(scores, targets, "drop") + 1e-9).all(), "which sums over the tags of unknown words"


def test_partial_with_everything_known_is_the_crf():
    for seed in range(5):
        _, scores = random_scores("BIOES", seed, labels=("X", "Y"))
        targets = legal_targets(scores, 1.0, seed)
        labels, mask = targets.labels, scores.mask
        everything = Targets(labels, torch.zeros_like(mask), targets.weight)
        above = torch.tensor([path_score(scores, b, labels[b, :n].tolist()) for b, n in enumerate(LENGTHS)])
        alpha = scores.start + scores.logits[:, 0]
        for t in range(1, labels.shape[1]):
            following = torch.logsumexp(alpha[:, :, None] + scores.transitions, 1) + scores.logits[:, t]
            alpha = torch.where(mask[:, t, None], following, alpha)
        ordinary = above - torch.logsumexp(alpha + scores.end, 1)
        for unknown in ("marginal", "drop", "observed"):
            assert torch.allclose(log_likelihood(scores, targets, unknown), ordinary, atol=1e-6)
            assert (log_likelihood(scores, everything, unknown) == 0).all()


@pytest.mark.parametrize("unknown", ["marginal", "drop", "observed"])
def test_gradient(unknown):
    _, scores = random_scores("BIO")
    targets = legal_targets(scores, 0.5, 1)
    possible = scores.transitions > IMPOSSIBLE / 2

    def loss(logits, transitions, start):
        blocked = transitions.masked_fill(~possible, IMPOSSIBLE)
        return crf_loss(CRFScores(logits, blocked, start, scores.end, scores.mask), targets, unknown)

    inputs = (scores.logits, scores.transitions.masked_fill(~possible, 0.0), torch.randn(len(scores.start)).double())
    assert torch.autograd.gradcheck(loss, tuple(value.clone().requires_grad_() for value in inputs))


def test_padding_unknown_sentences_and_dropped_words_have_no_gradient():
    _, scores = random_scores("BIO")
    targets = legal_targets(scores, 0.5, 1)
    known = targets.known.clone()
    known[2] = False
    logits = scores.logits.clone().requires_grad_()
    with_gradient = CRFScores(logits, scores.transitions, scores.start, scores.end, scores.mask)
    crf_loss(with_gradient, Targets(targets.labels, known, targets.weight)).sum().backward()
    assert (logits.grad[~scores.mask] == 0).all() and (logits.grad[2] == 0).all() and (logits.grad[0] != 0).any()
    for unknown in ("drop", "observed"):
        logits.grad = None
        crf_loss(with_gradient, Targets(targets.labels, known, targets.weight), unknown).sum().backward()
        assert (logits.grad[~(known & scores.mask)] == 0).all() and (logits.grad != 0).any()


def test_a_confident_mistake_still_has_a_gradient():
    _, scores = random_scores("BIO", scale=200.0)
    logits = (scores.logits * 5).float().requires_grad_()
    float_scores = CRFScores(logits, scores.transitions.float(), scores.start.float(), scores.end.float(), scores.mask)
    loss = crf_loss(float_scores, legal_targets(scores, 0.5, 2)).sum()
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(logits.grad).all() and (logits.grad != 0).any()


def test_weights_scale_and_soft_labels_are_refused():
    _, scores = random_scores()
    targets = legal_targets(scores, 0.7, 1)
    half = Targets(targets.labels, targets.known, targets.weight * 0.5)
    assert torch.allclose(crf_loss(scores, half), crf_loss(scores, targets) / 2)
    with pytest.raises(ValueError, match="soft"):
        crf_loss(scores, Targets(targets.labels, targets.known, targets.weight, torch.ones(1)))


@pytest.mark.parametrize("scheme", ["IO", "BIO", "BIOES"])
def test_viterbi_and_span_probabilities_equal_brute_force(scheme):
    checked = 0
    for seed in range(12):
        tags, scores = random_scores(scheme, seed, labels=("X", "Y") if scheme != "BIOES" else ("X",))
        head = CRFHead(3, tags.labels, scheme)
        path, found = viterbi(scores), head.decode(scores)
        for b, length in enumerate(LENGTHS):
            paths = list(product(range(len(tags)), repeat=length))
            values = np.array([path_score(scores, b, p) for p in paths])
            assert path[b, :length].tolist() == list(paths[values.argmax()])
            probability = np.exp(values - log_partition(values))
            legal = [(p, x) for p, x in zip(paths, probability, strict=True) if x > 0]
            spans = [(tags.decode(np.array([p]), np.ones((1, length))), x) for p, x in legal]
            for i in np.flatnonzero(found.sentence == b):
                wanted = (found.start[i], found.end[i], found.label[i])
                want = sum(x for f, x in spans if wanted in set(zip(f.start, f.end, f.label, strict=True)))
                assert found.score[i] == pytest.approx(want, abs=1e-6)
                checked += 1
    assert checked > 10
