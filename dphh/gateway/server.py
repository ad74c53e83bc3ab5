"""Requests in, tables out: `GET /v1/ngrams?corpus=reviews&max_n=3&epsilon=1&delta=1e-8`.

A path names a macro, whose parameters are those of the query string. An answer is a Parquet file;
with `.jsonl` after the path, lines of JSON. A refusal is also a table, with one column, `refused`,
and status 200, because readers of tables discard the text of an error. A program that accepts
`application/json` gets JSON, and a refusal with its status.

The same request is one run: while it goes on, those who repeat it wait for it, and afterwards the
ledger has its release. A run goes on whether its client waits or hangs up.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import polars as pl
import pyarrow as pa
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dphh.asking.clients import gateway_page
from dphh.asking.macros import Macro, corpus_options_by_sql_name, macros
from dphh.asking.parsed import typed_options
from dphh.columns import as_parquet
from dphh.errors import DphhError, UsageError
from dphh.gateway.connections import without_limits
from dphh.gateway.ledger_view import Answer, answer_to_error, share_named, table_without_plan
from dphh.gateway.worker import Order, Workers
from dphh.ledger import Ledger
from dphh.wording.options import check_required, did_you_mean

log = logging.getLogger("dphh.gateway")

#: The most bytes of a query string, and the most characters of a refusal.
LONGEST_QUERY, LONGEST_REFUSAL = 8_000, 2_000
#: The most requests of one analyst at a time, and the most plans and runs that go on or wait.
MOST_REQUESTS_OF_ANALYST = 8
#: A client that takes longer to receive an answer is cut off. Answers are sent in such pieces.
_SENDING_SECONDS, _PIECE = 600.0, 64 * 1024
#: Pricing is stopped after so many seconds, or earlier by the limit on the processor's seconds.
MOST_PRICING_SECONDS = 30.0
#: This many plans are priced at one time, each for another analyst.
PLANNERS = 2
#: A client whose request is refused for now is told to repeat it after so many seconds.
RETRY_SECONDS = 10

_MEDIA_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
    "json": "application/json",
}


class Refused(UsageError):  # noqa: N818 - it is an answer
    """A request that the server itself refuses, with a status of its own."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words)
        self.status = status


