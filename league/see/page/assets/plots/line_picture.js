// The picture of lines as SVG, drawn from the chart that is on the page: what it shows, with title and legend.

import {svg} from '../kit/dom.js';

const [TITLE, ROW] = [30, 18];

/** An SVG element. chart: of uPlot; view: of line_view.js; dashes: of the lines. */
export function picture(chart, view, data, dashes) {
  const ratio = devicePixelRatio || 1;
  const box = {left: chart.bbox.left / ratio, top: chart.bbox.top / ratio + TITLE, width: chart.bbox.width / ratio, height: chart.bbox.height / ratio};
  const bottom = box.top + box.height;
  const x = (value) => box.left + chart.valToPos(value, 'x'), y = (value) => box.top + chart.valToPos(value, 'y');
  const height = TITLE + chart.height + ROW * view.lines.length + 8;
  const parts = [svg('text', {x: 12, y: 20, 'font-size': 15, 'font-weight': 600, fill: 'var(--ink)'}, data.title)];
  const [across, up] = chart.axes;
  (across._splits || []).forEach((split, number) => {
    if (split < chart.scales.x.min || split > chart.scales.x.max) return;
    parts.push(svg('path', {d: `M${x(split)} ${box.top}V${bottom}`, stroke: 'var(--line)'}),
      svg('text', {x: x(split), y: bottom + 16, 'text-anchor': 'middle', fill: 'var(--muted)'}, across._values[number]));
  });
  (up._splits || []).forEach((split, number) => parts.push(svg('path', {d: `M${box.left} ${y(split)}H${box.left + box.width}`, stroke: 'var(--line)'}),
    svg('text', {x: box.left - 6, y: y(split) + 4, 'text-anchor': 'end', fill: 'var(--muted)'}, up._values[number])));
  parts.push(svg('text', {x: box.left + box.width / 2, y: bottom + 34, 'text-anchor': 'middle', fill: 'var(--muted)'}, view.label));
  const inside = svg('svg', {x: box.left, y: box.top, width: box.width, height: box.height, viewBox: `${box.left} ${box.top} ${box.width} ${box.height}`});
  const point = (line, values) => (_, place) => `${x(line.places[place]).toFixed(1)} ${y(values[place]).toFixed(1)}`;
  for (const line of view.lines) {
    const stroke = `var(--series-${line.colour + 1})`;
    if (line.low) {
      const edge = [...line.low.map(point(line, line.low)), ...line.high.map(point(line, line.high)).reverse()];
      inside.append(svg('path', {d: `M${edge.join('L')}Z`, fill: stroke, opacity: 0.18}));
    }
    inside.append(svg('path', {d: `M${line.shown.map(point(line, line.shown)).join('L')}`, fill: 'none', stroke, 'stroke-width': 2,
      'stroke-dasharray': (dashes[line.dash % 4] || []).join(' ') || null}));
  }
  view.lines.forEach((line, number) => {
    const at = TITLE + chart.height + ROW * number + 6;
    parts.push(svg('path', {d: `M12 ${at}H34`, stroke: `var(--series-${line.colour + 1})`, 'stroke-width': 3}),
      svg('text', {x: 40, y: at + 4, fill: 'var(--ink)'}, line.label));
  });
  return svg('svg', {xmlns: 'http://www.w3.org/2000/svg', width: chart.width, height, viewBox: `0 0 ${chart.width} ${height}`}, parts, inside);
}
