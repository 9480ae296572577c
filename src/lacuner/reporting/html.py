"""A report as one self-contained HTML page: no scripts, no external resources, all text escaped."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lacuner.reporting.svg import Figure, legend_swatch, panel_svg

_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # unclosed, they take effect outside of <bdi> too
_VISIBLE = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r"},
    **dict.fromkeys((*range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF, *_DIRECTIONS), 0xFFFD),
}


def escape_control_characters(text: str) -> str:
    """Replace control characters by visible ones: NUL becomes `␀`, bidirectional overrides become `�`.

    >>> escape_control_characters("a\\x00b")
    'a␀b'
    """
    return text.translate(_VISIBLE)


def render_page(
    template: Path, figures: Iterable[Figure], filters: Mapping[str, Callable[..., str]], **values: object
) -> str:
    """Render a template that extends `page.html.jinja`, with figures and values.

    All values are escaped; control characters in them are made visible.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: object) -> object:
        return escape_control_characters(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    environment.filters.update(filters)
    rendered: list[dict[str, Any]] = [
        {
            "title": figure.title,
            "caption": figure.caption,
            "legend": [(name, Markup(legend_swatch(style))) for name, style in figure.legend.items()],
            # matplotlib escapes the text in its SVG; a test tries to break out of it
            "panels": [
                {"title": panel.title, "svg": Markup(panel_svg(panel, f"p{number}-{i}"))}
                for i, panel in enumerate(figure.panels)
            ],
        }
        for number, figure in enumerate(figures)
    ]
    return environment.get_template(template.name).render(figures=rendered, **values)
