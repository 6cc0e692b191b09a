// Line charts by uPlot, with a legend of their own that a screen reader can read.

import uPlot from '../vendor/uplot/uPlot.esm.js';
import {h} from './dom.js';
import {count, short} from './format.js';

const HEIGHT = 200;

/** The value of a colour variable now. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// As many digits as it takes to tell the ticks of an axis apart.
function tickText(tick, ticks) {
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(tick);
  if (Math.abs(tick) >= 1e4 || step >= 1) return count(tick);
  if (step < 1e-4) return tick === 0 ? '0' : tick.toExponential(1);
  let digits = 0;
  while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return tick.toFixed(digits);
}

// Room above and below the lines; a level line lies in the middle.
function rangeOf(_, low, high) {
  if (low === null || high === null) return [0, 1];
  if (low === high) return low === 0 ? [0, 1] : [low - Math.abs(low) / 10, high + Math.abs(high) / 10];
  const room = (high - low) / 12;
  return [low >= 0 && low < 3 * room ? 0 : low - room, high + room];
}

function line(label, index, unit) {
  return {
    label,
    stroke: colour(`--series-${(index % 8) + 1}`),
    width: 1.75,
    points: {size: 5},
    spanGaps: true,
    value: (_, value) => (value === null ? '–' : short(value) + unit),
  };
}

/**
 * A chart of lines over a common axis.
 * series: [{label, steps, values, low, high}]; x: name of the axis; unit: behind the values; range: [low, high] or none.
 */
export function lineChart(root, {title, x = 'env steps', series, unit = '', range = null}) {
  const shown = series.filter(each => each.steps.length);
  const name = h('figcaption', null, title);
  const box = h('figure', {class: 'chart'}, name);
  root.append(box);
  if (!shown.length) {
    box.append(h('p', {class: 'muted'}, 'No values yet.'));
    return;
  }
  const tables = [];
  const lines = [{label: x, value: (_, value) => (value === null ? '–' : count(value))}];
  const bands = [];
  const legend = h('ul', {class: 'legend'});
  const items = [];
  shown.forEach((each, index) => {
    const columns = [each.steps, each.values];
    lines.push(line(each.label, index, unit));
    const place = lines.length - 1;
    if (each.low) {
      columns.push(each.high, each.low);
      for (const edge of ['high', 'low']) lines.push({label: edge, stroke: 'transparent', points: {show: false}});
      bands.push({series: [place + 1, place + 2], fill: `${colour(`--series-${(index % 8) + 1}`)}2e`});
    }
    tables.push(columns);
    const value = h('span', {class: 'value'});
    const item = h('li', null, h('span', {class: `swatch swatch-${(index % 8) + 1}`}), `${each.label} `, value);
    items.push({place, value, last: each.values[each.values.length - 1]});
    legend.append(item);
  });
  const say = at => items.forEach(item => {
    const found = at === null ? item.last : chart.data[item.place][at];
    item.value.textContent = found === null || found === undefined ? '–' : short(found) + unit;
  });
  const axis = {stroke: colour('--muted'), grid: {stroke: colour('--line'), width: 1}, ticks: {stroke: colour('--line'), width: 1}};
  const holder = h('div', {class: 'plot', role: 'img', 'aria-label': `${title}: ${shown.map(each => each.label).join(', ')}`});
  box.append(holder, legend);
  const chart = new uPlot({
    width: Math.max(holder.clientWidth, 240),
    height: HEIGHT,
    legend: {show: false},
    cursor: {y: false},
    scales: {x: {time: false}, y: {range: range ? () => range : rangeOf}},
    axes: [
      {...axis, values: (_, ticks) => ticks.map(count), size: 34},
      {...axis, values: (_, ticks) => ticks.map(tick => tickText(tick, ticks)), size: 56},
    ],
    series: lines,
    bands,
    hooks: {setCursor: [plot => say(plot.cursor.idx === undefined ? null : plot.cursor.idx)]},
  }, tables.length === 1 ? tables[0] : uPlot.join(tables), holder);
  say(null);
  const observer = new ResizeObserver(() => {
    if (!holder.isConnected) observer.disconnect();
    else if (holder.clientWidth) chart.setSize({width: holder.clientWidth, height: HEIGHT});
  });
  observer.observe(holder);
}

/** A small line of values without axes. */
export function sparkline(values, label) {
  const width = 90, height = 22;
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const points = values.map((value, i) => [2 + (i * (width - 4)) / Math.max(values.length - 1, 1), height - 3 - ((value - low) / span) * (height - 6)]);
  const path = points.map(([px, py], i) => `${i ? 'L' : 'M'}${px.toFixed(1)} ${py.toFixed(1)}`).join('');
  const element = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  element.setAttribute('viewBox', `0 0 ${width} ${height}`);
  element.setAttribute('class', 'sparkline');
  element.setAttribute('role', 'img');
  element.setAttribute('aria-label', label);
  const drawn = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  drawn.setAttribute('d', path);
  const end = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
  const [ex, ey] = points[points.length - 1];
  end.setAttribute('cx', ex); end.setAttribute('cy', ey); end.setAttribute('r', 2);
  element.append(drawn, end);
  return element;
}
