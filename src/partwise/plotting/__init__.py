"""Pictures. The only importer of matplotlib (extra ``partwise[plot]``); needs no display."""

from .curves import Line, Panel, curves
from .gallery import gallery, new_figure
from .mosaics import draw_mosaic, mosaics

__all__ = ["Line", "Panel", "curves", "draw_mosaic", "gallery", "mosaics", "new_figure"]
