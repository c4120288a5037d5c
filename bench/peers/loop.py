"""The peers' side of the conversation: requests in JSON lines, a timed loop in the engine's own process, answers in JSON lines."""

import gc
import json
import os
import sys
import time

import pyarrow


def serve(version, load, setup, prepare):
    """Answers requests until the input ends.

    load()          brings the data into the engine's tables
    setup(text)     runs a statement that is not timed
    prepare(text)   gives a function that executes a query and returns its materialised result, and a function that
                    turns that result into a pyarrow.Table
    """
    # Only we write to the pipe; what a library prints goes to the log.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message):
        out.write(json.dumps(message) + "\n")
        out.flush()

    begin = time.perf_counter()
    try:
        load()
    except Exception as error:  # reported to the caller, who reports it in the table
        say({"error": f"loading: {error}"})
        return
    say({"ready": True, "version": version, "load_seconds": time.perf_counter() - begin})
    for line in sys.stdin:
        try:
            say(measure(json.loads(line), setup, prepare))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})


def measure(request, setup, prepare):
    for statement in request["setup"]:
        setup(statement)
    execute, to_arrow = prepare(request["query"])
    budget = request["budget_seconds"]
    begin = time.perf_counter()
    for number in range(request["warm_up"]):
        if number > 0 and time.perf_counter() - begin > budget / 4:
            break
        result = execute()
    seconds = []
    gc.collect()
    gc.disable()
    cpu = time.process_time()
    begin = time.perf_counter()
    while len(seconds) < request["repeat"]:
        if len(seconds) >= request["repeat_min"] and time.perf_counter() - begin > budget:
            break
        result = None
        start = time.perf_counter()
        result = execute()
        seconds.append(time.perf_counter() - start)
    cpu = time.process_time() - cpu
    gc.enable()
    return {"seconds": seconds, "cpu_seconds": cpu, "answer": rows(to_arrow(result))}


def rows(table):
    """A table as a list of rows; times as microseconds since the Unix epoch."""
    columns = []
    for column in table.columns:
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pyarrow.types.is_timestamp(column.type):
            column = column.cast(pyarrow.timestamp("us", column.type.tz)).cast(pyarrow.int64())
        if pyarrow.types.is_decimal(column.type):
            column = column.cast(pyarrow.float64())
        columns.append([item.decode() if isinstance(item, bytes) else item for item in column.to_pylist()])
    return [list(row) for row in zip(*columns)]
