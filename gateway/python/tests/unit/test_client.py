"""The client with a scripted server."""

import contextlib
import http.server
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from reader import read

import lanes_client
from lanes_client import client as client_module


class Server(http.server.ThreadingHTTPServer):
    """Answers each request with the next entry of ``script``: a status with headers and text, or None to close the connection. Afterwards answers 204."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = []
        self.requests = []
        self.connections = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.connections += 1

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        step = self.server.script.pop(0) if self.server.script else (204, {}, "")
        if step is None:
            self.close_connection = True
            return
        status, headers, text = step
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        if status != 204:
            self.wfile.write(text.encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that the client would have made."""
    slept = []
    monkeypatch.setattr(client_module.time, "sleep", slept.append)
    return slept


def connect(server, **settings):
    return contextlib.closing(lanes_client.Client(f"http://127.0.0.1:{server.server_port}", **settings))


def keys(server):
    return [headers["Idempotency-Key"] for _, headers, _ in server.requests]


def test_a_request_says_table_format_level_and_key(server):
    with connect(server, ack="memory", headers={"X-Mine": "1"}) as client:
        assert client.append("market.trades", {"price": [1.5, 2.5], "sym": ["a", "b"]}) == 2
    [(path, headers, body)] = server.requests
    assert path == "/api/v1/events/market.trades"
    assert headers["Content-Type"] == "application/x-flatbuffers"
    assert (headers["X-Lanes-Ack"], headers["X-Mine"]) == ("memory", "1")
    assert len(headers["Idempotency-Key"]) == 36
    assert read(body) == {"price": ("FLOAT64", [1.5, 2.5]), "sym": ("TEXT", ["a", "b"])}


def test_many_rows_are_many_requests_over_one_connection(server):
    with connect(server, rows_max=10) as client:
        assert client.append("t", {"n": np.arange(25)}) == 25
    assert [row for _, _, body in server.requests for row in read(body)["n"][1]] == list(range(25))
    assert len(set(keys(server))) == 3
    assert server.connections == 1


def test_nothing_is_sent_for_no_rows(server):
    with connect(server) as client:
        assert client.append("t", {"n": []}) == 0
    assert server.requests == []


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again_with_the_same_key(server, pauses, status):
    server.script = [(status, {"Retry-After": "2"}, "later"), (status, {}, "later")]
    with connect(server) as client:
        assert client.append("t", {"n": [1]}) == 1
    assert len(server.requests) == 3 and len(set(keys(server))) == 1
    assert 2.0 <= pauses[0] <= 2.2 and pauses[1] <= 0.2


def test_retry_after_as_a_date_and_nonsense(server, pauses):
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 30))
    server.script = [(503, {"Retry-After": date}, ""), (503, {"Retry-After": "soon"}, ""), (503, {"Retry-After": "9999"}, "")]
    with connect(server) as client:
        client.append("t", {"n": [1]})
    assert 20 < pauses[0] < 34 and pauses[1] < 1 and pauses[2] < 70


def test_a_lost_connection_is_made_anew_with_the_same_key(server, pauses):
    with connect(server) as client:
        client.append("t", {"n": [0]})
        server.script = [None, None]
        client.append("t", {"n": [1]})
    assert len(server.requests) == 4 and len(set(keys(server)[1:])) == 1


def test_retries_end(server, pauses):
    server.script = [(503, {}, "the database is away")] * 9
    with connect(server, retries=2) as client, pytest.raises(lanes_client.Unavailable, match="3 attempts.*503: the database is away"):
        client.append("t", {"n": [1]})
    assert len(server.requests) == 3


def test_a_server_that_is_not_there(pauses):
    client = lanes_client.Client("http://127.0.0.1:1", retries=1)
    with pytest.raises(lanes_client.Unavailable, match="2 attempts"):
        client.append("t", {"n": [1]})


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, lanes_client.BadRequest), (403, lanes_client.Forbidden), (404, lanes_client.NotFound), (415, lanes_client.Refused), (500, lanes_client.Refused)],
)
def test_a_refusal_is_told_in_the_servers_words_and_not_repeated(server, pauses, status, kind):
    server.script = [(204, {}, ""), (status, {}, 'table t has no column "n"\n')]
    with connect(server, rows_max=1) as client, pytest.raises(kind) as caught:
        client.append("t", {"n": [1, 2, 3]})
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason) == (status, 'table t has no column "n"')
    assert caught.value.rows_acknowledged == 1
    assert len(server.requests) == 2 and pauses == []


def test_a_named_call_has_the_same_keys_again(server):
    with connect(server, rows_max=1) as client:
        for _ in range(2):
            client.append("t", {"n": [1, 2]}, key="import-7")
    assert keys(server) == ["import-7/0", "import-7/1"] * 2


def test_arrow_is_sent_as_it_is(server):
    table = pa.table({"n": pa.array([1, None, 3], pa.int32()), "s": pa.array(["a", "b", "a"]).dictionary_encode()})
    with connect(server, rows_max=2) as client:
        assert client.append("t", table) == 3
        assert client.append("t", table.to_batches()[0]) == 3
    bodies = [body for _, headers, body in server.requests if headers["Content-Type"] == "application/vnd.apache.arrow.stream"]
    assert len(bodies) == 4
    assert pa.concat_tables(pa.ipc.open_stream(body).read_all() for body in bodies[:2]).to_pylist() == table.to_pylist()


def test_arrow_is_split_by_bytes_too(server):
    table = pa.table({"s": ["x" * 1_000] * 20})
    with connect(server, bytes_max=4_000) as client:
        assert client.append("t", table) == 20
    assert len(server.requests) > 5 and all(len(body) <= 4_000 for _, _, body in server.requests)


def test_threads_share_a_client(server):
    with connect(server) as client:
        threads = [threading.Thread(target=lambda: [client.append("t", {"n": [1]}) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(server.requests) == 80 and server.connections <= 4


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ({"data": [1]}, {}, "data is list"),
        ({"data": {"n": [1]}, "types": {"m": "int16"}}, {}, "not in the data: m"),
        ({"data": {"n": [1]}, "types": {"n": "int"}}, {}, "'int' is not a column type"),
        ({"data": {"n": [1]}, "key": ""}, {}, "printable"),
        ({"data": {"n": [1], "": [1]}}, {}, "1 to 63 bytes"),
        ({"data": pa.table({"n": [1]}), "types": {"n": "int16"}}, {}, "sent unchanged"),
    ],
)
def test_wrong_use_is_reported_before_anything_is_sent(server, arguments, settings, message):
    with connect(server, **settings) as client, pytest.raises((ValueError, TypeError), match=message):
        client.append("t", **arguments)
    assert server.requests == []


@pytest.mark.parametrize("settings", [{"url": "127.0.0.1:9201"}, {"url": "ftp://h"}, {"ack": "disk"}, {"rows_max": 0}, {"retries": -1}])
def test_wrong_settings(settings):
    with pytest.raises(ValueError):
        lanes_client.Client(**{"url": "http://127.0.0.1:1", **settings})
