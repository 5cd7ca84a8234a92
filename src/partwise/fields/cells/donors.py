"""Gene programs across donors: fits for each donor, then families of programs that recur."""

from __future__ import annotations

from typing import Any


def programs(adata: Any, **kw: Any) -> Any:
    raise NotImplementedError
