"""chDB (ClickHouse in the process): tables of engine Memory, symbols and services with low cardinality.

Usage: chdb_peer.py <folder of the Parquet files> <threads>
"""

import sys

import chdb
import pyarrow
from chdb import session

from loop import serve

folder, threads = sys.argv[1], int(sys.argv[2])
connection = session.Session()
TABLES = {
    "trades": "ts DateTime64(6, 'UTC'), sym LowCardinality(String), price Float64, size Int32",
    "quotes": "ts DateTime64(6, 'UTC'), sym LowCardinality(String), bid Float64, ask Float64",
    "events": "ts DateTime64(6, 'UTC'), duration Float32, is_error Bool, service LowCardinality(String)",
}


def load():
    connection.query(f"SET max_threads = {threads}")
    for table, columns in TABLES.items():
        names = ", ".join(column.split()[0] for column in columns.split(", ") if "'" not in column.split()[0])
        connection.query(f"CREATE TABLE {table} ({columns}) ENGINE = Memory")
        # One thread, so that rows keep their order.
        connection.query(
            f"INSERT INTO {table} SELECT {names} FROM file('{folder}/{table}.parquet', Parquet) SETTINGS max_threads = 1"
        )


def prepare(query):
    return lambda: connection.query(query, "ArrowStream"), lambda result: pyarrow.ipc.open_stream(result.bytes()).read_all()


serve(f"chDB {chdb.__version__}", load, connection.query, prepare)
