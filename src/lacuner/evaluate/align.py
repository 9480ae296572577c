"""Align the documents of a corpus with gold: the same text on both sides."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator

from lacuner.data import Document
from lacuner.errors import CorpusError


def align(gold: Iterable[Document], docs: Iterable[Document]) -> Iterator[tuple[Document, Document]]:
    """Each gold document with the document that has the same text, in the order of gold.

    Documents that exist on one side only are an error: a score of half of the documents would look like any other.
    While both sides come in the same order nothing is held in memory. From the first difference on, documents are
    matched by text; where several have the same text, the id decides.

    >>> gold, predicted = [Document("a", "one"), Document("b", "two")], [Document("b", "two"), Document("a", "one")]
    >>> [(left.id, right.id) for left, right in align(gold, predicted)]
    [('a', 'a'), ('b', 'b')]
    """
    waiting = _Waiting(docs)
    for gold_doc in gold:
        doc = waiting.take(gold_doc)
        if doc is None:
            namesake = waiting.by_id(gold_doc.id)
            problem = f"document {gold_doc.id!r} is not in the other corpus: no document there has its text"
            raise _error(gold_doc, _difference(gold_doc, namesake, "other corpus") if namesake else problem)
        yield gold_doc, doc
    if (left_over := waiting.first()) is not None:
        raise _error(left_over, f"document {left_over.id!r} is not in gold: no document there has its text")


def align_partial(gold: Iterable[Document], docs: Iterable[Document]) -> Iterator[tuple[Document | None, Document]]:
    """Each document with its gold, or None, where gold covers only some of the documents; in the order of `docs`.

    Gold documents that are not among `docs` are an error. Matching and memory are those of `align`.

    >>> docs = [Document("a", "one"), Document("b", "two")]
    >>> [(gold and gold.id, doc.id) for gold, doc in align_partial([Document("1", "two")], docs)]
    [(None, 'a'), ('1', 'b')]
    """
    waiting = _Waiting(gold)
    for doc in docs:
        gold_doc = waiting.take(doc)
        namesake = None if gold_doc or doc.id.isdecimal() else waiting.by_id(doc.id)
        if namesake is not None:
            raise _error(namesake, "gold " + _difference(namesake, doc, "corpus"))
        yield gold_doc, doc
    if (left_over := waiting.first()) is not None:
        raise _error(left_over, f"gold document {left_over.id!r} is not in the corpus: no document there has its text")


def gold_by_text(gold: Iterable[Document]) -> dict[str, Document]:
    """Gold documents by their text, without texts that gold annotates in two different ways.

    >>> gold = [Document("1", "one"), Document("2", "one"), Document("3", "two")]
    >>> sorted(gold_by_text(gold))
    ['one', 'two']
    """
    by_text: dict[str, Document] = {}
    ambiguous: set[str] = set()
    for doc in gold:
        other = by_text.setdefault(doc.text, doc)
        if {span.key for span in doc.spans} != {span.key for span in other.spans}:
            ambiguous.add(doc.text)
    return {text: doc for text, doc in by_text.items() if text not in ambiguous}


class _Waiting:
    """Documents that still wait for their counterpart; read on demand while they come in the order of the requests."""

    def __init__(self, docs: Iterable[Document]) -> None:
        self._docs = iter(docs)
        self._same_order = True
        self._next = next(self._docs, None)
        # by text and id; ordered, because the first of a plain dict is slow to find when many before it were removed
        self._by_text: dict[str, OrderedDict[str, deque[Document]]] = {}
        self._by_id: dict[str, Document] = {}

    def take(self, doc: Document) -> Document | None:
        """The document with the same text, removed from those that wait."""
        following = self._next
        if self._same_order and following is not None:
            if following.text == doc.text and _may_be_same(following.id, doc.id):
                self._next = next(self._docs, None)
                return following
            self._same_order = False
            for other in (following, *self._docs):
                self._by_text.setdefault(other.text, OrderedDict()).setdefault(other.id, deque()).append(other)
                self._by_id[other.id] = other
        same_text = self._by_text.get(doc.text)
        if not same_text:
            return None
        same_id = doc.id if doc.id in same_text else next(iter(same_text))
        counterpart = same_text[same_id].popleft()
        if not same_text[same_id]:
            del same_text[same_id]
        self._by_id.pop(counterpart.id, None)
        return counterpart

    def by_id(self, id_: str) -> Document | None:
        """The waiting document with this id."""
        return self._by_id.get(id_)

    def first(self) -> Document | None:
        """A document that was not taken."""
        if self._same_order:
            return self._next
        return next((docs[0] for same_text in self._by_text.values() for docs in same_text.values()), None)


def _may_be_same(id_: str, other: str) -> bool:
    """Whether two ids may denote one document; ids that are plain numbers were assigned by the reader."""
    return id_ == other or id_.isdecimal() or other.isdecimal()


def _difference(gold: Document, doc: Document, where: str) -> str:
    """How the texts of two documents with the same id differ."""
    pairs = enumerate(zip(gold.text, doc.text, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(gold.text), len(doc.text)))
    if "".join(gold.text.split()) == "".join(doc.text.split()):
        return (
            f"document {gold.id!r} differs in white space in the {where}, from character {at} on; column files do not "
            "keep white space: evaluate the run itself, or write predictions to .jsonl"
        )
    return f"document {gold.id!r} differs in text in the {where}, from character {at} on"


def _error(doc: Document, problem: str) -> CorpusError:
    file, line = (doc.where.file, doc.where.line) if doc.where else (None, None)
    return CorpusError(problem, file=file, line=line)
