// The payoff as a heatmap: rows against columns, blue where the row wins, orange where it loses.

import {diverging, ink, onTheme} from './colours.js';
import {h, svg} from '../kit/dom.js';
import {counted} from '../kit/format.js';
import {elo, extentText, frame, keyboard, whole} from './elements.js';

const HINT = 'Point at a cell, or move with the arrow keys.';
const GAP = 1;

/**
 * Draws a PayoffMatrix.
 * options: pick ({home, away}) => void for a cell that is clicked or entered; memory: an object in which order, marks and
 * cursor outlast a refresh.
 */
export function draw(root, data, options = {}) {
  const {policies, cells} = data;
  const state = Object.assign(options.memory || {}, {order: 'rating', forecast: true, row: 0, column: 0, ...options.memory});
  const known = new Map(cells.map((cell) => [cell[0] * policies.length + cell[1], cell]));
  const {body, tell, id} = frame(root, {
    title: options.title || 'Payoff',
    summary: summaryOf(data),
    table: () => tableOfPairs(data),
    hint: HINT,
    level: options.level,
  });
  if (!cells.length) return;
  const holder = h('div', {class: 'plot-scroll heatmap', tabindex: 0, id: `${id}-grid`, role: 'application',
    'aria-label': 'Heatmap of win rates. Arrow keys move, Enter opens the pair.'});
  const controls = h('div', {class: 'plot-controls'}, orderSelect(data, state, redraw, id), forecastBox(state, redraw, id));
  const scales = h('div');
  body.append(controls, holder, scales);

  function redraw() {
    holder.replaceChildren(picture(data, known, state, point, pick));
    scales.replaceChildren(scale());
  }
  function point(row, column) {
    state.row = Math.min(Math.max(row, 0), policies.length - 1);
    state.column = Math.min(Math.max(column, 0), policies.length - 1);
    const order = data.orders[state.order];
    tell(cellText(data, known, order[state.row], order[state.column], state.forecast));
    const cursor = holder.querySelector('.heatmap-cursor');
    cursor.setAttribute('transform', `translate(${state.column * cursor.dataset.cell} ${state.row * cursor.dataset.cell})`);
    cursor.setAttribute('visibility', 'visible');
  }
  function pick() {
    const order = data.orders[state.order];
    const [home, away] = [policies[order[state.row]].policy, policies[order[state.column]].policy];
    if (options.pick && home !== away) options.pick({home, away});
  }
  redraw();
  keyboard(holder, {
    step: (dx, dy) => point(state.row + dy, state.column + dx),
    enter: pick,
    ends: (first) => point(state.row, first ? 0 : policies.length - 1),
  });
  const stop = onTheme(redraw);
  if (options.onRemove) options.onRemove(stop);
}

function picture(data, known, state, point, pick) {
  const order = data.orders[state.order];
  const colours = diverging();
  const size = order.length;
  const cell = size <= 20 ? 28 : size <= 40 ? 17 : size <= 60 ? 12 : 9;
  const labels = size <= 60;
  const longest = Math.max(...data.policies.map((policy) => policy.policy.length));
  const margin = labels ? Math.min(longest * 6.4 + 10, 190) : 8;
  const side = size * cell;
  const place = new Map(order.map((index, position) => [index, position]));
  const grid = svg('g', {transform: `translate(${margin} ${margin})`});
  grid.append(svg('rect', {width: side, height: side, fill: ink('panel')}));
  if (state.forecast) grid.append(...forecasts(data, known, place, cell, colours));
  grid.append(...squares(data.cells.map(([row, column, rate]) =>
    [place.get(column) * cell, place.get(row) * cell, cell - GAP, colours(rate)[0]])));
  for (const [row, column, rate] of cell >= 24 ? data.cells : []) {
    grid.append(svg('text', {x: (place.get(column) + 0.5) * cell, y: (place.get(row) + 0.5) * cell + 4,
      fill: colours(rate)[1], class: 'heatmap-number'}, Math.round(rate * 100)));
  }
  const cursor = svg('rect', {class: 'heatmap-cursor', width: cell - GAP, height: cell - GAP, fill: 'none',
    stroke: ink('ink'), 'stroke-width': 2.5, visibility: 'hidden', 'data-cell': cell});
  grid.append(cursor);
  const hit = svg('rect', {width: side, height: side, fill: 'transparent', class: 'heatmap-hit',
    onpointermove: (event) => point(...at(event, hit, size)), onclick: (event) => {
      point(...at(event, hit, size));
      pick();
    }});
  grid.append(hit);
  const whole = svg('svg', {width: margin + side + 4, height: margin + side + 4, role: 'img', 'aria-label': summaryOf(data)},
    grid);
  if (labels) whole.append(...names(data, order, cell, margin));
  return whole;
}

