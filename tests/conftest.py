import os

os.environ["HDLOG_CHECKED"] = "1"  # before the engine is imported
os.environ["HDLOG_KERNELS"] = "compiled"  # tiny inputs, too; `make test-no-jit` runs them as Python
# Of the S3 server of tests; processes of Spark have them, too.
os.environ |= {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}

from hypothesis import HealthCheck, Phase, settings

for name, examples in (("default", 150), ("quick", 30), ("spark", 2), ("long", 20_000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=name != "long",  # the same programs in every run; `make fuzz` draws others
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
