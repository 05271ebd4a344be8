"""The rounds of NVFlare's workflows whose server fires no event at the start of a round.

- Cyclic, cross-site evaluation and others: `result_processed` after each client's result. Its round is that of the
  task, or the number of the client's results for this task so far.
- Workflows that the clients control (CCWF): `round_started` when a client first reports the round. The clients send
  their reports with each request for a task.
"""

from __future__ import annotations

from ._marking import number_or_none, text_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

START = "_start_workflow"
RESULT_PROCESSED = "_after_process_submission"
TASK_REQUESTED = "_before_process_task_request"


class Workflow:
    """The workflow that this server runs."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._announces_rounds = False
        self._results: dict[tuple[str | None, str | None], int] = {}
        self._reported_round: int | None = None

    def note_round(self) -> None:
        """NVFlare has announced a round, so the stages of a round are marked at its events."""
        self._announces_rounds = True

    def round_of_result(self, ctx: Any) -> int | None:
        """The round of the result that was just processed, or None if it needs no marker."""
        if self._announces_rounds:
            return None
        task, client = text_or_none(ctx.get_prop("__task_name__", None)), _client_of(ctx)
        count = self._results.get((task, client), 0)
        self._results[task, client] = count + 1
        result = ctx.get_prop("__task_result__", None)
        headers = result.get("__headers__") if isinstance(result, dict) else None
        # The task's cookies come back with each result.
        cookies = headers.get("__cookie_jar__") if isinstance(headers, dict) else None
        round = number_or_none(cookies.get("contribution_round")) if isinstance(cookies, dict) else None
        return count if round is None else round

    def round_of_report(self, ctx: Any) -> int | None:
        """The round that a client reports, if no client has reported it before."""
        peer = ctx.get_peer_context()
        reports = None if peer is None else peer.get_prop("cwf.status_reports", None)
        if self._announces_rounds or not isinstance(reports, dict):
            return None
        report = reports.get(ctx.get_prop("__workflow__", None))
        round = number_or_none(report.get("cwf.last_round")) if isinstance(report, dict) else None
        if round is None or (self._reported_round is not None and round <= self._reported_round):
            return None
        self._reported_round = round
        return round


def _client_of(ctx: Any) -> str | None:
    peer = ctx.get_peer_context()
    return None if peer is None else text_or_none(peer.get_identity_name())
