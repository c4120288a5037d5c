"""The exceptions of this package, by what the caller should do."""

from __future__ import annotations


class LanesError(Exception):
    """The base class of all exceptions that this package defines."""


class DataError(LanesError, ValueError):
    """The data cannot be written as a batch and has to be corrected. Nothing has been sent."""


class _Sending(LanesError):
    """Sending failed. Requests of the same call that were acknowledged before remain stored."""

    def __init__(self, message: str, rows_acknowledged: int = 0) -> None:
        super().__init__(message)
        self.rows_acknowledged = rows_acknowledged
        """The number of rows from the start of the call that are stored. Set by :meth:`lanes_client.Client.append`."""


class Refused(_Sending):
    """The gateway refuses the request, and would refuse it again. Nothing of this request is stored."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason
        """The message of the gateway."""


class BadRequest(Refused):
    """400: the batch does not fit the table, or a row violates a constraint."""


class Forbidden(Refused):
    """403: the gateway's role may not insert into the table."""


class NotFound(Refused):
    """404: the table does not exist."""


class Unavailable(_Sending):
    """There was no acknowledgement after all retries.

    It is unknown whether the request is stored: call again with the same ``key`` to store it once.
    """


def refused(status: int, reason: str) -> Refused:
    """Returns the exception for a status that a repetition would not change."""
    kinds = {400: BadRequest, 403: Forbidden, 404: NotFound}
    return kinds.get(status, Refused)(status, reason)
