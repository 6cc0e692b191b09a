// Lines along steps or time, with bands for intervals, by uPlot; every line has a colour and a dash of its own.

import uPlot from '../vendor/uplot/uPlot.esm.js';
import {h, part} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {colour, onTheme} from './colours.js';
import {timeText} from './course.js';
import {frame, keyboard, moreText, short, svgLine} from './elements.js';
import {picture} from './line_picture.js';
import {FEW, viewOf} from './line_view.js';
import {onChoice, rangeOf, zoom} from './view_state.js';

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const HEIGHT = 280;
const NEAR_PX = 6;

/**
 * Draws lines in a part of its own.
 * data: {title, summary?, y?, series: [{label, steps?, times?, values, low?, high?, colour?, dash?, isDots?}], x?, table?}. Points
 * may stand at other steps in every series; steps are env steps, but for an `x` of the plot's own, which names them.
 * options: height, range ([low, high] of y), level, course (see course.js), run (name, for the range that is shown).
 */
export function draw(root, data, options = {}) {
  root.append(part(`plot-${data.title}`, mount, data, options));
}

function mount(box, ...given) {
  let [data, options] = given;
  const {body, tell, head, id} = frame(box, {title: data.title, level: options.level});
  const holder = h('div', {class: 'plot-lines', tabindex: 0, id: `${id}-lines`, role: 'application',
    'aria-label': `${data.title}: left and right arrow keys read the values, Escape shows all.`});
  const legend = h('ul', {class: 'plot-legend', id: `${id}-legend`}), empty = h('p', {class: 'plot-note'}, 'Nothing has been reported yet.');
  body.append(legend, holder, empty);
  const hidden = new Set();
  let view = null, chart = null, form = '', at = null;

  function drawLegend() {
    const items = view.lines.map((line) => {
      const value = valueAt(line, at === null ? null : view.columns[0][at]);
      const isHidden = hidden.has(line.label);
      return h('li', {key: line.label}, h('button', {type: 'button', class: 'plot-key', 'aria-pressed': String(!isHidden), onclick: () => {
        if (isHidden) hidden.delete(line.label); else hidden.add(line.label);
        build();
      }}, svgLine(`var(--series-${line.colour + 1})`, DASHES[line.dash % 4]), ` ${line.label} `, h('b', {}, value)));
    });
    show(legend, items);
  }
  function setCursor() {
    if (!chart) return; // while it is being made
    const now = chart.cursor.idx ?? null;
    const mark = nearMark(view, chart);
    if (mark) tell(`${timeText(mark.time, 1e9)} UTC: ${mark.text}`);
    else if (at !== now && chart.cursor.left >= 0) tell('');
    if (at === now) return;
    at = now;
    drawLegend();
  }
  function build() {
    if (chart) chart.destroy();
    chart = null;
    at = null;
    if (!view.lines.length) return;
    chart = new uPlot(settings(view, {height: options.height || HEIGHT, width: Math.max(holder.clientWidth || 640, 220), range: options.range, hidden, setCursor,
      run: options.run || 'report'}), view.columns, holder);
    drawLegend();
  }
  function follow() {
    view = viewOf(data, options);
    const range = rangeOf(options.run || 'report', view.axis);
    holder.dataset.range = range ? range.join(' ') : '';
    empty.hidden = view.lines.length > 0;
    holder.hidden = legend.hidden = !view.lines.length;
    head({title: data.title, summary: data.summary, table: view.lines.length ? data.table || ((most) => tableOf(view, data, most)) : null,
      picture: () => picture(chart, view, data, DASHES), rows: () => csvOf(view, data)});
    if (chart && form === view.form) {
      chart.view = view;
      chart.setData(view.columns);
      drawLegend();
    } else {
      form = view.form;
      build();
    }
  }
  follow();
  let shown = -1;
  keyboard(holder, {
    step: (dx) => {
      if (!chart) return;
      shown = Math.min(Math.max(shown + (dx || 0), 0), view.columns[0].length - 1);
      chart.setCursor({left: chart.valToPos(view.columns[0][shown], 'x'), top: 10});
      tell(valuesAt(view, data, shown));
    },
  });
  holder.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') zoom(options.run || 'report', view.axis, null);
  });
  const ends = [onTheme(() => build()), onChoice(follow)];
  const resized = new ResizeObserver(() => {
    if (chart && holder.clientWidth > 0 && Math.abs(holder.clientWidth - chart.width) > 1) chart.setSize({width: holder.clientWidth, height: options.height || HEIGHT});
  });
  resized.observe(holder);
  return {
    update(...next) {
      [data, options] = next;
      follow();
    },
    remove() {
      for (const end of ends) end();
      resized.disconnect();
      if (chart) chart.destroy();
    },
  };
}

