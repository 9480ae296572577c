"""`lacuner serve`: predictions over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lacuner.cli.console import log
from lacuner.errors import ConfigError
from lacuner.processes import MAX_WORKERS


def serve(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder or model folder.")],
    *,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    allow_remote: Annotated[
        bool, Option("--allow-remote", help="Let other machines connect, on the address of --host.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, Option(metavar="NAME", help="Host name that the service answers to. Repeatable.")
    ] = None,
    workers: Annotated[
        int, Option(min=1, max=MAX_WORKERS, help="Number of processes, each with its own copy of the model.")
    ] = 1,
    threshold: Annotated[
        float | None, Option(help="Minimum probability of a predicted span, 0 to 1, if a request has none.")
    ] = None,
    no_gazetteer: Annotated[bool, Option("--no-gazetteer", help="Predict with the model alone.")] = False,
    dictionary: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Further gazetteer entries. Repeatable.")
    ] = None,
    max_bytes: Annotated[int, Option(min=1, help="Maximum size of a request in bytes.")] = 256_000,
    max_seconds: Annotated[
        float, Option(min=0.1, help="Maximum seconds for a request to arrive, and for its answer.")
    ] = 30.0,
    max_queue: Annotated[
        int, Option(min=1, help="Maximum characters waiting per worker; beyond that, status 429.")
    ] = 1_000_000,
) -> None:
    """Answer prediction requests over HTTP.

    The paths are /predict (POST), /health, /metrics, and / with a page to try it.

    Matches of the gazetteer that the model was trained with are tagged too. SIGTERM or Ctrl-C ends the service when all
    accepted requests are answered.
    """
    from lacuner.serve.security import listen, require_extra

    require_extra()
    from lacuner.evaluate.threshold import check_threshold
    from lacuner.serve.server import address_of
    from lacuner.serve.server import serve as run_service
    from lacuner.serve.settings import ServiceSettings

    check_threshold(threshold)
    if no_gazetteer and dictionary:
        raise ConfigError("give either --no-gazetteer or --dictionary, not both")
    settings = ServiceSettings(
        run=run,
        gazetteer=not no_gazetteer,
        dictionary=tuple(dictionary or ()),
        threshold=threshold,
        host=host,
        names=frozenset(name.lower() for name in allow_host or ()),
        max_bytes=max_bytes,
        max_seconds=max_seconds,
        max_queue=max_queue,
    )
    listener = listen(host, port, allow_remote=allow_remote)
    log(f"listening on {address_of(listener)}; loading {run} ...")
    run_service(settings, listener, workers, log)
