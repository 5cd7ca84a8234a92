"""Draw pictures/race.png from the tables of race.md: ``python docs/make_race.py``."""

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

PAGE = Path(__file__).with_name("race.md")
PICTURE = Path(__file__).with_name("pictures") / "race.png"
PANELS = {  # the sparsity asked of Partwise, and the methods that solve the same problem
    "without sparsity": ("none, random", ("scikit-learn random", "scikit-learn nndsvda", "tensorly HALS")),
    "at sparsity 0.5": ("0.5", ("torchnmf", "nmfsc, hoyer")),
}


def speedups(page: str) -> Iterator[tuple[str, str, str, float]]:
    """(data, sparsity, method, speedup of Partwise at that method's final error) for each row with a time share."""
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        data = section[: section.index(":")]
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 10 and re.fullmatch(r"\d+\.\d+", cells[4]):
                yield data, cells[0], cells[1], 1 / float(cells[4])


def draw(page: str) -> Figure:
    """A panel for each problem, a row for each method, a dot for each dataset."""
    rows = list(speedups(page))
    data = list(dict.fromkeys(row[0] for row in rows))
    figure = Figure(figsize=(9, 2.8), layout="constrained", dpi=150)
    panels = figure.subplots(1, len(PANELS), sharex=True)
    for axes, (title, (sparsity, methods)) in zip(panels, PANELS.items(), strict=True):
        for color, name in zip(matplotlib.colormaps["tab10"].colors, data, strict=False):
            found = {row[2]: row[3] for row in rows if row[:2] == (name, sparsity)}
            axes.plot([found[method] for method in methods], methods, "o", color=color, label=name)
        axes.axvline(1, color="grey", linewidth=1)
        axes.set(title=title, xscale="log", xticks=(1, 10, 100), xticklabels=("1", "10", "100"), xlim=(0.6, 300))
        axes.set_ylim(len(methods) - 0.5, -0.5)
    figure.supxlabel("times faster than the other method, to the same error", fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


if __name__ == "__main__":
    draw(PAGE.read_text(encoding="utf-8")).savefig(PICTURE)
