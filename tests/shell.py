"""Commands, called in this process."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from hdlog.commands.main import app


def call(*arguments: str | Path) -> Result:
    """A command that must end well."""
    outcome = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome
