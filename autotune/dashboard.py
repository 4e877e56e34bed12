"""optuna-dashboard on a storage, for this machine only."""

from __future__ import annotations

import logging
import socketserver
from collections.abc import Callable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from autotune.errors import InvalidInput, Unsupported
from autotune.storage import open_storage

HOST = "127.0.0.1"
DEFAULT_PORT = 8080

_logger = logging.getLogger(__name__)


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """Several requests at once: the page asks for trials while it waits for importances."""

    daemon_threads = True


class _Handler(WSGIRequestHandler):
    """Requests go to the log, not to the terminal."""

    def log_message(self, format: str, *arguments: Any) -> None:
        _logger.debug(format, *arguments)


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
    app = _application(storage)
    try:
        return make_server(HOST, port, app, server_class=_Server, handler_class=_Handler)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            "--port", f"must be a free port of this machine, got {port} ({error}); try --port 0"
        ) from error


def _application(storage: str) -> Callable[..., Any]:
    try:
        from optuna_dashboard import wsgi
    except ImportError as error:
        raise Unsupported(
            "the dashboard needs optuna-dashboard, which is not installed; "
            "pip install 'scale-across-autotune[dashboard]'"
        ) from error
    open_storage(storage, read_only=True).close()  # never make one just to look at it
    application: Callable[..., Any] = wsgi(open_storage(storage).optuna())
    return application
