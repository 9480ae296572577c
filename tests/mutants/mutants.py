"""Named mutants: small changes that break a promise, each with the tests that must notice.

A mutant replaces a piece of a module, which must occur there exactly once. When the code changes, a mutant that no
longer fits is an error: change it with the code.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A change to a module below `src/lacuner`, and the tests that fail because of it."""

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]


HF = "models/encoders/huggingface.py"
HF_CONFIG = "models/encoders/huggingface_config.py"
NO_CODE = ("tests/hostile/test_no_code.py",)
HF_TESTS = ("tests/models/test_huggingface.py::test_every_call_that_loads_a_path_is_offline_and_trusts_nothing",)
HF_HOSTILE = ("tests/models/test_huggingface.py::test_bad_folders_are_refused_by_name_and_run_nothing",)
ATOMIC = ("tests/test_atomic.py",)
TAGGER = ("tests/models/test_tagger.py",)
OFFSETS = ("tests/properties/test_offsets.py",)
SECURITY = ("tests/serve/test_security.py",)
DECISIONS = ("tests/review/test_decisions.py",)
GAZETTEER = ("tests/models/test_gazetteer.py",)
PROOF = ("tests/export/test_proof.py",)
FOLDERS = ("tests/models/test_tagger.py::test_damaged_and_hostile_folders_are_one_sentence",)
UNKNOWN = "test_unknown_and_padding_have_no_gradient_even_where_scores_are_not_numbers"

