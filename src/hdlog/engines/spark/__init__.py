"""The distributed engine; importing anything of it says so where Spark is not installed."""

from hdlog.errors import UsageError

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    raise UsageError(f"Spark is not installed ({error}); get it with: pip install 'hdlog[spark]'") from None
