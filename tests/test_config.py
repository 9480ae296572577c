from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from lacuner.config import Config, OnlyWith, load_config, make_config, string_setting
from lacuner.errors import ConfigError


class Inner(Config):
    rate: float = 0.1
    layers: tuple[int, ...] = (1, 2)


class Outer(Config):
    epochs: int = 3
    name: Literal["tiny", "lstm"] = "tiny"
    flag: bool = False
    folder: Path | None = None
    inner: Inner = Inner()


def test_defaults_then_file_then_settings(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('epochs = 5\nname = "lstm"\n[inner]\nrate = 0.5\nlayers = [3]\n')
    config = load_config(Outer, file, ["epochs=7", "inner.rate=1", "flag=true", "folder=some/where"])
    assert config == Outer(
        epochs=7, name="lstm", flag=True, folder=Path("some/where"), inner=Inner(rate=1.0, layers=(3,))
    )
    with pytest.raises(Exception, match="frozen"):
        config.epochs = 1  # type: ignore[misc]


def test_all_mistakes_at_once_with_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('epoch = 5\nflag = "yes"\n[inner]\nraet = 0.5\n')
    with pytest.raises(ConfigError) as caught:
        load_config(Outer, file, ["name=tinny", "epochs=2.5"])
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert "there is no setting 'epoch' (line 1); did you mean 'epochs'?" in message
    assert "there is no setting 'inner.raet' (line 4); did you mean 'rate'?" in message
    assert "flag (line 2)" in message and 'not "yes"' in message
    assert "name" in message and "'tiny' or 'lstm'" in message
    assert "epochs" in message and "not 2.5" in message


def test_a_setting_of_another_table() -> None:
    with pytest.raises(ConfigError, match=r"there is no setting 'rate'; did you mean 'inner\.rate'\?"):
        load_config(Outer, None, ["rate=1"])


@pytest.mark.parametrize("setting", ["epochs", "=3", "epochs.x=3"])
def test_malformed_settings(setting: str) -> None:
    with pytest.raises(ConfigError):
        load_config(Outer, settings=["epochs=3", setting])


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(Outer, tmp_path / "missing.toml")
    (tmp_path / "x.toml").write_text("a = = 1")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(Outer, tmp_path / "x.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(Outer, tmp_path / "x.toml")


class Tables(Config):
    by_name: dict[str, Inner]
    in_order: tuple[Inner, ...] = ()
    perhaps: Inner | None = None


class Bare(Config):
    pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[by_name.mine]\nraet = 1.0", "'by_name.mine.raet' (line 2); did you mean 'rate'?"),
        ("[by_name.mine]\nxyz = 1.0", "'by_name.mine.xyz' (line 2); there are rate, layers"),
        ("[by_name]\n[[in_order]]\n[[in_order]]\nlayrs = [1]", "'in_order.1.layrs' (line 4); did you mean 'layers'?"),
        ("[by_name]\n[perhaps]\nxyz = 1", "'perhaps.xyz' (line 3); there are rate, layers"),
        ("other = 1\n[by_name]", "'other' (line 1); did you mean 'in_order'?"),
    ],
)
def test_an_unknown_setting_in_a_table_of_configs_has_a_hint(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(Tables, tmp_path / "c.toml")
    assert str(caught.value).endswith(f"there is no setting {words}")


def test_unknown_setting_of_a_config_without_settings() -> None:
    with pytest.raises(ConfigError, match="there is no setting 'x'; there are none"):
        load_config(Bare, settings=["x=1"])


class Part(Config):
    kind: str = "crf"
    scheme: Annotated[str, OnlyWith("kind", ("token", "crf"))] = "BIO"
    width: Annotated[int | None, OnlyWith("kind", ("span",))] = None


class Whole(Config):
    part: Part = Part(kind="token", scheme="IO")
    name: str = "tiny"
    pooling: Annotated[str, OnlyWith("name", ("hf",))] = "first"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["part.kind=span", "part.scheme=BIO"], "part.scheme=BIO has no effect together with part.kind=span"),
        (["part.width=3"], "part.width=3 has no effect together with part.kind=token: it is for span"),
        (["pooling=mean"], "pooling=mean has no effect together with name=tiny: it is for hf"),
        (["pooling=mean", "name=run:x"], "pooling=mean has no effect together with name=run:x"),
    ],
)
def test_settings_without_effect_are_refused(settings: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_config(Whole, settings=settings)
    assert load_config(Whole, settings=settings, more_to_come=True)


def test_all_settings_without_effect_are_reported_at_once() -> None:
    with pytest.raises(ConfigError, match=r"part\.width=3 .*; pooling=mean "):
        make_config(Whole, {"part": {"width": 3}, "pooling": "mean"})


@pytest.mark.parametrize(
    "settings",
    [
        ["part.kind=span"],  # the default scheme of this very config does nothing then, and nobody asked for it
        ["part.kind=span", "part.width=3"],
        ["part.kind=crf", "part.scheme=BIOES"],
        ["part.scheme=IO", "part.kind=span"],
        ["name=hf:some/where", "pooling=mean"],
    ],
)
def test_effective_settings_and_defaults_are_accepted(settings: list[str]) -> None:
    assert load_config(Whole, settings=settings)


class NewInner(Config):
    RENAMED: ClassVar = {"w": "annealing_epochs"}
    annealing_epochs: int = 3


class NewOuter(Config):
    RENAMED: ClassVar = {"speed": "inner.annealing_epochs", "angle": "it had no effect on any score"}
    inner: NewInner = NewInner()
    wide: int = 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("inner.w=2", "setting 'inner.w' is now called 'inner.annealing_epochs'"),
        ("speed=2", "setting 'speed' is now called 'inner.annealing_epochs'"),
        ("angle=2", "setting 'angle' no longer exists: it had no effect on any score"),
        ("w=2", "there is no setting 'w'; did you mean 'wide'?"),
    ],
)
def test_a_renamed_setting_is_reported_with_its_new_name(setting: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(NewOuter, settings=[setting])
    assert str(caught.value) == message


def test_a_renamed_setting_in_a_file_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("wide = 2\n[inner]\nw = 5\n")
    with pytest.raises(ConfigError, match=r"setting 'inner.w' \(line 3\) is now called 'inner.annealing_epochs'"):
        load_config(NewOuter, tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epochs = " + "9" * 5000, "this is not TOML: a number has too many digits$"),
        ("epochs = " + "[" * 5000, "nested too deeply"),
        ("epochs = nan", "epochs"),
        ('epochs = "\\ud800"', "this is not TOML"),
        ("x" * (17 << 20), "too large for a file of settings"),
    ],
)
def test_hostile_toml_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        load_config(Outer, tmp_path / "x.toml")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000, "\0"])
def test_hostile_settings_are_one_sentence(value: str) -> None:
    with pytest.raises(ConfigError, match="epochs"):
        load_config(Outer, settings=[f"epochs={value}"])


