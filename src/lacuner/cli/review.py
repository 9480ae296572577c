"""`lacuner review`: decide label issues in the browser."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lacuner.cli.console import echo, log, print_json
from lacuner.cli.options import Json


def review(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder with label issues (`lacuner audit issues`).")],
    *,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None, Option(min=1, max=65535, help="Port. Default: as the last time, or a free one.")
    ] = None,
    allow_remote: Annotated[bool, Option("--allow-remote", help="Let other machines connect to --host.")] = False,
    browser: Annotated[bool, Option(help="Open the page in the browser.")] = True,
    json: Json = False,
) -> None:
    """Review label issues in the browser.

    Accept, reject or change them one by one, or label whole sentences.
    Every decision is written to RUN/review/decisions.jsonl at once. Ctrl-C ends the review; the same command continues.
    """
    from lacuner.processes import lock_folder
    from lacuner.review.queue import FOLDER
    from lacuner.review.server import FILES, new_app, new_review, open_address, write_link
    from lacuner.review.session import MAX_SENTENCE
    from lacuner.serve.security import Access, require_extra, run_server

    require_extra()
    opened, folder = new_review(run), run / FOLDER
    decisions = opened.session.log.path
    if opened.session.too_long:
        log(
            f"{opened.session.too_long:,} documents have more than {MAX_SENTENCE:,} characters: they are not shown for "
            "labelling as a whole. Split them, for instance one paragraph per document, or annotate them in another "
            "tool (`lacuner audit export`)"
        )
    with lock_folder(folder):
        address = open_address(folder, host, port, allow_remote)
        app = new_app(opened, Access(host, address.token, open_paths=frozenset(FILES)))
        link = write_link(address, folder)
        if json:
            print_json({"url": address.url, "decisions": str(decisions)})
        else:
            echo(f"review page: {address.url}\ndecisions: {decisions}\nCtrl-C ends the review.")
        if browser:
            webbrowser.open(link.resolve().as_uri())
        try:
            with suppress(KeyboardInterrupt):
                run_server(app, address.listener)
        finally:
            opened.next_round.stop()
            link.unlink(missing_ok=True)
    if not json:
        summary = opened.session.summary()
        echo(f"{summary['decided']:,} of {summary['issues']:,} issues are decided: {decisions}")
