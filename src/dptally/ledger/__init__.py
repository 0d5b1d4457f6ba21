"""The durable account: a ledger on SQLite or PostgreSQL that cannot be overspent or quietly edited."""

import importlib.util

from dptally.errors import MissingExtra

if importlib.util.find_spec("sqlalchemy") is None:
    raise MissingExtra("SQLAlchemy", "ledger")

from dptally.ledger.chain import Head as Head
from dptally.ledger.entries import Entry as Entry
from dptally.ledger.entries import Request as Request
from dptally.ledger.ledger import Ledger as Ledger
from dptally.ledger.paying import PaidRelease as PaidRelease
from dptally.ledger.proofs import Consistency as Consistency
from dptally.ledger.proofs import Inclusion as Inclusion
from dptally.ledger.receipts import Batch as Batch
from dptally.ledger.receipts import Receipt as Receipt
from dptally.ledger.receipts import Reservation as Reservation
from dptally.ledger.signing import check_signature as check_signature
from dptally.ledger.signing import new_signing_key as new_signing_key
from dptally.ledger.status import Balance as Balance
from dptally.ledger.status import Status as Status
from dptally.ledger.terms import Terms as Terms
from dptally.ledger.verification import Verified as Verified
from dptally.ledger.verification import verify_export as verify_export
