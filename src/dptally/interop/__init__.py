"""Other tools: what they wrote down becomes a plan, and their accountants can be replaced by this one.

Readers (``from_dp_accounting``, ``from_opacus``) need nothing but dptally. Drop-ins live in modules of their own,
which import the other tool: ``dptally.interop.opacus``, ``.dp_accounting``, ``.flower``, ``.pipeline_dp``.
"""

from dptally.interop.events import from_dp_accounting as from_dp_accounting
from dptally.interop.opacus_history import from_opacus as from_opacus
