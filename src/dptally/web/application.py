"""The routes of the page. Each reads a request, asks a worker or the ledger, and fills a template."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

import dptally
from dptally.errors import DptallyError
from dptally.web.accounts import Accounts, Spending
from dptally.web.desk import Desk
from dptally.web.gallery import papers
from dptally.web.guard import Guard, same
from dptally.web.question import Question, number
from dptally.web.settings import Settings
from dptally.web.workers import NO_LEDGER, Refusal, Runner, Workers

__all__ = ["application"]

_HERE = Path(__file__).resolve().parent
_CLAIM = "epsilon 1.62 at delta 1e-5: DP-SGD noise 1, rate 0.01, 1000 steps, gdp accountant"


@dataclass(frozen=True, slots=True)
class Site:
    """What every route needs."""

    settings: Settings
    runner: Runner
    accounts: Accounts
    desk: Desk
    templates: Environment

    def page(self, template: str, code: int = 200, /, **values: Any) -> HTMLResponse:
        text = self.templates.get_template(template).render(
            version=dptally.__version__,
            secret=self.settings.secret,
            has_ledger=self.settings.ledger is not None,
            may_spend=self.settings.token is not None,
            table=self.settings.table,
            **values,
        )
        return HTMLResponse(text, code)

    def form(self, body: bytes) -> dict[str, str]:
        """The fields of a form that one of our own pages sent; its token is checked."""
        try:
            found = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=80)
        except ValueError:
            raise Refusal(400, "the form cannot be read") from None
        fields = {key: values[-1] for key, values in found.items()}
        if not same(fields.get("secret", ""), self.settings.secret):
            raise Refusal(403, "the form is not from a page of this server; load the page again")
        return fields

    def check_token(self, fields: dict[str, str]) -> None:
        """Where the server may spend, only who knows its token does."""
        if self.settings.token is not None and not same(fields.get("token", ""), self.settings.token):
            raise Refusal(403, "the token is not the one that the server was started with; nothing was debited")


def application(settings: Settings | None = None, runner: Runner | None = None) -> Callable[..., Any]:
    """The guarded application, for any ASGI server; ``runner`` answers the questions."""
    chosen = settings or Settings()
    templates = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    asked, accounts = runner or Workers(chosen.workers, chosen.seconds), Accounts(chosen)
    site = Site(chosen, asked, accounts, Desk(chosen, accounts, asked), templates)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        site.runner.start()
        yield
        site.runner.close()
        site.accounts.close()

    made = FastAPI(title="dptally", docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    made.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")
    _add_errors(made, site)
    _add_machines(made, site)
    _add_explorer(made, site)
    _add_files(made, site)
    _add_opinion(made, site)
    _add_ledger(made, site)
    _add_accounts(made, site)
    _add_desk(made, site)
    return Guard(made, chosen)


def _add_errors(made: FastAPI, site: Site) -> None:
    def shown(request: Request, status: int, text: str) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": text}, status)
        if request.url.path.startswith("/part/"):
            return site.page("part_error.html", status, text=text)
        return site.page("error.html", status, text=text, status=status)

    @made.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> Response:
        return shown(request, error.status, str(error))

    @made.exception_handler(DptallyError)
    async def wrong(request: Request, error: DptallyError) -> Response:
        return shown(request, 400, str(error))

    @made.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> Response:
        return shown(request, error.status_code, str(error.detail))


def _add_machines(made: FastAPI, site: Site) -> None:
    """What programs ask."""

    @made.get("/healthz")
    def health() -> dict[str, str]:
        return {"status": "ok", "version": dptally.__version__}

    @made.get("/api/epsilon")
    def epsilon(request: Request) -> Any:
        asked = Question.of(request.query_params)
        return site.runner.ask("epsilon", asked.plan, asked.delta)


def _add_explorer(made: FastAPI, site: Site) -> None:
    ask = site.runner.ask

    @made.get("/")
    def explorer(request: Request) -> Response:
        try:
            asked = Question.of(request.query_params)
            answer = ask("quick", asked.plan, asked.delta)
        except (Refusal, DptallyError) as error:
            status = error.status if isinstance(error, Refusal) else 400
            said = Question.said(request.query_params)
            return site.page("explorer.html", status, asked=said, answer=None, error=str(error), link="", all=None)
        whole = _everything(site, asked) if "all" in request.query_params else None
        form = answer["form"] or {}
        said = Question.said(request.query_params) | asked.fields() | form
        return site.page("explorer.html", asked=said, answer=answer, error="", link=_link(asked), all=whole)

    @made.get("/part/quick")
    def quick(request: Request) -> Response:
        asked = Question.of(request.query_params)
        answer = ask("quick", asked.plan, asked.delta)
        return site.page("part_quick.html", answer=answer, link=_link(asked), asked=asked.fields())

    @made.get("/part/more")
    def more(request: Request) -> Response:
        asked = Question.of(request.query_params)
        return site.page("part_more.html", more=ask("more", asked.plan, asked.delta))

    @made.get("/part/noise")
    def noise(request: Request) -> Response:
        asked = Question.of(request.query_params)
        return site.page("part_noise.html", noise=ask("noise", asked.plan, asked.target, asked.delta))

    @made.get("/part/samplers")
    def samplers(request: Request) -> Response:
        asked = Question.of(request.query_params)
        every = "every" in request.query_params
        return site.page("part_samplers.html", samplers=_samplers(site, asked, every))


def _add_files(made: FastAPI, site: Site) -> None:
    """What the explorer gives to keep, and the papers."""
    ask = site.runner.ask

    @made.get("/card.{form}")
    def card(form: str, request: Request) -> Response:
        asked = Question.of(request.query_params)
        if form not in ("html", "md"):
            raise Refusal(404, "a card is html or md")
        text = ask("card", asked.plan, asked.delta, "html" if form == "html" else "markdown")
        return _download(text, f"dptally-card.{form}", "text/html" if form == "html" else "text/markdown")

    @made.get("/cite.bib")
    def cite(request: Request) -> Response:
        asked = Question.of(request.query_params)
        return _download(ask("bibtex", asked.plan, asked.delta), "dptally-cite.bib", "text/plain")

    @made.get("/papers")
    def gallery() -> Response:
        return site.page("papers.html", papers=papers())


def _everything(site: Site, asked: Question) -> dict[str, Any]:
    """What a reader without scripts asks for with one more click."""
    return {
        "more": site.runner.ask("more", asked.plan, asked.delta),
        "noise": site.runner.ask("noise", asked.plan, asked.target, asked.delta),
        "samplers": _samplers(site, asked, False),
    }


def _samplers(site: Site, asked: Question, every: bool) -> Any:
    form = site.runner.ask("quick", asked.plan, asked.delta)["form"]
    if form is None:
        return None
    given = form["noise"], form["rate"], form["steps"], asked.records, asked.delta, every
    return site.runner.ask("samplers", *given)


def _link(asked: Question) -> str:
    return urlencode({"plan": asked.plan, "delta": f"{asked.delta:g}"})


def _download(text: str, name: str, kind: str) -> Response:
    """As a file, never shown in the page's own name."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


