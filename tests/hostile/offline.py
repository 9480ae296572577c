"""Load and use models from paths, and note every attempt to reach a network.

Usage: python -m tests.hostile.offline FOLDER, in a network namespace without interfaces (`unshare --net`). The attempts
are noted by an audit hook of the interpreter: a library that catches the error of its own attempt cannot hide it.
Prints a JSON object: whether the network is closed, what was loaded, and the attempts.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

ATTEMPTS: list[str] = []
SOCKET_EVENTS = ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname")


def note(event: str, args: tuple[Any, ...]) -> None:
    if event in SOCKET_EVENTS:
        ATTEMPTS.append(f"{event}{args[-2:]!r}")


def is_closed() -> bool:
    """Whether even this machine's own address cannot be reached."""
    try:
        with socket.create_connection(("127.0.0.1", 9), timeout=1):
            return False
    except ConnectionRefusedError:
        return False  # there is an interface that could refuse
    except OSError:
        return True


def use_models(folder: Path) -> list[str]:
    from lacuner.errors import ModelFileError
    from lacuner.models.encoders.huggingface import fingerprint, open_huggingface
    from lacuner.models.encoders.huggingface_mlm import open_masked_head
    from lacuner.models.heads import build_head
    from lacuner.models.model import Model
    from lacuner.models.storage import load, save
    from lacuner.models.tagger import Tagger
    from tests.models.test_huggingface import make_model

    model = make_model("bert", folder / "bert")
    ATTEMPTS.clear()  # of the library while the test builds its model: not ours
    done = [fingerprint(str(model))]
    encoder = open_huggingface(str(model))
    open_masked_head(str(model), encoder)
    save(Tagger(Model(encoder, build_head({"kind": "token", "labels": ["LOC"]}, encoder.width))), folder / "saved")
    done.append(str(load(folder / "saved")("Ada met Charles in London.").text))
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "attn_implementation": "owner/kernel"}))
    try:
        open_huggingface(str(model))
    except ModelFileError as error:
        done.append(str(error))
    return done


def main() -> None:
    closed = is_closed()
    sys.addaudithook(note)
    done = use_models(Path(sys.argv[1]))
    sys.stdout.write(json.dumps({"closed": closed, "done": done, "attempts": ATTEMPTS}))


if __name__ == "__main__":
    main()
