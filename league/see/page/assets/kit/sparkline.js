// A small line of values without axes.

import {svg} from './dom.js';

const WIDTH = 90, HEIGHT = 22;

/** Draws the values; the last one has a mark. label: what a screen reader says instead. */
export function sparkline(values, label) {
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const points = values.map((value, place) => [
    2 + (place * (WIDTH - 4)) / Math.max(values.length - 1, 1), HEIGHT - 3 - ((value - low) / span) * (HEIGHT - 6)]);
  const path = points.map(([x, y], place) => `${place ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
  const [x, y] = points[points.length - 1];
  return svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'sparkline', role: 'img', 'aria-label': label},
    svg('path', {d: path}), svg('circle', {cx: x, cy: y, r: 2}));
}
