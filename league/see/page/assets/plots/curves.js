// Metrics over env steps, one small plot for each: of a run, of a player, or of several runs beside each other.

import {h} from '../kit/dom.js';
import {draw as lines} from './lines.js';

const FEW = 15;

/** Draws a list of Curve, or the curves of a PlayerCurves. */
export function draw(root, curves, options = {}) {
  const grid = h('div', {class: 'plot-grid'});
  root.append(grid);
  for (const {label, unit, meaning, steps, times, values} of curves) {
    const title = label[0].toUpperCase() + label.slice(1);
    const summary = `${meaning[0].toUpperCase()}${meaning.slice(1)}.`;
    lines(grid, {title, summary, y: unit || label, series: [{label, steps, times, values}]},
      {height: 200, ...options});
  }
}

/** Draws a Comparison: the settings in which runs differ, and their curves. */
export function drawComparison(root, data, options = {}) {
  const grid = h('div', {class: 'plot-grid'});
  root.append(grid);
  for (const {label, unit, meaning, runs} of data.curves) {
    const series = runs.map(({run, steps, values}) => ({label: run, steps, values, colour: data.runs.indexOf(run)}));
    lines(grid, {title: label[0].toUpperCase() + label.slice(1), summary: `${meaning[0].toUpperCase()}${meaning.slice(1)}.`,
      y: unit || label, series}, {height: 240, ...options});
  }
  root.append(...settings(data));
}

// Many differences are closed at first: two games have little in common.
function settings(data) {
  if (!data.settings.length) return [h('p', {}, 'All settings are the same.')];
  const head = ['setting', ...data.runs].map((label) => h('th', {scope: 'col'}, label));
  const rows = data.settings.map(({key, values}) => h('tr', {}, h('th', {scope: 'row'}, key),
    values.map((text) => h('td', {}, text.length > 60 ? `${text.slice(0, 57)}...` : text || '\u2013'))));
  const hidden = data.num_settings - data.settings.length;
  const caption = `${data.num_settings} settings differ${hidden ? `, of which ${data.settings.length} are listed` : ''}`;
  const table = h('div', {class: 'plot-scroll', tabindex: 0, role: 'region', 'aria-label': 'Settings that differ'},
    h('table', {}, h('caption', {}, caption), h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows)));
  return [h('details', {class: 'plot-frame plot-settings', id: 'plot-settings', open: data.num_settings <= FEW},
    h('summary', {}, caption), table)];
}
