"""The explorer's server: who is let in, and which move counts."""

import http.client
import json
import threading

import pytest

from frpcag.report.server import HOST, ExplorerServer, Superseded


class Counting:
    """A session that notes its moves; a move that says "wait" goes on until it is superseded."""

    def __init__(self):
        self.moves, self.waiting, self.at_once, self.most = [], threading.Event(), 0, 0

    def page(self):
        return "<!DOCTYPE html><title>page</title>"

    def solve(self, move, check):
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            self.moves.append(move)
            if move.get("bad"):
                raise ValueError("bad is not a number.")
            if move.get("broken"):
                raise ZeroDivisionError
            while move.get("wait"):
                self.waiting.set()
                check()
            return {"sections": {}}
        finally:
            self.at_once -= 1

    def diagnose(self, move, check):
        check()
        return {"sections": {"theory": "more"}}

    def cells(self, move, drawing):
        with drawing:
            return {"sections": {"cells": "map"}}


@pytest.fixture
def session():
    return Counting()


@pytest.fixture
def server(session):
    server = ExplorerServer(session)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.end()
    thread.join()


def ask(server, method="POST", path="solve", *, body=None, host=None, secret=None, **headers):
    """Return status and answer of one request, with the headers that the page would send unless told otherwise."""
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=30)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({}) if body is None else body
    secret = server.secret if secret is None else secret
    connection.putrequest(method, f"/{secret}/{path}", skip_host=True)
    connection.putheader("Host", host or f"{HOST}:{server.server_port}")
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
        connection.putheader(name, value)
    connection.endheaders(body.encode() if method == "POST" else None)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, json.loads(content) if response.headers["Content-Type"] == "application/json" else content.decode()


def move(**values):
    return json.dumps(values)


def test_it_listens_on_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.secret}/"
    assert len(server.secret) >= 32


def test_the_page_is_served_to_whoever_types_its_address(server):
    response, page = ask(server, "GET", "")
    assert (response.status, page) == (200, "<!DOCTYPE html><title>page</title>")
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in response.headers
    assert ask(server, "GET", "", host=f"localhost:{server.server_port}", Sec_Fetch_Site="none")[0].status == 200


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "solve"), ("POST", "diagnose")])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_other_names_and_other_sites_are_refused(server, session, method, path, headers):
    assert ask(server, method, path, **headers)[0].status == 403
    assert session.moves == []


def test_its_own_page_is_let_in(server):
    origin = f"http://{HOST}:{server.server_port}"
    assert ask(server, Origin=origin, Sec_Fetch_Site="same-origin")[0].status == 200


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "solve")])
def test_without_the_secret_there_is_nothing(server, session, method, path):
    assert ask(server, method, path, secret="guess")[0].status == 404
    assert session.moves == []


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"Content_Type": "text/plain"}, "application/json"),
        ({"body": "{"}, "not JSON"),
        ({"body": "[1]"}, "JSON object"),
        ({"body": '{"a": "' + "x" * 5000 + '"}'}, "at most 4096 bytes"),
        ({"Content_Length": "many"}, "at most 4096 bytes"),
        ({"body": '{"bad": 1}'}, "bad is not a number"),
        ({"path": "diagnose"}, "ticket is missing"),
    ],
)
def test_bad_requests_are_told_why(server, request_, message):
    response, answer = ask(server, **request_)
    assert response.status == 400
    assert message in answer["error"]


def test_a_failure_is_told_without_its_details_and_the_server_goes_on(server, caplog):
    response, answer = ask(server, body=move(broken=True))
    assert response.status == 500
    assert "in the terminal" in answer["error"]
    assert "ZeroDivisionError" in caplog.text
    assert ask(server)[0].status == 200


def test_the_latest_move_wins_and_one_solve_runs_at_a_time(server, session):
    answers = {}

    def first():
        answers["first"] = ask(server, body=move(wait=True, name="first"))

    thread = threading.Thread(target=first)
    thread.start()
    assert session.waiting.wait(30)
    answers["second"] = ask(server, body=move(name="second"))
    thread.join(30)
    assert answers["first"][0].status == 409
    assert answers["second"][0].status == 200
    assert [made["name"] for made in session.moves] == ["first", "second"]
    assert session.most == 1


def test_diagnostics_come_for_the_latest_move_only(server):
    old, new = (ask(server)[1]["ticket"] for _ in range(2))
    assert ask(server, path="diagnose", body=move(ticket=old))[0].status == 409
    assert ask(server, path="diagnose", body=move(ticket=new))[1]["sections"] == {"theory": "more"}


def test_wrong_cells_need_no_ticket(server):
    response, answer = ask(server, path="cells", body=move())
    assert (response.status, answer) == (200, {"sections": {"cells": "map"}})


def test_ending_stops_the_solve_under_way(session):
    server = ExplorerServer(session)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(server, body=move(wait=True))[0].status))
    asking.start()
    assert session.waiting.wait(30)
    server.shutdown()
    server.end()
    thread.join(30)
    asking.join(30)
    assert answers == [409]


def test_a_check_raises_once_superseded(server, session):
    ticket = server.solve({})["ticket"]
    server.solve({})
    with pytest.raises(Superseded):
        server.diagnose({"ticket": ticket})