function at(event, hit, size) {
  const box = hit.getBoundingClientRect();
  const position = (offset, length) => Math.min(Math.floor((offset / length) * size), size - 1);
  return [position(event.clientY - box.top, box.height), position(event.clientX - box.left, box.width)];
}

function names(data, order, cell, margin) {
  return order.flatMap((index, position) => {
    const along = margin + position * cell + cell / 2;
    const name = data.policies[index].policy;
    return [
      svg('text', {x: margin - 6, y: along + 4, class: 'plot-label', 'text-anchor': 'end', fill: ink('ink')}, name),
      svg('text', {x: 0, y: 0, class: 'plot-label', fill: ink('ink'),
        transform: `translate(${along + 4} ${margin - 6}) rotate(-90)`}, name),
    ];
  });
}

// Pairs that have not met: a small mark in the colour that their ratings forecast.
function forecasts(data, known, place, cell, colours) {
  const inset = Math.max(cell * 0.36, 2);
  const marks = [];
  data.policies.forEach((row, i) => data.policies.forEach((column, j) => {
    const rate = forecastRate(row, column);
    if (i === j || rate === null || known.has(i * data.policies.length + j)) return;
    marks.push([place.get(j) * cell + inset, place.get(i) * cell + inset, cell - GAP - 2 * inset, colours(rate)[0]]);
  }));
  return squares(marks);
}

// One path for all squares of a colour: thousands of elements would take a browser a second.
function squares(list) {
  const paths = new Map();
  for (const [x, y, size, fill] of list) paths.set(fill, `${paths.get(fill) || ''}M${x} ${y}h${size}v${size}h${-size}z`);
  return [...paths].map(([fill, d]) => svg('path', {d, fill}));
}

function forecastRate(row, column) {
  if (row.elo === null || column.elo === null) return null;
  return 1 / (1 + 10 ** ((column.elo - row.elo) / 400));
}

function cellText(data, known, row, column, forecast) {
  const [home, away] = [data.policies[row], data.policies[column]];
  if (row === column) return `${home.policy}: ${elo(home.elo)}`;
  const cell = known.get(row * data.policies.length + column);
  if (cell) {
    const [, , rate, low, high, games] = cell;
    return `${home.policy} against ${away.policy}: wins ${percent(rate)} (${percent(low)} to ${percent(high)}), ` +
      counted(games, 'game');
  }
  const rate = forecastRate(home, away);
  const expected = forecast && rate !== null ? `; ratings expect ${percent(rate)}` : '';
  return `${home.policy} against ${away.policy}: no games that count${expected}`;
}

function percent(rate) {
  return `${(100 * rate).toFixed(0)} %`;
}

function summaryOf(data) {
  const {policies, cells, extent} = data;
  if (!cells.length) return 'No two of the policies shown have met.';
  const seat = data.seat === null ? '' : ` on seat ${data.seat}`;
  const met = `${whole(cells.length / 2 >> 0)} of ${whole((policies.length * (policies.length - 1)) / 2)} pairs have met`;
  return `Win rates of each row${seat} against each column; blue wins, orange loses. ${met}; counted are ` +
    `${data.counts}. ${extentText(extent)}`.trim();
}

function orderSelect(data, state, redraw, id) {
  const labels = {rating: 'rating', name: 'name', cluster: 'likeness'};
  const select = h('select', {id: `${id}-order`, onchange: () => {
    state.order = select.value;
    redraw();
  }}, Object.keys(data.orders).map((order) =>
    h('option', {value: order, selected: order === state.order}, labels[order] || order)));
  return h('label', {}, 'Order by ', select);
}

function forecastBox(state, redraw, id) {
  const box = h('input', {id: `${id}-marks`, type: 'checkbox', checked: state.forecast, onchange: () => {
    state.forecast = box.checked;
    redraw();
  }});
  return h('label', {}, box, ' small marks: what ratings expect of pairs that have not met');
}

function scale() {
  const steps = [0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1];
  const colours = diverging();
  const boxes = steps.map((rate) => {
    const [fill, text] = colours(rate);
    const box = h('span', {class: 'heatmap-step'}, `${Math.round(rate * 100)}`);
    box.style.background = fill;
    box.style.color = text;
    return box;
  });
  return h('p', {class: 'heatmap-scale'}, 'row wins, %: ', boxes);
}

function tableOfPairs(data) {
  const most = 500;
  const columns = [{label: 'home'}, {label: 'away'}, {label: 'win rate', number: true},
    {label: '90 % interval', number: true}, {label: 'games', number: true}];
  const rows = data.cells.slice(0, most).map(([row, column, rate, low, high, games]) => [
    data.policies[row].policy, data.policies[column].policy, rate.toFixed(3),
    `${low.toFixed(2)} to ${high.toFixed(2)}`, whole(games)]);
  const more = data.cells.length > most ? `${whole(data.cells.length - most)} more are in the JSON and CSV.` : '';
  return {columns, rows, more};
}
