// Lines over steps, with bands for intervals, by uPlot; every line has a colour and a dash of its own.

import uPlot from '../vendor/uplot/uPlot.esm.js';
import {colour, onTheme} from './colours.js';
import {h} from '../kit/dom.js';
import {frame, keyboard, short} from './elements.js';

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const HEIGHT = 280;

/**
 * Draws lines.
 * data: {title, summary?, x, y?, series: [{label, steps, values, low?, high?, colour?}], table?}. Points may stand at
 * other steps in every series. options: height, range ([low, high] of y), onRemove, level.
 */
export function draw(root, given, options = {}) {
  const data = {...given, series: given.series.filter((one) => one.steps.length)};
  const {body, tell, id} = frame(root, {title: data.title, summary: data.summary, level: options.level,
    table: data.table || (() => tableOf(data))});
  if (!data.series.length) {
    body.append(h('p', {class: 'plot-note'}, 'Nothing has been reported yet.'));
    return;
  }
  const holder = h('div', {class: 'plot-lines', tabindex: 0, id: `${id}-lines`, role: 'application',
    'aria-label': `${data.title}: left and right arrow keys read the values.`});
  body.append(holder);
  const aligned = align(data.series);
  let chart = null;
  let shown = -1;
  const build = () => {
    if (chart) chart.destroy();
    const width = Math.max(holder.clientWidth || 640, 240);
    chart = new uPlot(settings(data, options, width), aligned.columns, holder);
  };
  build();
  keyboard(holder, {
    step: (dx) => {
      shown = Math.min(Math.max(shown + (dx || 0), 0), aligned.columns[0].length - 1);
      const x = aligned.columns[0][shown];
      chart.setCursor({left: chart.valToPos(x, 'x'), top: 10});
      tell(valuesAt(data, aligned, shown));
    },
  });
  const stopTheme = onTheme(build);
  const resized = new ResizeObserver(() => {
    if (chart && holder.clientWidth > 0 && Math.abs(holder.clientWidth - chart.width) > 1) {
      chart.setSize({width: holder.clientWidth, height: options.height || HEIGHT});
    }
  });
  resized.observe(holder);
  if (options.onRemove) {
    options.onRemove(() => {
      stopTheme();
      resized.disconnect();
      chart.destroy();
    });
  }
}

// uPlot wants one column of x for all: the union of all steps, with gaps where a series has no point.
function align(series) {
  const steps = [...new Set(series.flatMap((one) => [...one.steps]))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, index) => [step, index]));
  const columns = [steps];
  for (const one of series) {
    for (const part of one.low ? [one.values, one.low, one.high] : [one.values]) {
      const column = new Array(steps.length).fill(null);
      one.steps.forEach((step, index) => {
        column[place.get(step)] = part[index];
      });
      columns.push(column);
    }
  }
  return {columns};
}

function settings(data, options, width) {
  const series = [{label: data.x, value: (chart, value) => (value === null ? '\u2013' : short(value))}];
  const bands = [];
  data.series.forEach((one, number) => {
    const index = one.colour ?? number;
    const stroke = colour(`series-${(index % 8) + 1}`);
    const few = one.steps.length <= 60;
    series.push({label: one.label, stroke, width: 2, spanGaps: true, dash: DASHES[Math.floor(index / 8) % 4],
      points: {show: few, size: 5, fill: stroke}, value: (chart, value) => (value === null ? '\u2013' : short(value))});
    if (one.low) {
      const edge = {stroke: 'transparent', width: 0, spanGaps: true, points: {show: false}};
      series.push({...edge, label: `${one.label}, low`, class: 'plot-edge'}, {...edge, label: `${one.label}, high`, class: 'plot-edge'});
      bands.push({series: [series.length - 1, series.length - 2], fill: faint(stroke)});
    }
  });
  const axis = {stroke: colour('muted'), grid: {stroke: colour('line'), width: 1}, ticks: {stroke: colour('line'), width: 1},
    values: (chart, ticks) => ticks.map((tick) => (tick === null ? '' : tickText(tick, ticks)))};
  const y = options.range ? {range: options.range} : {range: (chart, low, high) => roomy(low, high)};
  return {
    width, height: options.height || HEIGHT, series, bands,
    scales: {x: {time: false}, y},
    axes: [{...axis, label: data.x, labelSize: 22, size: 42},
      {...axis, ...(data.y ? {label: data.y, labelSize: 22} : {}), size: 58}],
    legend: {live: true, markers: {width: 2, dash: (chart, index) => ((series[index].dash || []).length ? 'dashed' : 'solid')}},
    cursor: {drag: {x: true, y: false}, focus: {prox: 24}},
  };
}

// As many digits as it takes to tell the ticks of an axis apart.
function tickText(tick, ticks) {
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(tick);
  if (Math.abs(tick) >= 1e4 || step >= 1 || step < 1e-4) return short(tick);
  let digits = 0;
  while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return tick.toFixed(digits);
}

// Room above and below the lines, but none below 0 where they come near it; a level line lies in the middle.
function roomy(low, high) {
  if (low === null || high === null) return [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 && low < 3 * room ? 0 : low - room, high + room];
}

function faint(text) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text);
  return hex ? `${text}2e` : text.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.18)');
}

function valuesAt(data, aligned, index) {
  const at = aligned.columns[0][index];
  const parts = data.series.flatMap((one) => {
    const place = one.steps.indexOf(at);
    if (place < 0) return [];
    const interval = one.low ? ` (${short(one.low[place])} to ${short(one.high[place])})` : '';
    return [`${one.label} ${short(one.values[place])}${interval}`];
  });
  return `${data.x} ${short(at)}: ${parts.join(', ')}`;
}

function tableOf(data) {
  const most = 400;
  const bands = data.series.some((one) => one.low);
  const columns = [{label: 'series'}, {label: data.x, number: true}, {label: data.y || 'value', number: true}];
  if (bands) columns.push({label: 'interval', number: true});
  const rows = data.series.flatMap((one) => one.steps.map((step, index) => {
    const row = [one.label, step.toLocaleString('en'), short(one.values[index])];
    if (bands) row.push(one.low ? `${short(one.low[index])} to ${short(one.high[index])}` : '');
    return row;
  }));
  const more = rows.length > most ? `${(rows.length - most).toLocaleString('en')} more are in the JSON and CSV.` : '';
  return {columns, rows: rows.slice(0, most), more};
}
