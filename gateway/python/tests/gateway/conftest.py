"""A gateway and its database, which `cargo dev test python` has started: their addresses are in the environment."""

import itertools
import os
import subprocess

import pytest

import lanes_client

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def sql():
    """Runs statements as the superuser; the last one's rows, as tuples of text."""

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
    """Makes a table, of a name of its own, with these columns, that the gateway may insert into."""

    def make(columns, access_method="lanes"):
        name = f"{request.node.originalname}_{next(NUMBERS)}"
        sql(f"CREATE TABLE {name} ({columns}) USING {access_method}; GRANT INSERT ON {name} TO lanes_gateway")
        return name

    return make
