"""An S3 server on this machine, for the time of a test run."""

from __future__ import annotations

import atexit
import logging
import uuid
from functools import cache

import boto3
from moto.server import ThreadedMotoServer


@cache
def _start() -> tuple[str, int]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    atexit.register(server.stop)
    host, port = server.get_host_and_port()
    return host, port


class Bucket:
    """A new bucket; URIs name the server, since processes of Spark have been started before it."""

    def __init__(self) -> None:
        self.host, self.port = _start()
        self.name = f"b-{uuid.uuid4().hex[:12]}"
        self.client = boto3.client(
            "s3", endpoint_url=f"http://{self.host}:{self.port}", region_name="us-east-1"
        )
        self.client.create_bucket(Bucket=self.name)

    def uri(self, path: str) -> str:
        return (
            f"s3://{self.name}/{path}?endpoint_override={self.host}:{self.port}&scheme=http&region=us-east-1"
        )

    def put(self, path: str, data: bytes) -> str:
        self.client.put_object(Bucket=self.name, Key=path, Body=data)
        return self.uri(path)

    def names(self) -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.name).get("Contents", [])
        return [entry["Key"] for entry in found]
