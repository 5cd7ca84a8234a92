"""Pictures. The only importer of matplotlib (extra ``partwise[plot]``); needs no display."""

from .gallery import gallery, new_figure

__all__ = ["gallery", "new_figure"]
