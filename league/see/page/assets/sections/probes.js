import {badge, card, figure, h, note} from '../kit/dom.js';
import {table} from '../kit/table.js';
import {count, counted, fixed, percent, short} from '../kit/format.js';
import {draw as lines} from '../plots/lines.js';
import {drawProbes} from '../plots/ratings.js';

export const title = 'Probes';
export const usesCourse = true;

const ROWS = 60;

export function render(root, data, context) {
  const options = {level: 2, ...context.plots}, report = data.report;
  const rows = report.series.flatMap(({probe, yardstick, points}) => points.map((point) => ({...point, probe, yardstick}))).sort((a, b) => b.number - a.number).slice(0, ROWS);
  if (report.expected) root.append(note(report.expected));
  if (report.ended) {
    const share = data.run_core_seconds ? percent(report.core_seconds / data.run_core_seconds, 1) : null;
    root.append(h('dl', {class: 'figures'}, figure('probes', count(report.ended)), figure('core-seconds', short(report.core_seconds), share ? `${share} of the run` : null),
      figure('yardsticks', count(data.curves.length)), figure('being measured', report.open || 'nothing')));
  }
  const remarks = [['unfit', 'does not fit', 'plain'], ['problems', 'failed', 'bad'], ['remarks', 'left out', 'warn']].flatMap(([field, words, kind]) =>
    Object.entries(report[field]).filter(([probe]) => field !== 'problems' || !report.unfit[probe]).map(([probe, why]) => h('li', {key: `${field} ${probe}`}, badge(words, kind), ` ${probe}: ${why}`)));
  if (remarks.length) root.append(card('Not measured', h('ul', {class: 'checks'}, remarks)));
  if (!rows.length) return;
  const plots = card('');
  root.append(plots);
  drawProbes(plots, data.curves, options);
  lines(plots, {title: 'Cost of probes', y: 'core-seconds', summary: 'Core-seconds of the probes of a kind so far, of those that had a reading.',
    series: data.costs.map((cost) => ({label: cost.probe, steps: cost.env_steps, values: cost.core_seconds}))}, {height: 200, ...options});
  root.append(card('Readings', table({id: 'probe-readings', caption: 'Readings, the newest first', keyOf: (row) => `${row.number} ${row.yardstick}`, rows, columns: [
    {key: 'number', label: 'Probe', value: (row) => row.number, cell: (row) => `${row.number}: ${row.probe}`}, {key: 'yardstick', label: 'Yardstick'}, {key: 'snapshot', label: 'Snapshot', rank: 2},
    {key: 'value', label: 'Reading', number: true, cell: (row) => h('b', null, fixed(row.value))},
    {key: 'low', label: '95 %', number: true, rank: 3, cell: (row) => (row.games ? `${fixed(row.low)} to ${fixed(row.high)}` : 'exact')},
    {key: 'games', label: 'Games', number: true, rank: 1, cell: (row) => count(row.games)}, {key: 'core_seconds', label: 'Core-seconds', number: true, rank: 1, cell: (row) => short(row.core_seconds)},
    {key: 'env_steps', label: 'Env steps', number: true, rank: 2, cell: (row) => count(row.env_steps)}, {key: 'note', label: 'Note', rank: 1}]}),
  note(`${counted(rows.length, 'newest reading')} of ${counted(data.curves.length, 'yardstick')}. One probe may have several readings; its cost stands at each.`)));
}
