// The first page: every run of the folder as a table, sorted, filtered and grouped; ticked ones are compared, stopped,
// continued and deleted together, and a new one is started.

import {badge, card, h, note} from '../kit/dom.js';
import {deedDone, deedWords} from '../kit/deeds.js';
import {show} from '../kit/patch.js';
import {table} from '../kit/table.js';
import {reportLink} from '../kit/report_link.js';
import {start} from './start.js';
import {ago, count, duration, fixed, percent, size} from '../kit/format.js';

const state = {text: '', phase: '', yardstick: '', isGrouped: false, chosen: new Set(), asked: null, wasEmpty: null};
const MAX_RUNS = 6; // compared at once
const KINDS = {killed: 'bad', failed: 'bad', silent: 'bad', unreadable: 'bad', running: 'good', training: 'good'};

/**
 * Draws the page into `main`. rows: of the table of runs; deeds: the newest ones; games: known ids; pools, sweeps: names;
 * context: {get, post, link, announce, readOnly}, where link is (section, query, run) => address.
 */
export function draw(main, {rows, deeds, games, pools, sweeps}, context) {
  const again = () => draw(main, {rows, deeds, games, pools, sweeps}, context);
  const link = (run, section, query) => context.link(section, query, run);
  state.wasEmpty ??= !rows.length; // its form stays open once the first run is there
  for (const id of state.chosen) if (!rows.some((row) => row.id === id)) state.chosen.delete(id);
  const yardsticks = [...new Set(rows.flatMap((row) => Object.keys(row.scores)))].sort();
  const yardstick = yardsticks.includes(state.yardstick) ? state.yardstick : yardsticks[0] || '';
  const shown = rows.filter((row) => `${row.id} ${row.name} ${row.game} ${row.labels.join(' ')}`.toLowerCase().includes(state.text.toLowerCase()) && (!state.phase || (state.phase === 'live') === row.is_live));
  const groups = state.isGrouped ? [...new Set(shown.map((row) => row.game))].sort() : [null];
  show(main, h('h1', {tabindex: -1, id: 'heading'}, 'Runs'),
    context.readOnly ? null : start(state.wasEmpty, {...context, games}),
    rows.length ? filters(yardsticks, yardstick, again) : note('There is no run here yet.'), rows.length ? chosen(rows, context, link, again) : null,
    deeds.length ? h('details', {class: 'card', id: 'deeds', open: true, key: 'deeds'}, h('summary', null, 'Done from this page'), [...deeds].reverse().slice(0, 6).map((deed) => deedWords(deed, context.link))) : null,
    groups.map((game) => card(game, table({
      id: `runs-${game || 'all'}`, caption: game === null ? 'Runs' : `Runs of ${game}`, keyOf: (row) => row.id,
      rows: shown.filter((row) => game === null || row.game === game), columns: columns(yardstick, rows.some((row) => row.labels.length), link, again),
    }))),
    [['Rating pools', 'pool', pools], ['Sweeps', 'sweep', sweeps]].map(([title, kind, names]) => (names.length ? card(title, h('ul', {class: 'runs'}, names.map((name) =>
      h('li', {key: name}, h('a', {href: context.link(name, {}, `~${kind}`), class: `${kind}-link`}, name))))) : null)),
    shown.length || !rows.length ? null : note('No run fits these filters.'));
}

function filters(yardsticks, yardstick, again) {
  const on = (key) => (event) => {
    state[key] = event.currentTarget.type === 'checkbox' ? event.currentTarget.checked : event.currentTarget.value;
    again();
  };
  return h('form', {class: 'filters', role: 'search', onsubmit: (event) => event.preventDefault()},
    h('span', {class: 'pair'}, h('label', {for: 'runs-text'}, 'Name, game or label has'), h('input', {id: 'runs-text', type: 'search', oninput: on('text')})),
    h('span', {class: 'pair'}, h('label', {for: 'runs-phase'}, 'State'), h('select', {id: 'runs-phase', value: state.phase, onchange: on('phase')},
      [['', 'all'], ['live', 'live'], ['ended', 'not live']].map(([value, text]) => h('option', {value}, text)))),
    yardsticks.length ? h('span', {class: 'pair'}, h('label', {for: 'runs-yardstick'}, 'Score against'), h('select', {id: 'runs-yardstick', value: yardstick, onchange: on('yardstick')},
      yardsticks.map((name) => h('option', {value: name}, name)))) : null,
    h('label', {class: 'choice'}, h('input', {id: 'runs-grouped', type: 'checkbox', checked: state.isGrouped, onchange: on('isGrouped')}), ' by game'));
}

