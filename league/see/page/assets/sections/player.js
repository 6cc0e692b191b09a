import {badge, card, figure, h, note, svg} from '../kit/dom.js';
import {table} from '../kit/table.js';
import {clock, count, counted, fixed, percent} from '../kit/format.js';
import {draw as lines} from '../plots/lines.js';

export const title = 'Player';
export const usesCourse = true;

const KINDS = [['itself', 'itself'], ['player', 'learning players'], ['snapshot', 'snapshots'], ['fixed', 'bots and imported']];

function mix(shares) {
  let left = 0;
  const parts = KINDS.map(([kind], index) => {
    const part = svg('rect', {x: left, y: 0, width: Math.max(100 * shares[kind] - 0.3, 0), height: 8, class: `fill-${index + 1}`});
    left += 100 * shares[kind];
    return part;
  });
  const words = KINDS.map(([kind, name]) => `${name} ${percent(shares[kind])}`).join(', ');
  return [svg('svg', {viewBox: '0 0 100 8', preserveAspectRatio: 'none', class: 'mix', role: 'img', 'aria-label': words}, parts),
    h('ul', {class: 'legend'}, KINDS.map(([kind, name], index) => h('li', null, h('span', {class: `swatch swatch-${index + 1}`}), `${name} `, h('span', {class: 'value'}, percent(shares[kind])))))];
}

function gate(view) {
  if (!view) return note('This player has no gate.');
  const share = Math.min(view.steps / Math.max(view.timeout_steps, 1), 1);
  return [h('p', null, `${count(view.steps)} steps since the last snapshot or reset; the gate opens at ${count(view.min_steps)} and times out at ${count(view.timeout_steps)}.`),
    h('progress', {max: 1, value: share, 'aria-label': 'steps towards the timeout'}),
    view.gate_opponents ? h('p', null, `It beats ${view.beaten} of ${counted(view.gate_opponents, 'opponent')} by enough.`) : null];
}

function trial(each) {
  return h('details', {id: `trial-${each.seq}`}, h('summary', null, `Event ${each.seq.toLocaleString('en-GB')} `, badge(each.reason, each.reason === 'gate' ? 'good' : 'warn'), ' ',
    h('span', {class: 'muted'}, `${clock(each.wall_time)}, ${counted(each.opponents, 'opponent')}`)),
  table({
    id: `evidence-${each.seq}`, caption: `Evidence of event ${each.seq}, hardest opponents first`, rows: each.evidence,
    columns: [
      {key: 'opponent', label: 'Opponent'},
      {key: 'mean', label: 'Win rate', number: true, cell: row => fixed(row.mean)},
      {key: 'lower', label: 'Lower bound', number: true, cell: row => fixed(row.lower)},
      {key: 'games', label: 'Games (weigh now)', number: true, cell: row => count(row.games)},
      {key: 'unbeaten', label: 'p-value of being unbeaten', number: true, cell: row => (row.unbeaten === null ? '–' : fixed(row.unbeaten))},
    ],
  }));
}

export function render(root, data, context) {
  const choice = h('select', {id: 'player-choice', value: data.player, onchange: event => context.go('player', {player: event.currentTarget.value})},
    data.players.map(name => h('option', {value: name}, name)));
  root.append(
    h('div', {class: 'filters'}, h('label', {for: 'player-choice'}, 'Player'), choice,
      badge(data.role.replaceAll('_', ' ')), badge(data.state, data.state === 'learns' ? 'good' : 'warn')),
    h('dl', {class: 'figures'},
      figure('Version', count(data.version), 'updates'), figure('Trained', count(data.trained_steps), 'steps'), figure('Games', count(data.games)),
      figure('Snapshots', count(data.snapshots)), figure('Resets', count(data.resets)), figure('Descends from', data.parent || '–'),
      data.hyperparameters.map(each => figure(each.name, fixed(each.value)))),
  );
  const charts = h('div', {class: 'columns'});
  root.append(charts);
  for (const chart of data.charts) {
    const box = h('section', {class: 'card', key: chart.title});
    charts.append(box);
    lines(box, {title: chart.title, summary: chart.lines.map(line => line.meaning).join('; '), 
      series: chart.lines.map(line => ({label: line.label.replaceAll('_', ' '), ...line.series}))},
    {level: 2, height: 200, ...context.plots});
  }
  if (!data.charts.length) root.append(note('No metrics of this player yet.'));
  root.append(
    card('Opponents', data.met ? mix(data.mix) : note('No games yet.'), data.met ? table({
      id: 'opponents', caption: 'Opponents by the weight of their games now', rows: data.opponents,
      columns: [
        {key: 'name', label: 'Opponent'},
        {key: 'kind', label: 'Kind'},
        {key: 'win_rate', label: 'Win rate', number: true, cell: row => fixed(row.win_rate)},
        {key: 'lower', label: 'Lower bound', number: true, cell: row => fixed(row.lower)},
        {key: 'weight', label: 'Weigh now', number: true, cell: row => count(row.weight)},
        {key: 'games', label: 'Games', number: true, cell: row => count(row.games)},
      ],
    }) : null, data.met > data.opponents.length ? note(`${data.opponents.length} of ${counted(data.met, 'opponent')}.`) : null),
    card('Gate', gate(data.gate), h('h3', null, 'Snapshots that it asked for'),
      data.trials.length ? data.trials.map(trial) : note('None with evidence yet.')),
    card('What happened to it', h('ol', {class: 'events'}, data.changes.map(each => h('li', null,
      h('a', {href: context.link('events', {before: each.seq + 1, kind: each.kind})}, each.seq.toLocaleString('en-GB')), ' ', badge(each.kind), ' ',
      h('span', {class: 'muted'}, clock(each.wall_time)), ` ${each.text}`))),
    data.is_whole ? null : note('Older events are still being read.')),
  );
}
