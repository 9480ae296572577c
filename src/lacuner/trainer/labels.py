"""Labels must agree: the same type under two names in weak labels, gold and dev would be learned as two types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lacuner.data import Document, Span, labels_of
from lacuner.errors import ConfigError

MIN_ABBREVIATION = 3
"""Letters of a label that may be short for another: `LOC`, `LOCATION`."""


def rename_labels(
    docs: Iterable[Document], names: Mapping[str, str], unused: set[str] | None = None
) -> Iterator[Document]:
    """Documents with some labels renamed; labels that occur are removed from `unused`.

    >>> doc = Document("1", "Mara left", spans=(Span(0, 4, "person"),))
    >>> [doc.spans[0].label for doc in rename_labels([doc], {"person": "PER"})]
    ['PER']
    """

    def rename(spans: Sequence[Span]) -> tuple[Span, ...]:
        return tuple(span._replace(label=names.get(span.label, span.label)) for span in spans)

    for doc in docs:
        if names:
            if unused:
                unused.difference_update(span.label for span in (*doc.spans, *doc.rejected, *doc.unsure))
            doc = replace(doc, spans=rename(doc.spans), rejected=rename(doc.rejected), unsure=rename(doc.unsure))
        yield doc


def check_labels(data: Mapping[str, Sequence[Document] | None], gazetteer: Iterable[str] = ()) -> list[str]:
    """Raise an error if two inputs name types differently, or seem to; returns sentences about labels that one lacks.

    >>> weak, gold = (Document("1", "Mara", spans=(Span(0, 4, label),)) for label in ("Person", "PERSON"))
    >>> check_labels({"weak": [weak], "gold": [gold]})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lacuner.errors.ConfigError: gold uses PERSON, weak uses Person: if these are the same type, add ...
    """
    labels = {role: set(labels_of(docs)) for role, docs in data.items() if docs is not None}
    labels["the gazetteer"] = set(gazetteer)
    roles = [role for role in ("weak", "the gazetteer", "gold", "dev") if labels.get(role)]
    notes = []
    for number, role in enumerate(roles[1:], 1):
        known = set().union(*(labels[other] for other in roles[:number]))
        for label in sorted(labels[role] - known):
            for other in roles[:number]:
                alike = [name for name in sorted(labels[other] - labels[role]) if _are_alike(label, name)]
                if alike:
                    raise ConfigError(
                        f"{role} uses {label}, {other} uses {alike[0]}: if these are the same type, add "
                        f"--map {label}={alike[0]}; if not, rename one of them: --map {alike[0]}=OTHER_NAME"
                    )
            notes.append(f"only {role} has the label {label}: {_describe_lack(roles[:number], role)}")
        if role in ("gold", "dev") and labels[role].isdisjoint(known):
            own, others = (", ".join(sorted(names)) for names in (labels[role], known))
            raise ConfigError(
                f"{role} has no label in common with the other inputs ({own} instead of {others}): rename those that "
                f"are the same type with --map {min(labels[role])}=NAME, or leave {role} out"
            )
    return notes


def _describe_lack(others: Sequence[str], role: str) -> str:
    lack = f"{' and '.join(others)} {'has' if len(others) == 1 else 'have'} no example of it"
    return f"{lack}, so its entities count as missed on dev" if role == "dev" else lack


def _are_alike(label: str, other: str) -> bool:
    """Whether two labels differ only in case, punctuation, a plural s, or a prefix (`bio:`), or one shortens the other.

    >>> _are_alike("PER", "Person"), _are_alike("bio:Drug", "drugs"), _are_alike("PER", "PLACE")
    (True, False, False)
    """
    left, right = ("".join(filter(str.isalnum, name.casefold())) for name in (label, other))
    if not left or not right:
        return False
    if min(len(left), len(right)) >= MIN_ABBREVIATION and (left.startswith(right) or right.startswith(left)):
        return True
    last = [name.casefold().replace("/", ":").replace("#", ":").rsplit(":", 1)[-1] for name in (label, other)]
    return left == right or left.rstrip("s") == right.rstrip("s") or last[0] == last[1]
