"""The shape of a word, which encoders that ignore case do not see."""


def word_shape(word: str) -> int:
    """0 no case, 1 lower case, 2 Capital, 3 CAPITALS, 4 mIxed, 5 has digits, 6 no letters.

    >>> [word_shape(word) for word in ("halden", "Halden", "HALDEN", "B12", "-")]
    [1, 2, 3, 5, 6]
    """
    if any(map(str.isdigit, word)):
        return 5
    letters = sum(map(str.isalpha, word))
    capitals = sum(map(str.isupper, word))
    if not letters:
        return 6
    if word.islower():
        return 1
    if word.isupper():
        return 3 if letters > 1 else 2
    if capitals == 1 and word[0].isupper():
        return 2
    return 4 if capitals else 0
