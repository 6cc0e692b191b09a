// A sweep: its trials over parallel axes, the best so far, which settings mattered, and each trial's run.

import {badge, card, figure, h, note} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {reportLink} from '../kit/report_link.js';
import {table} from '../kit/table.js';
import {count, duration, fixed, percent} from '../kit/format.js';
import {draw as lines} from '../plots/lines.js';
import {draw as parallel, textOf} from '../plots/parallel.js';

const KINDS = {complete: 'good', pruned: 'plain', failed: 'bad', running: 'warn'};
const COMPARED = 4;

/** Draws a sweep into `main`. context: {runLink, refresh}, where runLink is (section, query, run) => address. */
export function draw(main, {name, path, report, error}, context) {
  const heading = h('h1', {tabindex: -1, id: 'heading'}, `Sweep ${name}`);
  if (!report) {
    show(main, heading, error ? h('p', {class: 'card bad-edge', role: 'alert'}, error) : note('The trials are being read; they come by themselves.'));
    return;
  }
  const trials = report.trials.map((trial) => ({...trial, value: trial.state === 'complete' && trial.rungs.length ? trial.rungs[trial.rungs.length - 1] : null}));
  const ranked = trials.filter((trial) => trial.value !== null).sort((a, b) => b.value - a.value);
  const run = (trial) => `${name}~${String(trial.number).padStart(4, '0')}`;
  const data = {trials, space: report.space, objective: report.objective, best: report.best};
  show(main, heading,
    h('dl', {class: 'figures'}, figure('trials', count(trials.length), report.is_live ? 'at work' : 'nobody works on it'),
      ...['complete', 'pruned', 'failed'].map((state) => figure(state, count(trials.filter((trial) => trial.state === state).length))),
      figure('core-seconds', count(trials.reduce((sum, trial) => sum + trial.core_seconds, 0)), `${duration(report.core_seconds)} each`)),
    ranked.length ? best(ranked, report, run, context) : note('No trial is complete yet.'),
    ranked.length ? h('section', {class: 'card', key: 'plots'}, drawn((box) => parallel(box, data, {level: 2}))) : null,
    h('div', {class: 'columns', key: 'columns'}, ranked.length ? h('section', {class: 'card', key: 'course'}, drawn((box) => lines(box, course(trials, report), {level: 2, height: 220, run: `~${name}`}))) : null,
      card('What mattered', importance(report, ranked.length))),
    card('Trials', table({id: 'sweep-trials', caption: 'Trials', keyOf: (trial) => trial.number, rows: [...ranked, ...trials.filter((trial) => trial.value === null)], columns: columns(report, run, context)})));
}

function drawn(fill) {
  const box = h('div');
  fill(box);
  return box;
}

function best([first, ...others], report, run, context) {
  const compared = others.slice(0, COMPARED - 1).map(run).join(',');
  return h('section', {class: 'card good-edge', key: 'best', id: 'sweep-best'}, h('h2', null, `The best so far: trial ${first.number}`),
    h('p', null, h('b', null, `${report.objective} ${fixed(first.value, 4)}`), first.detail ? ` (${first.detail})` : null, ': ',
      Object.entries(first.values).map(([key, value]) => `${key} ${textOf(value)}`).join(', '), '.'),
    h('p', null, h('a', {href: context.runLink('overview', {}, run(first)), id: 'sweep-best-run'}, 'Open its run'), ' · ',
      compared ? [h('a', {href: context.runLink('compare', {runs: compared}, run(first)), id: 'sweep-compare'}, `Compare the best ${Math.min(others.length + 1, COMPARED)}`), ' · '] : null,
      reportLink([first, ...others.slice(0, COMPARED - 1)].map(run)), ' · ', h('code', null, `league train ${report.best_config}`)));
}

// The value of each complete trial, and the best up to there.
function course(trials, report) {
  const complete = trials.filter((trial) => trial.value !== null);
  const steps = complete.map((trial) => trial.number);
  let top = -Infinity;
  const tops = complete.map((trial) => { top = Math.max(top, trial.value); return top; });
  return {title: 'The best so far', x: 'trial', y: report.objective, summary: `Complete trials in their order; more is better.`,
    series: [{label: 'best so far', steps, values: tops, colour: 1}, {label: 'each trial', steps, values: complete.map((trial) => trial.value), colour: 0, isDots: true}]};
}

function importance(report, complete) {
  const found = Object.entries(report.importance);
  if (!found.length) return note(`Said from 20 complete trials on, as fewer are mostly noise; ${complete} are complete.`);
  return [h('dl', {class: 'importance'}, found.flatMap(([key, share]) => [h('dt', {key}, key), h('dd', null, h('progress', {max: 1, value: share, 'aria-label': `Part of ${key} in the differences`}), ` ${percent(share)}`)])),
    note('Its part in the differences between trials (PED-ANOVA).')];
}

function columns(report, run, context) {
  return [
    {key: 'number', label: 'Trial', cell: (trial) => h('a', {href: context.runLink('overview', {}, run(trial)), id: `trial-${trial.number}`}, String(trial.number))},
    {key: 'state', label: 'State', cell: (trial) => h('span', {title: trial.detail || null}, badge(trial.state, KINDS[trial.state] || 'plain'))},
    {key: 'value', label: report.objective, number: true, cell: (trial) => (trial.value === null ? null : h('b', null, fixed(trial.value, 4)))},
    ...(report.rungs > 1 ? [{key: 'rungs', label: 'At each rung', rank: 1, value: (trial) => trial.rungs[0] ?? null, cell: (trial) => trial.rungs.map((value) => fixed(value, 3)).join(', ')}] : []),
    ...Object.keys(report.space).map((key) => ({key, label: key.split('.').pop(), number: true, rank: 2, value: (trial) => trial.values[key] ?? null, cell: (trial) => (key in trial.values ? textOf(trial.values[key]) : null)})),
    {key: 'core_seconds', label: 'Core-s', number: true, rank: 1, cell: (trial) => fixed(trial.core_seconds, 1)},
  ];
}
