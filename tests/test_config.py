from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from lacuner.config import Config, load_config
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


@pytest.mark.parametrize("setting", ["epochs", "=3", "epochs.x=3"])
def test_settings_that_are_none(setting: str) -> None:
    with pytest.raises(ConfigError):
        load_config(Outer, settings=["epochs=3", setting])


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(Outer, tmp_path / "missing.toml")
    (tmp_path / "x.toml").write_text("a = = 1")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(Outer, tmp_path / "x.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(Outer, tmp_path / "x.toml")