def _add_opinion(made: FastAPI, site: Site) -> None:
    @made.get("/check")
    def ask_for_one() -> Response:
        return site.page("opinion.html", claim=_CLAIM, verdict=None, error="")

    @made.post("/check")
    async def pasted(request: Request) -> Response:
        fields = site.form(await request.body())
        claim, given = fields.get("claim", ""), [number(fields, name) for name in ("epsilon", "delta")]
        try:
            verdict = await run_in_threadpool(site.runner.ask, "opinion", claim, "", *given)
        except Refusal as refusal:
            return site.page("opinion.html", refusal.status, claim=claim, verdict=None, error=str(refusal))
        return site.page("opinion.html", claim=claim, verdict=verdict, error="")

    @made.post("/part/check")
    async def dropped(request: Request) -> Response:
        """A file's bytes; its ending, the claim and the token stand in the query and the headers."""
        if not same(request.headers.get("x-dptally", ""), site.settings.secret):
            raise Refusal(403, "the file was not sent by a page of this server; load the page again")
        body, asked = await request.body(), dict(request.query_params)
        given = [number(asked, name) for name in ("epsilon", "delta")]
        verdict = await run_in_threadpool(site.runner.ask, "opinion", body, asked.get("ending", "").lower(), *given)
        return site.page("part_verdict.html", verdict=verdict)