def test_a_number_of_400_digits_is_one_sentence(tmp_path: Path) -> None:
    """It passed the validation, and ended in an OverflowError where it met another number."""
    (tmp_path / "x.toml").write_text(f"epochs = {'9' * 400}")
    with pytest.raises(ConfigError, match="epochs: this number has too many digits") as caught:
        load_config(Outer, tmp_path / "x.toml")
    assert caught.value.file == str(tmp_path / "x.toml")
    with pytest.raises(ConfigError, match="epochs: this number has too many digits"):
        load_config(Outer, settings=[f"epochs=-{'9' * 20}"])


@pytest.mark.parametrize("text", ["a{} = 1", "[a{}]", "[[ a {} ]]", "x = {{a{} = 1}}", "a{} = {{}}", '"a"{} = 1'])
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(tmp_path: Path, text: str) -> None:
    """200 kB of it took minutes in Python's parser."""
    for part in (".a", ' . "a"', "\t.\t'a'"):
        (tmp_path / "x.toml").write_text(text.format(part * 100_000))
        with pytest.raises(ConfigError, match="a key has more than 50 parts"):
            load_config(Outer, tmp_path / "x.toml")
    with pytest.raises(ConfigError, match="at most 50 parts, not 100,001"):
        load_config(Outer, settings=["a" + ".a" * 100_000 + "=1"])


def test_dots_in_values_are_no_key(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("epochs = 2 # " + "3.5, " * 200 + "a.b " * 200)
    assert load_config(Outer, tmp_path / "x.toml").epochs == 2


def test_a_path_with_nul_is_one_sentence() -> None:
    with pytest.raises(ConfigError):
        load_config(Outer, "a\0b.toml")


class NamedEncoder(Config):
    name: str = "auto"


class Named(Config):
    encoder: NamedEncoder = NamedEncoder()


@pytest.mark.parametrize("name", ["tiny", r"hf:C:\models\bert", 'run:my "best" run', "run:a=b", "true", "1", ""])
def test_a_string_setting_has_any_characters(name: str) -> None:
    """As `--encoder` is passed on: quotes and backslashes in a path are part of it."""
    assert load_config(Named, settings=string_setting("encoder.name", name)).encoder.name == name