// What can be done with the ticked runs. A deed is asked first: the server says of each run what it would do.
function chosen(rows, context, link, again) {
  const runs = rows.filter((row) => state.chosen.has(row.id));
  const [first, ...others] = runs.map((row) => row.id);
  const ask = (name) => async () => {
    state.asked = {name, said: await Promise.all(runs.map((row) => plan(context, row.id, name)))};
    again();
  };
  const words = others.length ? h('a', {id: 'runs-compare', href: link(first, 'compare', {runs: others.join(',')})}, `Compare ${runs.length} runs`)
    : h('span', {class: 'muted'}, runs.length ? `${first} is ticked.` : 'Tick two runs or more to compare them.');
  const live = runs.filter((row) => row.is_live).length;
  return h('div', {key: 'chosen', class: 'filters', role: 'group', 'aria-label': 'Ticked runs'}, words,
    context.readOnly ? null : [['stop', !live], ['continue', live || !runs.length], ['delete', live || !runs.length]].map(([name, isOff]) =>
      h('button', {type: 'button', class: 'quiet', id: `runs-${name}`, disabled: Boolean(isOff), onclick: ask(name)}, name[0].toUpperCase() + name.slice(1))),
    runs.length && !context.readOnly ? labelForm(runs, context) : null,
    runs.length ? reportLink(runs.map((row) => row.id)) : null,
    runs.length === 1 && !context.readOnly ? h('a', {id: 'runs-fork', href: link(first, 'operations', {name: 'fork'})}, 'Fork') : null,
    state.asked ? asked(context, again) : null);
}

// The labels of the ticked runs, given to each of them in the place of its own.
function labelForm(runs, context) {
  const shared = runs[0].labels.filter((label) => runs.every((row) => row.labels.includes(label)));
  return h('form', {class: 'pair', key: `labels ${runs.map((row) => row.id)}`, onsubmit: async (event) => {
    event.preventDefault();
    const labels = event.currentTarget.elements['runs-labels'].value;
    const begun = await Promise.all(runs.map((row) => context.post(`/folders/${encodeURIComponent(row.id)}/deeds/label`, {arguments: {labels}}))).catch((error) => context.announce(error.message));
    for (const deed of begun || []) await deedDone(deed, context.get, () => {});
    context.refresh();
  }}, h('label', {for: 'runs-labels'}, 'Labels'), h('input', {id: 'runs-labels', autocomplete: 'off', placeholder: 'words, divided by commas', value: shared.join(', ')}), h('button', {type: 'submit', class: 'quiet', id: 'runs-label'}, 'Set'));
}

async function plan(context, run, name) {
  try {
    return {run, words: (await context.post(`/folders/${encodeURIComponent(run)}/deeds/${name}/plan`, {})).words};
  } catch (error) {
    return {run, refused: error.message};
  }
}

function asked(context, again) {
  const {name, said} = state.asked;
  const fit = said.filter((each) => !each.refused);
  const carryOut = async () => {
    state.asked = null;
    for (const each of fit) await context.post(`/folders/${encodeURIComponent(each.run)}/deeds/${name}`, {}).catch((error) => context.announce(error.message));
    context.refresh();
  };
  return h('div', {class: 'card asked', key: 'asked', role: 'status'}, said.map((each) => h('p', null, h('b', null, each.run), ' ', each.words ? `${each.words}.` : [badge('refused', 'bad'), ` ${each.refused}`])),
    fit.length ? h('button', {type: 'button', id: 'runs-confirm', class: name === 'delete' ? 'danger' : null, onclick: carryOut}, 'Do it') : null, ' ',
    h('button', {type: 'button', id: 'runs-cancel', class: 'quiet', onclick: () => { state.asked = null; again(); }}, 'Leave it'));
}

function columns(yardstick, hasLabels, link, again) {
  const choose = (row) => (event) => {
    if (event.currentTarget.checked) state.chosen.add(row.id); else state.chosen.delete(row.id);
    again();
  };
  return [
    {key: 'id', label: 'Run', cell: (row) => h('span', {class: 'choice'}, h('input', {type: 'checkbox', id: `choose-${row.id}`, 'aria-label': `Tick ${row.id}`, checked: state.chosen.has(row.id),
      disabled: !state.chosen.has(row.id) && state.chosen.size >= MAX_RUNS, onchange: choose(row)}), h('a', {href: link(row.id, 'overview', {})}, row.id))},
    {key: 'phase', label: 'State', cell: (row) => h('span', {title: row.message || null}, badge(row.phase, KINDS[row.phase] || 'plain'))},
    {key: 'score', label: yardstick ? `Score against ${yardstick}` : 'Score', number: true, value: (row) => row.scores[yardstick] ?? null, cell: (row) => h('b', null, fixed(row.scores[yardstick], 2))},
    {key: 'game', label: 'Game', rank: 3},
    ...(hasLabels ? [{key: 'labels', label: 'Labels', rank: 2, value: (row) => row.labels.join(' '), cell: (row) => row.labels.map((label) => [badge(label), ' '])}] : []),
    {key: 'age', label: 'Seen', number: true, rank: 3, value: (row) => -row.heartbeat_at, cell: (row) => ago(row.heartbeat_at)},
    {key: 'budget_spent', label: 'Budget left', number: true, rank: 2, value: (row) => (row.budget_spent === null ? null : 1 - row.budget_spent), cell: (row) => (row.budget_spent === null ? null
      : `${percent(1 - row.budget_spent)}${row.left_s ? `, ${duration(row.left_s)}` : ''}`)},
    {key: 'steps_per_s', label: 'Steps/s', number: true, rank: 2, cell: (row) => (row.is_live ? count(row.steps_per_s) : null)},
    {key: 'env_steps', label: 'Env steps', number: true, rank: 1, cell: (row) => count(row.env_steps)},
    {key: 'snapshots', label: 'Snapshots', number: true, rank: 1},
    {key: 'size_bytes', label: 'Size', number: true, rank: 1, cell: (row) => size(row.size_bytes)},
  ];
}