class Gateway:
    """Answers requests. `run_options`: the options of `Plan.run` for all runs. `runs`: this many go
    on at one time, each of another analyst."""

    def __init__(self, ledger: Ledger, run_options: Mapping[str, Any], *, runs: int = 1) -> None:
        self._ledger = ledger
        self._in_flight: Counter[str] = Counter()
        self._tasks: dict[tuple[str, bool, str], asyncio.Task[Answer]] = {}
        # Orders of one analyst take turns with those of others: each analyst has one at a time with
        # a planner, and one with a runner.
        self._pricing = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._running = defaultdict[str, asyncio.Lock](asyncio.Lock)
        # Plans do not wait for runs, nor runs for plans.
        self._planners, self._runners = Workers(PLANNERS, None), Workers(runs, run_options)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", _home_page),
                Route("/healthz", lambda _: PlainTextResponse("ok")),
                # Another method is refused with its status: a table with status 200 would be a
                # defect where the method is CONNECT.
                Route("/v1/{path:path}", self, methods=["GET"]),
            ]
        )

    def close(self) -> None:
        """Interrupt all runs. A run continues when the same request comes again."""
        self._runners.close()
        self._planners.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path: str = request.path_params["path"]
        is_json = "application/json" in request.headers.get("accept", "")
        answer_format = "json" if is_json else "parquet"
        if path.endswith(".jsonl"):
            path, answer_format = path.removesuffix(".jsonl"), "jsonl"
        analyst = ""
        try:
            analyst = await self._analyst(request)
            if self._in_flight[analyst] >= MOST_REQUESTS_OF_ANALYST:
                raise Refused("Too many requests at once; repeat this one in a moment", 429)
            self._in_flight[analyst] += 1
            try:
                with without_limits(scope.get("client")):
                    response = await self._response(request, analyst, path, answer_format)
                    async with asyncio.timeout(_SENDING_SECONDS):
                        await response(scope, receive, send)
            finally:
                self._in_flight[analyst] -= 1
        except DphhError as problem:
            answer = answer_to_error(problem)
            _log(answer, path, analyst)
            body, status = _encoded(answer, answer_format)
            await _response_with(body, status, answer_format)(scope, receive, send)
        except (TimeoutError, ClientDisconnect):
            pass  # uvicorn closes the connection

    async def _analyst(self, request: Request) -> str:
        """The analyst whose token the request has. Refuses others."""
        kind, _, token = ", ".join(request.headers.getlist("authorization")).partition(" ")
        if kind.lower() == "bearer" and token.isascii():
            analyst = await asyncio.to_thread(self._ledger.analyst_with, token)
            if analyst is not None:
                return analyst
        raise Refused(
            "Not authorised: send a token that is in force, as Authorization: Bearer TOKEN. The "
            "corpus's owner gives tokens",
            401,
        )

    async def _response(
        self, request: Request, analyst: str, path: str, answer_format: str
    ) -> Response:
        macro, arguments = _macro_and_arguments(request, path)
        if request.method == "HEAD":
            # DuckDB asks for the size first. Without one, it requests the whole answer once.
            return StreamingResponse(_in_turn(()))
        book = Ledger(self._ledger.path, analyst)
        try:
            if macro.verb is None:
                table = await asyncio.to_thread(table_without_plan, book, macro, arguments)
                answer = Answer(as_parquet(table))
            else:
                order = await asyncio.to_thread(_checked_order, book, macro, arguments)
                answer = await _answer_if_connected(
                    request, self._task_of(order, pays=macro.spends)
                )
        except UsageError as problem:
            answer = answer_to_error(problem)
        _log(answer, macro.name, analyst)
        await self._analyst(request)  # a token that was withdrawn meanwhile gets no answer
        body, status = await asyncio.to_thread(_encoded, answer, answer_format)
        return _response_with(body, status, answer_format)

    def _task_of(self, order: Order, *, pays: bool) -> asyncio.Task[Answer]:
        """The task that answers this order: the running one, if the order is repeated. `pays`: the
        order is run, and not only priced."""
        key = (order.analyst, pays, repr(order))
        if (task := self._tasks.get(key)) is None:
            analysts = [analyst for analyst, *_ in self._tasks]
            if analysts.count(order.analyst) >= MOST_REQUESTS_OF_ANALYST:
                raise Refused("Too many of your runs wait; repeat this request in a moment", 429)
            task = self._tasks[key] = asyncio.create_task(self._answer_in_turn(order, pays=pays))
            task.add_done_callback(lambda _: self._tasks.pop(key))
        return task

    async def _answer_in_turn(self, order: Order, *, pays: bool) -> Answer:
        """Price the order, in limited time; then, if it pays, run it."""
        async with self._pricing[order.analyst]:
            answer = await self._planners.answer(order, MOST_PRICING_SECONDS)
        if answer is None:
            slow = "Pricing took too long, or its process ended. Ask again; if that is no help, "
            return Answer(refused=f"{slow}give smaller options. Nothing was spent", status=503)
        if pays and answer.refused is None:
            async with self._running[order.analyst]:
                answer = await self._runners.answer(order)
        cut_short = "The run was cut short. Ask again: it goes on, at no further price"
        return answer or Answer(refused=cut_short, status=503)


def _log(answer: Answer, requested: str, analyst: str) -> None:
    if answer.log is not None:
        log.error("%s for %s: %s", requested, analyst, answer.log)


