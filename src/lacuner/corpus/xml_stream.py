"""XML as a stream, in bounded memory, for readers that collect what they need from the events of a parser.

expat itself refuses entities that expand without end, but keeps an unfinished tag, however long, and all open elements.
"""

from collections.abc import Callable, Iterable, Iterator
from xml.parsers import expat

from lacuner.corpus.reader import MAX_LINE
from lacuner.errors import first_line

MAX_DEPTH = 500
"""Elements inside one another, at most."""


def feed_parser(
    parser: expat.XMLParserType, chunks: Iterable[bytes], error: Callable[[str, int | None], Exception]
) -> Iterator[None]:
    """Parse XML chunk by chunk (the last is empty), with a pause after each; `error` makes an exception.

    >>> parser = expat.ParserCreate()
    >>> parser.StartElementHandler = lambda tag, attributes: print(tag)
    >>> for _ in feed_parser(parser, [b"<a><b", b"/></a>", b""], lambda problem, line: ValueError(problem)):
    ...     pass
    a
    b
    """
    size = 0
    try:
        for data in chunks:
            try:
                parser.Parse(data, not data)
            except (LookupError, ValueError) as problem:
                if isinstance(problem, KeyError | IndexError):
                    raise
                # the declaration names an encoding that Python does not know, or that expat cannot use
                raise error(f"this XML cannot be decoded ({first_line(problem)}): save it as UTF-8", 1) from problem
            size += len(data)
            if size - parser.CurrentByteIndex > MAX_LINE:
                raise error(f"a tag or comment is longer than {MAX_LINE:,} bytes", parser.CurrentLineNumber)
            yield
    except expat.ExpatError as problem:
        raise error(f"this is not well-formed XML ({expat.errors.messages[problem.code]})", problem.lineno) from problem
