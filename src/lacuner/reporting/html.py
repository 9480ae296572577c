"""A report as one HTML page: no script, nothing from elsewhere, and text in it is never more than text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lacuner.reporting.svg import Picture, panel_svg, swatch

_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # left open, they reach out of <bdi> in browsers
_VISIBLE = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r"},
    **dict.fromkeys((*range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF, *_DIRECTIONS), 0xFFFD),
}


def visible(text: str) -> str:
    """Text with what no page should contain made visible: NUL is `␀`, commands to change direction are `�`."""
    return text.translate(_VISIBLE)


def render_page(
    template: Path, pictures: Iterable[Picture], filters: Mapping[str, Callable[..., str]], **values: object
) -> str:
    """A template that extends `page.html.jinja`, with its pictures and values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: object) -> object:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    page = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    page.filters.update(filters)
    drawn: list[dict[str, Any]] = [
        {
            "title": picture.title,
            "caption": picture.caption,
            "legend": [(name, Markup(swatch(look))) for name, look in picture.looks.items()],
            # matplotlib escapes the text in its pictures; a test tries to break out of it
            "panels": [
                {"title": panel.title, "svg": Markup(panel_svg(panel, f"p{number}-{i}"))}
                for i, panel in enumerate(picture.panels)
            ],
        }
        for number, picture in enumerate(pictures)
    ]
    return page.get_template(template.name).render(pictures=drawn, **values)
