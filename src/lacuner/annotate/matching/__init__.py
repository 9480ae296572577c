"""Find the entries of a gazetteer in text. The idea, without the speed, is ten lines:

    normal = normalise(text)                                   # one case, one dash, one quote, single spaces, NFC
    hits = []
    for term, start, end in automaton.find(normal.text):       # Aho-Corasick: every occurrence of every term
        if not is_word_edge(start) or not is_word_edge(end):   # `cat` does not occur in `cats`
            continue
        start, end = to_original(normal.changes, start, end)   # offsets of the text as it was given
        hits.append((term, start, end))
    return select_longest(hits)                                # leftmost first, then longest

`matcher.py` is this loop, with the options for case, overlaps and spacing. Around it:

- `terms.py`: the entries grouped by normal form, in little memory. One term may stand for several entries. The case of
  acronyms and of English words in `common_words.txt` must agree with that of the entry.
- `normalise.py`: the normal form of a text, the way back to its offsets, and which characters make up words.
- `automaton.py`: Aho-Corasick by ahocorasick-rs, and three tricks that make it faster.
"""