def _add_ledger(made: FastAPI, site: Site) -> None:
    accounts = site.accounts

    @made.get("/ledger")
    def overview() -> Response:
        if site.settings.ledger is None:
            return site.page("ledger_none.html")
        return site.page("ledger.html", accounts=accounts.overview(), found=None)

    @made.get("/ledger/head.json")
    def head() -> Response:
        return _download(accounts.head(), "dptally-head.json", "application/json")

    async def judged(check: Callable[..., dict[str, Any]], *given: str) -> Response:
        found = await run_in_threadpool(check, *given)
        shown = await run_in_threadpool(accounts.overview)
        return site.page("ledger.html", accounts=shown, found=found)

    @made.post("/ledger/verify")
    async def verify(request: Request) -> Response:
        site.form(await request.body())
        return await judged(accounts.verify)

    @made.post("/ledger/check-head")
    async def check_head(request: Request) -> Response:
        return await judged(accounts.check_head, site.form(await request.body()).get("head", ""))

    @made.post("/ledger/check-receipt")
    async def check_receipt(request: Request) -> Response:
        return await judged(accounts.check_receipt, site.form(await request.body()).get("receipt", ""))


def _add_accounts(made: FastAPI, site: Site) -> None:
    """One account of the ledger."""
    accounts = site.accounts

    @made.get("/ledger/data")
    def account(request: Request) -> Response:
        asked = request.query_params
        return _account(site, asked.get("name", ""), asked.get("search", ""), asked.get("after", "0"))

    @made.get("/ledger/receipt.json")
    def receipt(request: Request) -> Response:
        asked = request.query_params
        text = accounts.receipt(asked.get("name", ""), _whole(asked.get("number", "")))
        return _download(text, "dptally-receipt.json", "application/json")

    @made.post("/ledger/price")
    async def price(request: Request) -> Response:
        fields = site.form(await request.body())
        name, plan, by = (fields.get(key, "") for key in ("name", "plan", "by"))
        if site.settings.ledger is None:
            raise Refusal(404, NO_LEDGER)
        found = await run_in_threadpool(site.runner.ask, "price", site.settings.ledger, name, plan, by)
        return await run_in_threadpool(_account, site, name, "", "0", price=found, plan=plan, by=by)

    @made.post("/ledger/spend")
    async def spend(request: Request) -> Response:
        fields = site.form(await request.body())
        site.check_token(fields)
        asked = Spending(*(fields.get(key, "").strip() for key in ("name", "plan", "by", "why", "key")))
        if site.settings.token is not None:  # priced where work is budgeted, before the ledger is asked to
            given = site.settings.ledger, asked.dataset, asked.plan, asked.by
            await run_in_threadpool(site.runner.ask, "price", *given)
        made = await run_in_threadpool(accounts.spend, asked)
        return await run_in_threadpool(_account, site, asked.dataset, "", "0", receipt=made)


def _add_desk(made: FastAPI, site: Site) -> None:
    """The declared table: asked, priced, previewed, and released where the server may spend."""
    desk = site.desk

    def shown(status: int = 200, /, **values: Any) -> Response:
        parts = {"given": {}, "error": "", "found": None, "result": None, "key": ""} | values
        return site.page("table.html", status, about=desk.about(), **parts)

    def answered(fields: dict[str, str], work: Callable[[], dict[str, Any]]) -> Response:
        """The page with what was asked and what came of it, an error included."""
        try:
            found = work()
        except (Refusal, DptallyError) as error:
            return shown(error.status if isinstance(error, Refusal) else 400, given=fields, error=str(error))
        return shown(given=fields, key=f"page-{secrets.token_hex(6)}", **found)

    @made.get("/ledger/table")
    def table() -> Response:
        return shown()

    @made.post("/ledger/table")
    async def preview(request: Request) -> Response:
        fields = site.form(await request.body())
        return await run_in_threadpool(answered, fields, lambda: {"found": desk.preview(fields)})

    @made.post("/ledger/table/release")
    async def release(request: Request) -> Response:
        fields = site.form(await request.body())
        site.check_token(fields)
        return await run_in_threadpool(answered, fields, lambda: {"result": desk.release(fields)})


def _account(site: Site, name: str, search: str, after: str, **more: Any) -> HTMLResponse:
    account = site.accounts.standing(name)
    history = site.accounts.history(name, search, _whole(after))
    values = {"price": None, "receipt": None, "plan": "", "by": ""} | more
    return site.page("account.html", account=account, name=name, history=history, search=search, **values)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise Refusal(400, "the number of an entry is a whole number")
    return int(text)
