"""Small line plots as SVG text, so that a report is one file that needs nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 42
COLOURS = ("#1f6fb4", "#d1662a", "#3a8f4d", "#8a56a8")
MAX_POINTS = 600


@dataclass
class Line:
    """One curve."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover [low, high]."""
    span = (high - low) or 1.0
    step = 10 ** math.floor(math.log10(span / count))
    for factor in (1, 2, 5, 10):
        if span / (step * factor) <= count:
            step *= factor
            break
    first = math.ceil(low / step) * step
    return [first + i * step for i in range(int((high - first) / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def _thin(line: Line) -> tuple[list[float], list[float]]:
    step = max(1, len(line.x) // MAX_POINTS)
    x, y = list(line.x[::step]), list(line.y[::step])
    if line.x and x[-1] != line.x[-1]:
        x.append(line.x[-1])
        y.append(line.y[-1])
    return x, y


def plot(title: str, x_label: str, y_label: str, lines: Sequence[Line], log_x: bool = False) -> str:
    """An SVG element with the curves; the y axis starts at 0. Curves without points are left out."""
    lines = [line for line in lines if len(line.x)]
    if not lines:
        return f"<p>{escape(title)}: nothing was measured.</p>"
    x_low = min(min(line.x) for line in lines)
    x_high = max(max(line.x) for line in lines)
    if log_x:
        x_low = max(x_low, 1e-3)
        x_high = max(x_high, x_low * 1.01)
    y_high = max(max(line.y) for line in lines) or 1.0
    x_ticks = [t for t in _decades(x_low, x_high) if x_low <= t <= x_high] if log_x else _ticks(x_low, x_high)
    y_ticks = _ticks(0, y_high)

    def place_x(x: float) -> float:
        if log_x:
            share = math.log(max(x, x_low) / x_low) / math.log(x_high / x_low)
        else:
            share = (x - x_low) / ((x_high - x_low) or 1.0)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def place_y(y: float) -> float:
        return HEIGHT - BOTTOM - y / y_high * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f'<text x="{LEFT}" y="18" class="title">{escape(title)}</text>',
    ]
    for tick in y_ticks:
        y = place_y(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="end">{tick:g}</text>')
    for tick in x_ticks:
        x = place_x(tick)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" class="middle">{tick:g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" class="middle">{escape(x_label)}</text>')
    parts.append(
        f'<text x="14" y="{HEIGHT / 2:.0f}" class="middle" transform="rotate(-90 14 {HEIGHT / 2:.0f})">'
        f"{escape(y_label)}</text>"
    )
    for index, line in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in zip(*_thin(line), strict=True))
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{TOP + 14 * index}" class="end" fill="{colour}">{escape(line.name)}</text>'
        )
    parts.append("</svg>")
    return "".join(parts)
