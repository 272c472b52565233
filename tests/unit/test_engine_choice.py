"""What commands are told of where to run."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from hdlog.commands.options import EngineChoice, engine_choice
from hdlog.engines.spark import session
from hdlog.errors import UsageError
from hdlog.operations.work import Settings


@click.command()
@engine_choice
def where_to(where: EngineChoice) -> None:
    settings = where.settings(3.0, lenient=True)
    assert settings.lenient
    print(settings.engine, settings.master, settings.memory, dict(settings.spark_settings))


def run(*arguments: str) -> Any:
    return CliRunner().invoke(where_to, arguments)


def test_settings_of_spark_are_handed_on() -> None:
    told = run("--engine", "spark", "--master", "yarn", "--conf", "a.b=c=d", "--conf", "e=").output
    assert told == "spark yarn 3.0 {'a.b': 'c=d', 'e': ''}\n"
    assert run().output == "auto local[*] 3.0 {}\n"


@pytest.mark.parametrize("wrong", ["nothing", "=value"])
def test_what_is_no_setting_is_refused(wrong: str) -> None:
    told = run("--conf", wrong)
    assert told.exit_code == 2
    assert f"{wrong!r} is no KEY=VALUE" in told.output


def test_they_reach_the_session_that_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def start(*arguments: Any) -> Any:
        asked.append(arguments)
        raise UsageError("not here")

    monkeypatch.setattr(session, "start_session", start)
    with pytest.raises(UsageError):
        Settings("spark", "yarn", 4.0, spark_settings={"a": "b"}).session()
    assert asked == [("yarn", "2g", {"a": "b"})]