MUTANTS = [
    # no code from files
    Mutant(
        "torch.load by name",
        "models/storage.py",
        "from torch import Tensor",
        "from torch import Tensor, load as _",
        NO_CODE,
    ),
    Mutant(
        "import_module by name",
        "config.py",
        "import difflib",
        "import difflib\nfrom importlib import import_module",
        NO_CODE,
    ),
    Mutant("eval", "config.py", "import difflib", "import difflib\n_evaluate = eval('1')", NO_CODE),
    Mutant(
        "numpy pickles", "models/inference.py", "import torch\n", "import torch\n_ = dict(allow_pickle=True)\n", NO_CODE
    ),
    Mutant(
        "remote code is trusted", HF, '"trust_remote_code": False, "local', '"trust_remote_code": True, "local', NO_CODE
    ),
    Mutant("any kind of weights", HF, "use_safetensors=True, output", "use_safetensors=None, output", HF_TESTS),
    Mutant("a path is looked up on the hub", HF, '"local_files_only": local}', '"local_files_only": False}', HF_TESTS),
    Mutant("configs are not checked", HF, "    check_model_config(raw, name)\n", "", HF_HOSTILE),
    Mutant(
        "adapters are loaded", HF, "local_files_only=local) is not None:", "local_files_only=local) is ...:", HF_HOSTILE
    ),
    Mutant("only the outer config is checked", HF_CONFIG, "rest.append(value)", "pass", HF_HOSTILE),
    Mutant(
        "flash attention",
        HF_CONFIG,
        '(None, "eager", "sdpa")',
        '(None, "eager", "sdpa", "flash_attention_2")',
        HF_HOSTILE,
    ),
    Mutant("any model type", HF_CONFIG, "or kind not in MODEL_TYPES", "", HF_HOSTILE),
    Mutant("repositories under any key", HF_CONFIG, "_REPOSITORY.fullmatch(value)", "not value", HF_HOSTILE),
    # model folders
    Mutant("hashes are not compared", "models/storage.py", "hexdigest() != digest:", "hexdigest() == 0:", FOLDERS),
    Mutant(
        "names that leave the folder", "models/storage.py", '".." in parts or len(parts) > 2', "len(parts) > 9", FOLDERS
    ),
    Mutant("links out of the folder", "models/storage.py", "if path.is_symlink() or", "if False and", FOLDERS),
    Mutant(
        "scores are not checked",
        "models/storage.py",
        "if not all(abs(new - old) <= TOLERANCE * max(1.0, abs(old)) for new, old in pairs):",
        "if any(abs(new - old) > 1e9 for new, old in pairs):",
        ("tests/models/test_tagger.py::test_a_model_that_scores_otherwise_is_refused",),
    ),
    Mutant(
        "no limit of size",
        "models/safe_build.py",
        "if tensors < 0 or numbers < 0:",
        "if False:",
        ("tests/hostile/test_model_folders.py::test_loading_one_model_does_not_disturb_the_building_of_another",),
    ),
    # writing files
    Mutant(
        "copied, not moved", "atomic.py", "os.replace(part, path)", "shutil.copyfile(part, path); part.unlink()", ATOMIC
    ),
    Mutant(
        "no fsync",
        "atomic.py",
        "                os.fsync(stream.fileno())\n                os.chmod",
        "                os.chmod",
        ATOMIC,
    ),
    Mutant(
        "parts stay",
        "atomic.py",
        "                    part.unlink()\n                raise",
        "                    pass\n                raise",
        ATOMIC,
    ),
    Mutant(
        "parts can be read by others",
        "atomic.py",
        "                os.fchmod(descriptor, 0o600)\n",
        "                os.fchmod(descriptor, 0o644)\n",
        ATOMIC,
    ),
    Mutant("private files are public", "atomic.py", "0o600 if private else", "", ATOMIC),
    Mutant("links are followed", "atomic.py", " | os.O_NOFOLLOW", "", ATOMIC),
    Mutant(
        "appending does not wait",
        "atomic.py",
        "            os.fsync(descriptor)\n        finally",
        "        finally",
        ATOMIC,
    ),
    Mutant(
        "temporary data stays",
        "atomic.py",
        "    shutil.rmtree(folder, ignore_errors=True)\n    folder.mkdir(mode=0o700, parents=True)",
        "    folder.mkdir(mode=0o700, parents=True, exist_ok=True)",
        ATOMIC,
    ),
    Mutant(
        "damaged checkpoints are loaded",
        "training/run_folder.py",
        'if hashlib.sha256(data).hexdigest() != self.state["sha256"]:',
        "if not data:",
        ("tests/training/test_loop.py::test_a_damaged_state_is_not_loaded",),
    ),
    Mutant(
        "keys of bench rows are paths",
        "bench/rows.py",
        'if not re.fullmatch("[0-9a-f]{20}", key):',
        "if not key:",
        ("tests/bench/test_results.py", "src/lacuner/bench/rows.py"),
    ),
    # nothing is unread, offsets are right
    Mutant(
        "first owned words are dropped",
        "models/tagger.py",
        "(start >= windows[:, 2])",
        "(start > windows[:, 2])",
        TAGGER,
    ),
    Mutant(
        "last owned words are dropped",
        "models/tagger.py",
        "(start < windows[:, 3])",
        "(start < windows[:, 3] - 1)",
        TAGGER,
    ),
    Mutant(
        "every window keeps all",
        "models/tagger.py",
        "owned = (start >= windows[:, 2]) & (start < windows[:, 3])",
        "owned = start >= 0",
        TAGGER,
    ),
    Mutant(
        "words read are not counted",
        "models/windows.py",
        "sum(window.own_end - window.own_start for",
        "sum(0 for",
        TAGGER,
    ),
    Mutant(
        "truncated words are not counted",
        "models/tagger.py",
        "- sentences.words_read + features.truncated",
        "- sentences.words_read",
        ("tests/models/test_tagger.py", "tests/cli/test_predict.py"),
    ),
    Mutant(
        "a word is skipped between windows",
        "models/windows.py",
        "windows.append(Window(start, end, own_start, own_end))\n        back",
        "windows.append(Window(start, end, own_start + 1, own_end))\n        back",
        (*OFFSETS, *TAGGER),
    ),
    Mutant("chunks are cut", "models/windows.py", "own_end = min([own_end, *cut])", "own_end = own_end", OFFSETS),
    Mutant(
        "sentences without end",
        "corpus/reader.py",
        "if len(lines) > MAX_LINES or sum(map(len, lines)) > MAX_TEXT:",
        "if False:",
        ("tests/corpus/test_conll.py",),
    ),
    Mutant(
        "tags lose the last chunk",
        "corpus/tags.py",
        "    if start >= 0:\n        chunks.append(Chunk(start, len(tags), label))",
        "",
        OFFSETS,
    ),
    Mutant(
        "UTF-16 offsets are characters",
        "corpus/offsets.py",
        '1 + (character > "\\uffff")',
        "1",
        ("tests/corpus/test_labelstudio.py", "tests/corpus/test_jsonl.py", "src/lacuner/corpus/offsets.py"),
    ),
    Mutant(
        "lost spans are not counted",
        "corpus/words.py",
        'lost.span(doc, span, "span does not fit the words")',
        "pass",
        OFFSETS,
    ),
    # losses
    Mutant(
        "unknown positions have a gradient (cross-entropy)",
        "losses/cross_entropy.py",
        "(targets.known & scores.mask)",
        "scores.mask",
        (f"tests/losses/test_cross_entropy.py::{UNKNOWN}",),
    ),
    Mutant(
        "padding has a gradient (cross-entropy)",
        "losses/cross_entropy.py",
        "(targets.known & scores.mask)",
        "targets.known",
        (f"tests/losses/test_cross_entropy.py::{UNKNOWN}",),
    ),
    Mutant(
        "unknown positions have a gradient (GCE)",
        "losses/gce.py",
        "(targets.known & scores.mask)",
        "scores.mask",
        (f"tests/losses/test_gce.py::{UNKNOWN}",),
    ),
    Mutant(
        "unknown positions have a gradient (squared error)",
        "losses/mse.py",
        "(targets.known & scores.mask)",
        "scores.mask",
        ("tests/losses/test_mse.py",),
    ),
    Mutant(
        "unknown positions have a gradient (soft labels)",
        "losses/soft_labels.py",
        "(targets.known & scores.mask)",
        "scores.mask",
        (f"tests/losses/test_soft_labels.py::{UNKNOWN}",),
    ),
    Mutant(
        "weights are ignored",
        "losses/cross_entropy.py",
        "losses * targets.weight[at]",
        "losses",
        ("tests/losses/test_cross_entropy.py",),
    ),
    # decisions of reviewers
    Mutant(
        "damage in the log is skipped",
        "review/decisions.py",
        'raise CorpusError(f"this line is not a decision: {problem}", file=self.path, line=number) from error',
        "return",
        DECISIONS,
    ),
    Mutant(
        "a cut-off line is kept",
        "review/decisions.py",
        "            end_last_line(self.path, _is_decision)\n",
        "",
        DECISIONS,
    ),
    Mutant(
        "an undo cannot be undone",
        "review/decisions.py",
        "sorted(state.decisions, reverse=True)",
        "sorted(state.decisions)",
        DECISIONS,
    ),
    Mutant("numbers start again", "review/decisions.py", "number=last + 1", "number=1", DECISIONS),
    Mutant(
        "an old decision wins",
        "review/decisions.py",
        "state.current[edit.target] = decision, edit",
        "state.current.setdefault(edit.target, (decision, edit))",
        DECISIONS,
    ),
    # gazetteer and model together
    Mutant(
        "predictions win over matches",
        "models/merging.py",
        "        if number not in replaced\n",
        "        if False\n",
        GAZETTEER,
    ),
    Mutant(
        "extensions never win",
        "models/merging.py",
        'return contains and (rule == "longer" or len(matches) == 1)',
        'return contains and rule == "longer"',
        GAZETTEER,
    ),
    Mutant("unlikely predictions win", "models/merging.py", "<= MIN_PROBABILITY", "<= 0.0", GAZETTEER),
    Mutant(
        "matches have no score",
        "models/merging.py",
        "match._replace(score=scores.get(match.key, match.score))",
        "match",
        GAZETTEER,
    ),
    # servers
    Mutant(
        "any host name",
        "serve/security.py",
        "if not _is_own_name(_without_port(host), access):",
        "if not host:",
        SECURITY,
    ),
    Mutant(
        "any origin",
        "serve/security.py",
        'if "origin" in headers and headers["origin"] not in own_origins:',
        "if False:",
        SECURITY,
    ),
    Mutant(
        "other sites",
        "serve/security.py",
        'if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):',
        "if False:",
        SECURITY,
    ),
    Mutant(
        "any token",
        "serve/security.py",
        'scheme.lower() != "bearer" or not hmac.compare_digest(presented.encode(), access.token.encode())',
        'scheme.lower() != "bearer"',
        SECURITY,
    ),
    Mutant(
        "bodies of any size",
        "serve/security.py",
        "            if len(body) > limit:\n",
        "            if False:\n",
        SECURITY,
    ),
    Mutant(
        "any number of requests", "serve/security.py", "running > access.max_requests", "running > 1 << 30", SECURITY
    ),
    Mutant(
        "other machines", "serve/security.py", "if not is_loopback(host) and not allow_remote:", "if False:", SECURITY
    ),
    Mutant(
        "headers occur twice", "serve/security.py", 'if key in single and key in ("host",', 'if key in ("",', SECURITY
    ),
    Mutant(
        "a queue without limit",
        "serve/batching.py",
        "self._max_characters = max_characters",
        "self._max_characters = 1 << 60",
        ("tests/serve/test_batching.py",),
    ),
    Mutant(
        "the address can be read by others",
        "review/server.py",
        "with atomic_write(folder / _ADDRESS, private=True)",
        "with atomic_write(folder / _ADDRESS)",
        ("tests/review/test_server.py",),
    ),
    # exports
    Mutant(
        "missing spans are no difference",
        "export/proof.py",
        "if proof.changed > tolerance.changed:",
        "if proof.extra > 1 << 30:",
        PROOF,
    ),
    Mutant(
        "NaN is no difference",
        "export/proof.py",
        "if not proof.score_difference <= tolerance.score:",
        "if proof.score_difference > tolerance.score:",
        PROOF,
    ),
    Mutant(
        "a proof without entities", "export/proof.py", "if not proof.spans and not proof.extra:", "if False:", PROOF
    ),
]
