"""The `lacuner` command: all subcommands, and the exit status of errors."""

import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import Annotated

import typer

from lacuner import __version__
from lacuner.cli import (
    annotate,
    apply,
    audit,
    augment,
    bench,
    check,
    convert,
    dictionary,
    distil,
    evaluate,
    export,
    noise,
    predict,
    pretrain,
    queue,
    recipes,
    review,
    serve,
    train,
)
from lacuner.cli.console import echo, log
from lacuner.cli.help import SectionedCommand, SectionedGroup
from lacuner.cli.options import flatten_options
from lacuner.errors import ConfigError, LacunerError, ProcessLostError

SECTIONS: dict[str, dict[str, Callable[..., None]]] = {
    "Weak labels": {
        "annotate": annotate.annotate,
        "dictionary build": dictionary.build,
    },
    "Training": {
        "recipes": recipes.recipes,
        "train": train.train,
        "pretrain": pretrain.pretrain,
        "augment": augment.augment,
        "distil": distil.distil,
    },
    "Using a tagger": {
        "predict": predict.predict,
        "evaluate": evaluate.evaluate,
        "export": export.export,
        "serve": serve.serve,
    },
    "Better labels": {
        "audit issues": queue.issues,
        "audit labels": audit.labels,
        "audit sample": queue.sample,
        "audit export": queue.export_queue,
        "audit import": queue.import_annotations,
        "audit sampling": audit.sampling,
        "audit removed": audit.removed,
        "audit completion": audit.completion,
        "audit errors": audit.errors,
        "review": review.review,
        "apply": apply.apply,
    },
    "Corpora and experiments": {
        "check": check.check,
        "convert": convert.convert,
        "noise corrupt": noise.corrupt,
        "noise measure": noise.measure,
        "bench": bench.bench,
    },
}
"""The commands under the headings of `lacuner --help`."""
COMMANDS = {path: command for commands in SECTIONS.values() for path, command in commands.items()}


TERMINATED = 128 + signal.SIGTERM
"""Exit status after SIGTERM."""
RESUMABLE = ("train", "distil", "audit issues", "pretrain", "bench")
PATH_ERRORS = {errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EROFS}
"""Errors about a path on the command line: they occur wherever the path is first used, in any function."""
SEVERAL_PROCESSES = ("train", "pretrain")
"""Commands that `torchrun -m lacuner` runs in several processes."""


@contextmanager
def explain_interrupt() -> Iterator[None]:
    """End with one sentence and status 130 after Ctrl-C, in a command that resumes."""
    try:
        yield
    except KeyboardInterrupt:
        message = "interrupted; the same command continues, and nothing before the last checkpoint is lost"
        log(f"lacuner: {message}")
        raise typer.Exit(130) from None


def _new_app(help: str, epilog: str | None = None, add_completion: bool = False) -> typer.Typer:
    return typer.Typer(
        help=help,
        epilog=epilog,
        cls=SectionedGroup,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        add_completion=add_completion,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


app = _new_app(
    "Train named-entity recognisers from incomplete and noisy annotation.",
    epilog="""\b
Typical use:
  lacuner annotate texts/ --dictionary terms.tsv --out weak.jsonl
  lacuner train --weak weak.jsonl --out run
  lacuner predict run texts/ --out predicted.jsonl""",
    add_completion=True,
)


def _print_version(requested: bool) -> None:
    if requested:
        echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


GROUPS = {
    "dictionary": "Build gazetteers from knowledge bases.",
    "audit": "Find label issues, or diagnose a training run.",
    "noise": "Simulate or measure label noise.",
}
"""Commands with subcommands."""


def _add_commands() -> None:
    """Add all commands and groups to `app`, in the order of `SECTIONS`."""
    groups: dict[str, typer.Typer] = {}
    for section, commands in SECTIONS.items():
        for path, command in commands.items():
            group, _, name = path.rpartition(" ")
            if group and group not in groups:
                groups[group] = _new_app(GROUPS[group])
                app.add_typer(groups[group], name=group, rich_help_panel=section)
            command = explain_interrupt()(command) if path in RESUMABLE else command
            panel = None if group else section
            groups.get(group, app).command(name, cls=SectionedCommand, rich_help_panel=panel)(flatten_options(command))


_add_commands()


class _Nowhere(io.TextIOBase):
    """A stream that discards what is written."""

    def write(self, text: str) -> int:
        return len(text)


@contextmanager
def join_launched(arguments: Sequence[str]) -> Iterator[None]:
    """Join the processes that `torchrun` has started, if it did; all but the first are silent."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield
        return
    if not {*arguments[:1]} & {*SEVERAL_PROCESSES, "--help", "-h"}:
        if os.environ.get("RANK", "0") != "0":
            sys.exit(2)  # one process says why
        raise ConfigError(
            f"only {' and '.join(SEVERAL_PROCESSES)} run in several processes: start this command without `torchrun`"
        )
    from lacuner.training.distributed import claim_report, is_first, join_processes

    with join_processes(), ExitStack() as stack:
        if not is_first():
            stack.enter_context(redirect_stdout(_Nowhere()))
            stack.enter_context(redirect_stderr(_Nowhere()))
        try:
            yield
        except LacunerError:
            if not claim_report():
                sys.exit(1)  # another process says why
            raise
        except SystemExit as ending:
            if ending.code == TERMINATED and claim_report():
                raise ProcessLostError(
                    "terminated, as the launcher does with all processes if one of them ends; the same command "
                    "continues from the last checkpoint"
                ) from None
            raise


def _refuse_empty_arguments(arguments: Sequence[str]) -> None:
    """An empty path would be the current folder: `--gold "$GOLD"` in a script where GOLD is not set."""
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if not argument or re.fullmatch("--[a-z-]+=", argument):
            option = before if not argument else argument.removesuffix("=")
            where = f" after {option}" if option.startswith("--") else ""
            raise ConfigError(f"there is an empty argument{where}: is a variable in the command not set?")


def main(join: bool = False) -> None:
    """Run a command. Wrong input ends with status 2 and one sentence, any other failure with status 1.

    With `join` (`python -m lacuner`), environment variables of `torchrun` are obeyed. The plain command ignores them: a
    script that runs in one of several processes may call it.
    """
    # before torch is loaded: waiting threads that spin slow two busy processes down by a factor of two to seven
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a terminal's encoding lacks is shown as an escape
        sys.stdout.reconfigure(errors="backslashreplace")
    if threading.current_thread() is threading.main_thread():
        # exit instead of dying, so that half-written files and workers are cleaned up
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        _refuse_empty_arguments(sys.argv[1:])
        with join_launched(sys.argv[1:]) if join else nullcontext():
            app(prog_name="lacuner")
    except LacunerError as error:
        log(f"lacuner: {error}")
        sys.exit(1 if isinstance(error, ProcessLostError) else 2)
    except KeyboardInterrupt:  # before a command has started
        log("lacuner: interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the program that reads our output has ended
        sys.exit(1)
    except OSError as error:
        if error.filename is None or error.errno not in PATH_ERRORS:
            raise
        log(f"lacuner: {error.filename}: this path cannot be used: {error.strerror}")
        sys.exit(2)
