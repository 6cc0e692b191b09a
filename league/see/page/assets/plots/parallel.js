// Trials of a sweep as lines over parallel axes, one for each setting and one for the objective.

import {ink} from './colours.js';
import {h, part, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {frame, keyboard, short} from './elements.js';

const HINT = 'Point at a line, or move with the arrow keys from the best trial down. Drag along an axis to see the trials in that range; a click on it shows all again.';
const [TOP, HEIGHT, BELOW, SIDE, LEAST] = [34, 240, 22, 46, 104];

/** Draws trials. data: {trials: [{number, state, value, values}], space: key -> {low, high, log} or {values}, objective, best}. */
export function draw(root, data, options = {}) {
  root.append(part('parallel', mount, data, options));
}

function mount(box, ...given) {
  let [data, options] = given;
  const title = 'Settings and strength';
  const {body, tell, head, id} = frame(box, {title, hint: HINT, level: options.level});
  const holder = h('div', {class: 'plot-scroll', tabindex: 0, id: `${id}-lines`, role: 'application', 'aria-label': `${title}: up and down arrow keys read the trials, the best first.`});
  body.append(holder);
  const ranges = new Map(); // label of an axis -> the part of it, from 0 to 1, in which trials are shown
  let room = 0, axes = [], ranked = [], chosen = -1, from = null;

  function redraw() {
    room = holder.clientWidth || 0;
    axes = axesOf(data);
    ranked = data.trials.filter((trial) => trial.value !== null).sort((a, b) => b.value - a.value);
    const others = data.trials.filter((trial) => trial.value === null && trial.state === 'pruned');
    head({title, summary: `Each line is a trial, the fuller its colour the stronger; the best is orange. Thin grey ones were cut off early (${others.length}).`, table: () => tableOf(data)});
    show(holder, picture(others));
  }
  function picture(others) {
    const width = Math.max(room, 2 * SIDE + LEAST * (axes.length - 1));
    const step = (width - 2 * SIDE) / Math.max(axes.length - 1, 1);
    const x = (place) => SIDE + step * place, y = (part) => TOP + HEIGHT * (1 - part);
    const within = (trial) => axes.every((axis) => !ranges.has(axis.label) || inside(axis.place(trial), ranges.get(axis.label)));
    const path = (trial) => axes.map((axis, place) => [place, axis.place(trial)]).filter(([, part]) => part !== null)
      .map(([place, part], index) => `${index ? 'L' : 'M'}${x(place).toFixed(1)} ${y(part).toFixed(1)}`).join('');
    const line = (trial, rank) => {
      const isBest = trial.number === data.best, isChosen = rank === chosen;
      return svg('path', {key: `trial-${trial.number}`, d: path(trial), fill: 'none', class: 'parallel-line', stroke: isBest ? 'var(--series-2)' : 'var(--series-1)',
        'stroke-width': isChosen ? 4 : isBest ? 3 : 1.5, opacity: !within(trial) ? 0.05 : isBest || isChosen ? 1 : 0.15 + 0.75 * (1 - rank / ranked.length) ** 2, onpointerenter: () => point(rank)});
    };
    return svg('svg', {width, height: TOP + HEIGHT + BELOW, role: 'img', 'aria-label': `${ranked.length} trials over ${axes.length} axes`},
      others.map((trial) => svg('path', {key: `trial-${trial.number}`, d: path(trial), fill: 'none', stroke: ink('muted'), 'stroke-width': 1, opacity: within(trial) ? 0.35 : 0.05})),
      [...ranked].reverse().map((trial, place) => line(trial, ranked.length - 1 - place)),
      axes.map((axis, place) => axisOf(axis, x(place), y, step, place)));
  }
  function axisOf(axis, at, y, step, place) {
    const range = ranges.get(axis.label);
    const words = axis.label.split('.').pop();
    const anchor = place === 0 ? 'start' : place === axes.length - 1 ? 'end' : 'middle';
    const edge = {start: -SIDE + 2, middle: 0, end: SIDE - 2}[anchor];
    const partAt = (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      const part = 1 - (event.clientY - box.top) / box.height;
      return part < 0.03 ? 0 : part > 0.97 ? 1 : part; // the ends are easy to miss
    };
    return svg('g', {key: `axis-${axis.label}`}, svg('text', {x: at + edge, y: 14, 'text-anchor': anchor, fill: ink('ink'), class: 'plot-label', 'font-weight': 600}, words, svg('title', {}, axis.label)),
      svg('path', {d: `M${at} ${TOP}V${TOP + HEIGHT}`, stroke: ink('muted'), 'stroke-width': 1}),
      axis.ticks.map(([text, part]) => svg('text', {x: at + 5, y: y(part) + 4, fill: ink('ink'), class: 'plot-label parallel-tick'}, text)),
      range ? svg('rect', {x: at - 6, width: 12, y: y(range[1]), height: y(range[0]) - y(range[1]), fill: 'var(--series-2)', opacity: 0.35}) : null,
      svg('rect', {x: at - 14, width: 28, y: TOP, height: HEIGHT, fill: 'transparent', class: 'parallel-axis', 'data-axis': axis.label,
        onpointerdown: (event) => { from = partAt(event); event.currentTarget.setPointerCapture(event.pointerId); },
        onpointerup: (event) => {
          const to = partAt(event), [low, high] = [Math.min(from, to), Math.max(from, to)];
          if (high - low < 0.02) ranges.delete(axis.label); else ranges.set(axis.label, [low, high]);
          redraw();
          tell(`${ranked.filter((trial) => axes.every((one) => !ranges.has(one.label) || inside(one.place(trial), ranges.get(one.label)))).length} of ${ranked.length} trials are in the ranges.`);
        }}));
  }
  function point(rank) {
    chosen = rank;
    redraw();
    const trial = ranked[rank];
    tell(`Trial ${trial.number}: ${data.objective} ${short(trial.value)}, ${Object.entries(trial.values).map(([key, value]) => `${key} ${textOf(value)}`).join(', ')}`);
  }
  redraw();
  keyboard(holder, {step: (dx, dy) => ranked.length && point(Math.min(Math.max(chosen + (dx || dy), 0), ranked.length - 1))});
  const resized = new ResizeObserver(() => { if (Math.abs((holder.clientWidth || 0) - room) > 1) redraw(); });
  resized.observe(box);
  return {
    update(...next) {
      [data, options] = next;
      redraw();
    },
    remove() { resized.disconnect(); },
  };
}

function inside(part, [low, high]) {
  return part !== null && part >= low - 1e-9 && part <= high + 1e-9;
}

export function textOf(value) {
  return typeof value === 'number' ? short(value) : String(value);
}

// Each axis: its label, the place of a trial on it from 0 to 1, or null, and its ticks.
function axesOf({trials, space, objective}) {
  const axes = Object.entries(space).map(([key, found]) => {
    if (found.values) {
      const part = (value) => { const place = found.values.indexOf(value); return place < 0 ? null : (place + 0.5) / found.values.length; };
      return {label: key, place: (trial) => part(trial.values[key]), ticks: found.values.map((value) => [value.slice(0, 12), part(value)])};
    }
    const turn = found.log ? Math.log : (value) => value;
    const part = (value) => (value === undefined ? null : (turn(value) - turn(found.low)) / (turn(found.high) - turn(found.low)));
    return {label: key, place: (trial) => part(trial.values[key]), ticks: [[short(found.low), 0], [short(found.high), 1]]};
  });
  const values = trials.map((trial) => trial.value).filter((value) => value !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const part = (value) => (value === null ? null : high > low ? (value - low) / (high - low) : 0.5);
  return [...axes, {label: objective, place: (trial) => part(trial.value), ticks: values.length ? [[short(low), 0], [short(high), 1]].slice(high > low ? 0 : 1) : []}];
}

function tableOf({trials, space, objective}) {
  const keys = Object.keys(space);
  return {columns: [{label: 'trial', number: true}, {label: 'state'}, {label: objective, number: true}, ...keys.map((label) => ({label, number: true}))],
    rows: trials.map((trial) => [trial.number, trial.state, trial.value ?? '', ...keys.map((key) => trial.values[key] ?? '')]), more: ''};
}
