"""Two machines on this one: network namespaces, joined by a virtual cable. Needs root and iproute2."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

ADDRESSES = ("10.217.26.1", "10.217.26.2")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def two_hosts() -> Iterator[dict[str, str]]:
    """The names of two namespaces with `ADDRESSES`, each with its network interface; skips where there are none."""
    if not shutil.which("ip") or os.geteuid():
        pytest.skip("network namespaces need root and iproute2")
    hosts = [f"lacuner{os.getpid()}-{number}" for number in (1, 2)]
    cables = [f"lac{os.getpid()}{end}" for end in "ab"]  # names have at most 15 characters
    try:
        try:
            for host in hosts:
                _run("ip", "netns", "add", host)
            _run(
                "ip", "link", "add", cables[0], "netns", hosts[0], "type", "veth", "peer", cables[1], "netns", hosts[1]
            )
            for host, cable, address in zip(hosts, cables, ADDRESSES, strict=True):
                _run("ip", "-n", host, "address", "add", f"{address}/24", "dev", cable)
                _run("ip", "-n", host, "link", "set", cable, "up")
                _run("ip", "-n", host, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces are not allowed here: {error.stderr.decode().strip()}")
        yield dict(zip(hosts, cables, strict=True))
    finally:
        for host in hosts:
            with suppress(subprocess.CalledProcessError):
                _run("ip", "netns", "delete", host)


def on_host(host: str, command: list[str], **options: object) -> subprocess.Popen[str]:
    """Start a program on one of the machines."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
    return subprocess.Popen(["ip", "netns", "exec", host, *command], **pipes)  # type: ignore[call-overload,no-any-return]
