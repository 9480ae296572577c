"""How `--help` is laid out: commands and options in sections, so that the many options for reading files come last.

typer has sections (`rich_help_panel`) only in its help with frames and colours, which cuts long choices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup


class SectionedCommand(TyperCommand):
    """A command that lists its options by section; those without one are under "Options"."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options; called by click."""
        defaults = {"argument": "Arguments", "option": "Options"}
        records = (
            (getattr(parameter, "rich_help_panel", None) or defaults[parameter.param_type_name], record)
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
        )
        _write_sections(records, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; called by click, whose message about files too many does not say what to do."""
        ctx.allow_extra_args = True
        extra: list[str] = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            ctx.fail(
                f"Got unexpected extra argument(s) ({' '.join(extra)}): repeat the option before each file, as in "
                "--weak A --weak B; instead of several texts, give their folder"
            )
        return extra


class SectionedGroup(TyperGroup):
    """A group of commands that lists them by section; those without one are under "Commands"."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands and their first lines; called by click."""
        commands = [command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name)) is not None]
        width = max(len(command.name or "") for command in commands)
        records = (
            (
                getattr(command, "rich_help_panel", None) or "Commands",
                ((command.name or "").ljust(width), command.get_short_help_str(formatter.width)),
            )
            for command in commands
        )
        _write_sections(records, formatter)


def _write_sections(records: Iterable[tuple[str, tuple[str, str]]], formatter: Any) -> None:
    """Write pairs of term and description under their titles, in the order in which the titles first occur."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for title, record in records:
        sections.setdefault(title, []).append(record)
    for title, rows in sections.items():
        with formatter.section(title):
            formatter.write_dl(rows)
