// The payoff as a heatmap: rows against columns, blue where the row wins, orange where it loses.

import {diverging, ink, onTheme} from './colours.js';
import {h, part, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {counted} from '../kit/format.js';
import {elo, extentText, frame, keyboard, moreText, whole} from './elements.js';

const HINT = 'Point at a cell, or move with the arrow keys.';
const GAP = 1;
const NUMBERS = 20; // pixels of a cell in which a number can be read

/**
 * Draws a PayoffMatrix in a part of its own.
 * options: title, level, pick ({home, away}) => void for a cell that is clicked or entered.
 */
export function draw(root, data, options = {}) {
  root.append(part('payoff', mount, data, options));
}

function mount(box, ...given) {
  let [data, options] = given;
  const {body, tell, head, id} = frame(box, {title: options.title || 'Payoff', hint: HINT, level: options.level});
  const state = {order: 'rating', forecast: true, home: null, away: null};
  const holder = h('div', {class: 'plot-scroll heatmap', tabindex: 0, id: `${id}-grid`, role: 'application',
    'aria-label': 'Heatmap of win rates. Arrow keys move, Enter opens the pair.'});
  const controls = h('div', {class: 'plot-controls'}, orderSelect(data, state, redraw, id), forecastBox(state, redraw, id));
  const scales = h('div');
  body.append(controls, holder, scales);
  const cursor = svg('rect', {class: 'heatmap-cursor', fill: 'none', stroke: ink('ink'), 'stroke-width': 2.5, visibility: 'hidden', 'pointer-events': 'none'});
  let view = null;

  function redraw() {
    const known = new Map(data.cells.map((cell) => [cell[0] * data.policies.length + cell[1], cell]));
    view = {known, order: data.orders[state.order], ...sizes(data, holder.clientWidth || 900)};
    head({title: options.title || 'Payoff', summary: summaryOf(data), table: data.cells.length ? (most) => tableOfPairs(data, most) : null,
      picture: () => holder.querySelector('svg')});
    controls.hidden = holder.hidden = scales.hidden = !data.cells.length;
    if (!data.cells.length) return;
    show(holder, picture(data, view, state, point, pick));
    holder.querySelector('.heatmap-cells').append(cursor);
    show(scales, scale());
    if (state.home !== null) mark();
  }
  // What is pointed at is known by name: new policies move its row and column.
  function mark() {
    const [row, column] = [state.home, state.away].map((name) => view.order.findIndex((index) => data.policies[index].policy === name));
    const isShown = row >= 0 && column >= 0;
    cursor.setAttribute('visibility', isShown ? 'visible' : 'hidden');
    if (!isShown) return;
    tell(cellText(data, view.known, view.order[row], view.order[column], state.forecast));
    for (const side of ['width', 'height']) cursor.setAttribute(side, view.cell - GAP);
    cursor.setAttribute('transform', `translate(${column * view.cell} ${row * view.cell})`);
  }
  function point(row, column) {
    const within = (number) => Math.min(Math.max(number, 0), view.order.length - 1);
    [state.home, state.away] = [row, column].map((number) => data.policies[view.order[within(number)]].policy);
    mark();
  }
  function pick() {
    if (options.pick && state.home !== null && state.home !== state.away) options.pick({home: state.home, away: state.away});
  }
  const placeOf = (name) => Math.max(view.order.findIndex((index) => data.policies[index].policy === name), 0);
  redraw();
  keyboard(holder, {
    step: (dx, dy) => point(placeOf(state.home) + dy, placeOf(state.away) + dx),
    enter: pick,
    ends: (first) => point(placeOf(state.home), first ? 0 : data.policies.length - 1),
  });
  const stop = onTheme(redraw);
  const resized = new ResizeObserver(() => {
    if (data.cells.length && holder.clientWidth && sizes(data, holder.clientWidth).cell !== view.cell) redraw();
  });
  resized.observe(box);
  return {
    update(...next) {
      [data, options] = next;
      redraw();
    },
    remove() {
      stop();
      resized.disconnect();
    },
  };
}

// Cells as large as the room allows: with numbers where those can be read.
function sizes(data, room) {
  const size = data.policies.length;
  const longest = Math.max(...data.policies.map((policy) => policy.policy.length));
  const margin = size <= 60 ? Math.min(longest * 6.4 + 10, 190) : 8;
  const cell = Math.min(Math.max(Math.floor((room - margin - 4) / size), size <= 20 ? 24 : size <= 40 ? 17 : size <= 60 ? 12 : 9), 34);
  return {cell, margin, labels: size <= 60};
}

function picture(data, {known, order, cell, margin, labels}, state, point, pick) {
  const colours = diverging();
  const size = order.length;
  const side = size * cell;
  const place = new Map(order.map((index, position) => [index, position]));
  const grid = svg('g', {transform: `translate(${margin} ${margin})`, class: 'heatmap-cells'});
  grid.append(svg('rect', {width: side, height: side, fill: ink('panel')}));
  if (state.forecast) grid.append(...forecasts(data, known, place, cell, colours));
  grid.append(...squares(data.cells.map(([row, column, rate]) =>
    [place.get(column) * cell, place.get(row) * cell, cell - GAP, colours(rate)[0]])));
  for (const [row, column, rate] of cell >= NUMBERS ? data.cells : []) {
    grid.append(svg('text', {x: (place.get(column) + 0.5) * cell, y: (place.get(row) + 0.5) * cell + 4,
      fill: colours(rate)[1], class: 'heatmap-number'}, Math.round(rate * 100)));
  }
  grid.append(svg('rect', {width: side, height: side, fill: 'transparent', class: 'heatmap-hit',
    onpointermove: (event) => point(...at(event, size)), onclick: (event) => {
      point(...at(event, size));
      pick();
    }}));
  const whole = svg('svg', {width: margin + side + 4, height: margin + side + 4, role: 'img', 'aria-label': summaryOf(data)},
    grid);
  if (labels) whole.append(...names(data, order, cell, margin));
  return whole;
}

function at(event, size) {
  const box = event.currentTarget.getBoundingClientRect();
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
  const unmet = policies.filter((_, number) => !cells.some(([row, column]) => row === number || column === number)).length;
  const blank = unmet ? `; ${counted(unmet, 'row')} of them ${unmet === 1 ? 'is' : 'are'} blank, as ${unmet === 1 ? 'it has' : 'they have'} met none of the others yet` : '';
  const met = `${whole(cells.length / 2 >> 0)} of ${whole((policies.length * (policies.length - 1)) / 2)} pairs have met${blank}`;
  return `Win rates of each row${seat} against each column; blue wins, orange loses. ${met}; counted are ` +
    `${data.counts}. ${extentText(extent)}`.trim();
}

function orderSelect(data, state, redraw, id) {
  const labels = {rating: 'rating', name: 'name', cluster: 'likeness'};
  return h('label', {}, 'Order by ', h('select', {id: `${id}-order`, value: state.order, onchange: (event) => {
    state.order = event.currentTarget.value;
    redraw();
  }}, Object.keys(data.orders).map((order) => h('option', {value: order}, labels[order] || order))));
}

function forecastBox(state, redraw, id) {
  const box = h('input', {id: `${id}-marks`, type: 'checkbox', checked: state.forecast, onchange: (event) => {
    state.forecast = event.currentTarget.checked;
    redraw();
  }});
  return h('label', {}, box, ' small marks: what ratings expect of pairs that have not met');
}

function scale() {
  const steps = [0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1];
  const colours = diverging();
  const boxes = steps.map((rate) => {
    const [fill, text] = colours(rate);
    const box = h('span', {class: 'heatmap-step', key: `${rate} ${fill}`}, `${Math.round(rate * 100)}`);
    box.style.background = fill;
    box.style.color = text;
    return box;
  });
  return h('p', {class: 'heatmap-scale'}, 'row wins, %: ', boxes);
}

function tableOfPairs(data, most) {
  const columns = [{label: 'home'}, {label: 'away'}, {label: 'win rate', number: true},
    {label: '90 % interval', number: true}, {label: 'games', number: true}];
  const rows = data.cells.slice(0, most).map(([row, column, rate, low, high, games]) => [
    data.policies[row].policy, data.policies[column].policy, rate.toFixed(3),
    `${low.toFixed(2)} to ${high.toFixed(2)}`, whole(games)]);
  return {columns, rows, more: moreText(data.cells.length, most)};
}
