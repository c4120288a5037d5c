"""A gateway and its database, started by `cargo dev test python`. Their addresses are in the environment."""

import itertools
import os
import subprocess

import pytest

import lanes_client

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def sql():
    """Runs statements as the superuser. Returns the rows of the last one as tuples of text."""

    def run(text):
        command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", os.environ["LANES_TEST_DATABASE"], "-c", text]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return [tuple(line.split("|")) for line in done.stdout.splitlines()]

    return run


@pytest.fixture
def client():
    with lanes_client.Client(os.environ["LANES_TEST_URL"]) as connected:
        yield connected


@pytest.fixture
def table(sql, request):
    """Creates a table with a unique name and these columns, into which the gateway may insert."""

    def make(columns, access_method="lanes"):
        name = f"{request.node.originalname}_{next(NUMBERS)}"
        sql(f"CREATE TABLE {name} ({columns}) USING {access_method}; GRANT INSERT ON {name} TO lanes_gateway")
        return name

    return make