function settings(view, {height, width, range, hidden, setCursor, run}) {
  const series = [{label: view.label}], bands = [];
  for (const line of view.lines) {
    const stroke = colour(`series-${line.colour + 1}`), shows = !hidden.has(line.label);
    series.push({label: line.label, show: shows, stroke, width: 2, dash: DASHES[line.dash % 4],
      ...(line.isDots ? {paths: () => null} : {}), points: {show: line.isDots || line.values.length <= FEW, size: 5, fill: stroke}});
    const edge = {show: shows, stroke: 'transparent', width: 0, points: {show: false}};
    if (line.low) {
      series.push({...edge, label: `${line.label}, low`}, {...edge, label: `${line.label}, high`});
      bands.push({series: [series.length - 1, series.length - 2], fill: faint(stroke)});
    }
    if (line.isSmoothed) series.push({show: shows, label: `${line.label}, as reported`, stroke: faint(stroke), width: 1, points: {show: false}});
  }
  const axis = {stroke: colour('muted'), grid: {stroke: colour('line'), width: 1}, ticks: {stroke: colour('line'), width: 1}};
  const isTime = view.axis === 'wall';
  const onX = (chart, ticks) => ticks.map((tick) => (isTime ? timeText(tick, chart.scales.x.max - chart.scales.x.min) : tickText(tick, ticks)));
  return {
    width, height, series, bands,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    scales: {
      x: {time: isTime, range: (chart) => rangeOf(run, view.axis) || widened((chart.view || view).extent)},
      y: range ? {range} : {range: (chart, low, high) => roomy(low, high)},
    },
    axes: [{...axis, label: view.label, labelSize: 22, size: 42, values: onX, space: isTime ? 80 : 50},
      {...axis, size: 58, values: (chart, ticks) => ticks.map((tick) => tickText(tick, ticks))}],
    legend: {show: false},
    cursor: {drag: {x: true, y: false, setScale: false}, focus: {prox: 24}, sync: {key: view.axis, setSeries: false, scales: ['x', null]},
      bind: {dblclick: () => () => zoom(run, view.axis, null)}},
    hooks: {
      init: [(chart) => { chart.view = view; }],
      drawClear: [drawGaps], draw: [drawMarks], setCursor: [setCursor],
      setSelect: [(chart) => {
        const {left, width: wide} = chart.select;
        if (wide > 4) zoom(run, view.axis, [chart.posToVal(left, 'x'), chart.posToVal(left + wide, 'x')]);
        chart.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
      }],
    },
  };
}

function widened([low, high]) {
  return high > low ? [low, high] : [low - 0.5, low + 0.5];
}

function drawGaps(chart) {
  const {ctx, bbox} = chart;
  ctx.save();
  ctx.fillStyle = colour('plain-ground');
  for (const [from, to] of chart.view.gaps) {
    const [left, right] = [from, to].map((one) => Math.min(Math.max(chart.valToPos(one, 'x', true), bbox.left), bbox.left + bbox.width));
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  ctx.restore();
}

const MARKS = {gate: ['muted', [], 0.06], reset: ['warn', [4, 4], 1], change: ['accent', [2, 3], 1], start: ['bad', [], 1]};

function drawMarks(chart) {
  const {ctx, bbox} = chart;
  ctx.save();
  for (const mark of chart.view.marks) {
    const x = chart.valToPos(mark.at, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const [ink, dash, height] = MARKS[mark.kind];
    ctx.strokeStyle = colour(ink);
    ctx.setLineDash(dash.map((one) => one * devicePixelRatio));
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top + bbox.height * (1 - height));
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function nearMark(view, chart) {
  const left = chart.cursor.left;
  if (!(left >= 0)) return null;
  const near = view.marks.map((mark) => [Math.abs(chart.valToPos(mark.at, 'x') - left), mark]).filter(([px]) => px <= NEAR_PX);
  return near.length ? near.sort((a, b) => a[0] - b[0])[0][1] : null;
}

// As many digits as it takes to tell the ticks of an axis apart.
function tickText(tick, ticks) {
  if (tick === null) return '';
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(tick);
  if (Math.abs(tick) >= 1e4 || step >= 1 || step < 1e-4) return short(tick);
  let digits = 0;
  while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return tick.toFixed(digits);
}

// Room above and below the lines, but none below 0 where they come near it; a level line lies in the middle.
function roomy(low, high) {
  if (low === null || high === null || low === undefined) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 && low < 3 * room ? 0 : low - room, high + room];
}

function faint(text) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text);
  return hex ? `${text}2e` : text.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.18)');
}

// The newest value of a line at or before a place, or of all; with its interval.
function valueAt(line, at) {
  let place = line.values.length - 1;
  while (at !== null && place > 0 && line.places[place] > at) place -= 1;
  return textOf(line, place);
}

function textOf(line, place) {
  return `${short(line.shown[place])}${line.low ? ` [${short(line.low[place])}, ${short(line.high[place])}]` : ''}`;
}

function valuesAt(view, data, index) {
  const at = view.columns[0][index];
  const parts = view.lines.flatMap((line) => {
    const place = line.places.indexOf(at);
    return place < 0 ? [] : [`${line.label} ${short(line.values[place])}${line.low ? ` (${short(line.low[place])} to ${short(line.high[place])})` : ''}`];
  });
  const where = view.axis === 'wall' ? timeText(at, 60) : `${short(at)}`;
  return `${view.label} ${where}: ${parts.join(', ')}`;
}

function tableOf(view, data, most) {
  const bands = view.lines.some((line) => line.low);
  const columns = [{label: 'series'}, {label: view.label, number: true}, {label: data.y || 'value', number: true}];
  if (bands) columns.push({label: 'interval', number: true});
  const rows = view.lines.flatMap((line) => line.places.map((at, place) => {
    const row = [line.label, view.axis === 'wall' ? timeText(at, 1e9) : at.toLocaleString('en'), short(line.values[place])];
    if (bands) row.push(line.low ? `${short(line.low[place])} to ${short(line.high[place])}` : '');
    return row;
  }));
  return {columns, rows: rows.slice(0, most), more: moreText(rows.length, most)};
}

// Every number as it was reported, smoothed or not.
function csvOf(view, data) {
  const head = ['series', view.axis === 'wall' ? 'seconds since 1970' : view.label, data.y || 'value', 'low', 'high'];
  return [head, ...view.lines.flatMap((line) => line.places.map((at, place) =>
    [line.label, at, line.values[place], line.low ? line.low[place] : '', line.high ? line.high[place] : '']))];
}