def _macro_and_arguments(request: Request, path: str) -> tuple[Macro, dict[str, str]]:
    """The macro that a request names, and its arguments by name, each given once."""
    headers, query = request.headers, request.scope["query_string"]
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise UsageError("A request must have no body: give its options in the address")
    by_path = {each.gateway_path: each for each in macros().values() if not each.for_owner}
    first, slash, rest = path.partition("/")
    macro, given = by_path.get(path), []
    if macro is None and rest and (macro := by_path.get(first + slash)) is not None:
        given = [(macro.parameters[0], rest)]
    if macro is None or (macro.gateway_path.endswith("/") and not given):
        suggestion = did_you_mean(path, [known for known in by_path if not known.endswith("/")])
        advice = suggestion or "GET /v1/help says what there is"
        raise Refused(f"There is no /v1/{path[:100]}; {advice}", 404)
    if len(query) > LONGEST_QUERY:
        raise Refused(
            f"The address has {len(query):,} bytes of options; at most {LONGEST_QUERY:,} are "
            "accepted. In place of a long list of items, give the run id of a release",
            414,
        )
    try:
        text = query.decode("ascii")
        given += parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(query), errors="strict"
        )
    except ValueError:
        raise UsageError(
            "The options cannot be read: write name=value&..., in UTF-8, with %XX for each byte "
            "that is not a letter or digit"
        ) from None
    for name, times in Counter(name for name, _ in given).items():
        if times > 1:
            raise UsageError(f"{name[:100]}: found {times} times; give it once")
    return macro, dict(given)


def _checked_order(book: Ledger, macro: Macro, arguments: dict[str, str]) -> Order:
    """A request as an order for a worker. Its options are values of the registry's types."""
    assert macro.verb is not None
    macro.check_given(arguments)
    corpus = arguments["corpus"]
    share_named(book, corpus)  # refuses now what a worker would refuse after the analyst's runs
    texts = {name: text for name, text in arguments.items() if name != "corpus"}
    if owners := texts.keys() & {"run_id", *corpus_options_by_sql_name()}:
        raise UsageError(
            f"{', '.join(sorted(owners))}: how a corpus is read, and who pays, its owner has "
            "declared; leave these out. Nothing was spent"
        )
    options = typed_options(macro.verb.options, texts, f"dphh_{macro.name}")
    check_required(options, macro.verb.options, f"dphh_{macro.name}")
    assert book.analyst is not None
    pairs = tuple(sorted(options.items()))
    return Order(str(book.path), book.analyst, macro.verb.name, corpus, pairs)


async def _answer_if_connected(request: Request, task: asyncio.Task[Answer]) -> Answer:
    """The task's answer, or `ClientDisconnect` if the client hangs up; the task goes on anyway."""
    while not task.done():
        await asyncio.wait({task}, timeout=0.5)
        if await request.is_disconnected():
            raise ClientDisconnect
    return task.result()


def _encoded(answer: Answer, answer_format: str) -> tuple[bytes, int]:
    """The body and the status of an answer in a format, a key of `_MEDIA_TYPES`."""
    parquet = answer.parquet
    if answer.refused is not None:
        words = answer.refused[:LONGEST_REFUSAL]
        if answer_format == "json":
            return json.dumps({"error": words}).encode(), answer.status
        parquet = as_parquet(pa.table({"refused": [words]}))
    if answer_format == "parquet":
        return parquet, 200
    frame = pl.read_parquet(parquet)
    return (frame.write_json() if answer_format == "json" else frame.write_ndjson()).encode(), 200


async def _in_turn(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _response_with(body: bytes, status: int, answer_format: str) -> Response:
    headers = {"content-type": _MEDIA_TYPES[answer_format], "content-length": str(len(body))}
    if status in (429, 503):
        headers["retry-after"] = str(RETRY_SECONDS)
    # A slow client keeps one piece in memory, not a second copy of the whole answer.
    pieces = (body[place : place + _PIECE] for place in range(0, len(body), _PIECE))
    return StreamingResponse(_in_turn(pieces), status, headers)


def _home_page(request: Request) -> Any:
    host = request.headers.get("host", "")
    if not re.fullmatch(r"[A-Za-z0-9.\-]+(:\d+)?|\[[0-9a-f:]+\](:\d+)?", host):
        host = "localhost"
    return HTMLResponse(gateway_page(f"{request.url.scheme}://{host}"))
