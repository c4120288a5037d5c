"""What can go wrong, by what to do about it."""

from __future__ import annotations


class LanesError(Exception):
    """Everything that this package raises on its own account."""


class DataError(LanesError, ValueError):
    """The data cannot be written as a batch: mend it. Nothing has been sent."""


class _Sending(LanesError):
    """Sending failed. Requests of the same call that were acknowledged before it stay stored."""

    def __init__(self, message: str, rows_acknowledged: int = 0) -> None:
        super().__init__(message)
        self.rows_acknowledged = rows_acknowledged
        """The first so many rows of the call are stored; set by :meth:`lanes_client.Client.append`."""


class Refused(_Sending):
    """The gateway will not take the request, however often it is sent. Nothing of this request is stored."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason
        """The gateway's own words."""


class BadRequest(Refused):
    """400: the batch does not fit the table, or a row breaks a constraint."""


class Forbidden(Refused):
    """403: the gateway's role may not insert into the table."""


class NotFound(Refused):
    """404: there is no such table."""


class Unavailable(_Sending):
    """No acknowledgement after all retries. The request is stored or not: call again with the same ``key`` to have it stored once."""


def refused(status: int, reason: str) -> Refused:
    """The error for a status that repeating does not change."""
    kinds = {400: BadRequest, 403: Forbidden, 404: NotFound}
    return kinds.get(status, Refused)(status, reason)
