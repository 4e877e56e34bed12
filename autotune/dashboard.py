"""optuna-dashboard on a storage, for this machine only."""

from __future__ import annotations

import json
import logging
import re
import socketserver
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from autotune.errors import InvalidInput, Unsupported
from autotune.storage import Storage, open_storage
from autotune.study import list_studies, read_study

HOST = "127.0.0.1"
DEFAULT_PORT = 8080

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_STUDY_PATH = re.compile(r"/api/studies/(\d+)")

_logger = logging.getLogger(__name__)


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """Several requests at once: the page asks for trials while it waits for importances."""

    daemon_threads = True


class _Handler(WSGIRequestHandler):
    """Requests go to the log, not to the terminal."""

    def log_message(self, format: str, *arguments: Any) -> None:
        _logger.debug(format, *arguments)


class FeasibleBest:
    """Corrects which trials the dashboard calls best.

    optuna-dashboard (0.21) draws infeasible trials in grey, but picks the best ones without a
    look at their constraints, so that its list of trials praises what cannot be used.
    """

    def __init__(self, application: Application, storage: Storage) -> None:
        """Wrap the dashboard.

        Args:
            application: The dashboard's WSGI application.
            storage: What it shows.
        """
        self._application = application
        self._storage = storage
        self._serialized: dict[int, dict[int, Any]] = {}

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Pass a request on; of a study's details replace ``best_trials``."""
        match = _STUDY_PATH.fullmatch(environ.get("PATH_INFO", ""))
        if match is None or environ.get("REQUEST_METHOD") != "GET":
            return self._application(environ, start_response)
        status, headers, body = self._ask(environ)
        if status.startswith("200"):
            body = self._corrected(int(match.group(1)), body, environ)
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        start_response(status, [*kept, ("Content-Length", str(len(body)))])
        return [body]

    def _corrected(self, study_id: int, body: bytes, environ: dict[str, Any]) -> bytes:
        numbers = self._best_numbers(study_id)
        if numbers is None:
            return body
        document = json.loads(body)
        # Only trials that are new to the page are sent; the best ones may have come before.
        known = self._serialized.setdefault(study_id, {})
        known |= {trial["number"]: trial for trial in document["trials"]}
        if not known.keys() >= set(numbers):
            # bottle keeps the parsed query in the environment.
            fresh = {name: v for name, v in environ.items() if not name.startswith("bottle.")}
            _, _, whole = self._ask({**fresh, "QUERY_STRING": "after=0"})
            known |= {trial["number"]: trial for trial in json.loads(whole)["trials"]}
        document["best_trials"] = [known[number] for number in numbers if number in known]
        return json.dumps(document).encode()

    def _best_numbers(self, study_id: int) -> list[int] | None:
        """The trials that are best; None for a study that this package did not make."""
        records = [each for each in list_studies(self._storage) if each.study_id == study_id]
        if not records:
            return None
        return sorted(t.number for t in read_study(self._storage, records[0].storage_name).front())

    def _ask(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        started: list[Any] = []

        def start_response(status: str, headers: Any, _: object = None) -> None:
            started[:] = [status, list(headers)]

        body = b"".join(self._application(environ, start_response))
        return started[0], started[1], body


def make_dashboard(storage: str, *, port: int = DEFAULT_PORT) -> WSGIServer:
    """Prepare the dashboard's server; ``serve_forever()`` starts it.

    Args:
        storage: One that exists.
        port: Of this machine's loopback address; 0 for any free one.

    Returns:
        A server whose ``server_port`` is the port it listens on.

    Raises:
        Unsupported: If optuna-dashboard is not installed; names the extra.
        StorageRefused: If there is no usable storage.
        InvalidInput: If the port is taken.
    """
    app = make_application(storage)
    try:
        return make_server(HOST, port, app, server_class=_Server, handler_class=_Handler)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            "--port", f"must be a free port of this machine, got {port} ({error}); try --port 0"
        ) from error


def make_application(storage: str) -> Application:
    """The dashboard as a WSGI application; see `make_dashboard`."""
    try:
        from optuna_dashboard import wsgi
    except ImportError as error:
        raise Unsupported(
            "the dashboard needs optuna-dashboard, which is not installed; "
            "pip install 'scale-across-autotune[dashboard]'"
        ) from error
    open_storage(storage, read_only=True).close()  # never make one just to look at it
    opened = open_storage(storage)
    return FeasibleBest(wsgi(opened.optuna()), opened)
