import {badge, card, h, note} from '../kit/dom.js';
import {table} from '../kit/table.js';
import {sparkline} from '../kit/sparkline.js';
import {count, counted, elo, fixed} from '../kit/format.js';

export const title = 'League table';

function trend(row) {
  if (row.trend.length < 2) return null;
  const change = row.trend[row.trend.length - 1] - row.trend[row.trend.length - 2];
  const label = `ratings of its last ${counted(row.trend.length, 'snapshot')}, from ${elo(row.trend[0])} to ${elo(row.trend[row.trend.length - 1])}`;
  return [sparkline(row.trend, label), ' ', h('span', {class: 'muted'}, `${change >= 0 ? '▲' : '▼'} ${elo(change)}`)];
}

const signed = value => (value === null ? '–' : elo(value));

export function render(root, data, context) {
  const show = context.query.show || 'players';
  const isOfPlayers = show === 'players';
  const typed = () => document.getElementById('table-text').value;
  const columns = [
    {key: 'name', label: isOfPlayers ? 'Player' : 'Policy', cell: row => (row.player
      ? h('a', {href: context.link('player', {player: row.player})}, row.name) : row.name)},
    {key: 'elo', label: 'Elo, 95 % interval', number: true, cell: row => [h('b', null, signed(row.elo)),
      row.elo === null ? null : h('small', {class: 'below'}, ` ${signed(row.low)} to ${signed(row.high)}`)]},
    ...(isOfPlayers ? [
      {key: 'score', label: 'Score lately', number: true, rank: 3, cell: row => fixed(row.score, 2)},
      {key: 'trend', label: 'Trend', rank: 2, value: row => (row.trend.length ? row.trend[row.trend.length - 1] - row.trend[0] : null), cell: trend},
    ] : []),
    {key: 'role', label: 'Role', rank: 3, cell: row => row.role.replaceAll('_', ' ')},
    {key: 'rated_games', label: 'Rated games', number: true, rank: 2, cell: row => count(row.rated_games)},
    {key: 'steps', label: 'Steps trained', number: true, rank: 2, cell: row => count(row.steps)},
    ...(isOfPlayers ? [
      {key: 'games', label: 'Games', number: true, rank: 1, cell: row => count(row.games)},
      {key: 'snapshots', label: 'Snapshots', number: true, rank: 1, cell: row => count(row.snapshots)},
      {key: 'resets', label: 'Resets', number: true, rank: 1, cell: row => count(row.resets)},
    ] : []),
    {key: 'state', label: 'State', cell: row => badge(row.state, row.state === 'learns' ? 'good' : row.state === 'paused' ? 'warn' : 'plain')},
  ];
  root.append(
    h('form', {class: 'filters', role: 'search', onsubmit: event => { event.preventDefault(); context.go('table', {show, text: typed()}); }},
      h('span', {class: 'pair'}, h('label', {for: 'table-show'}, 'Show'), h('select', {id: 'table-show', value: show,
        onchange: event => context.go('table', {show: event.currentTarget.value, text: typed()})},
      h('option', {value: 'players'}, 'Players'), h('option', {value: 'policies'}, 'Snapshots and bots'))),
      h('span', {class: 'pair'}, h('label', {for: 'table-text'}, 'Name has'), h('input', {id: 'table-text', type: 'search', value: context.query.text || ''})),
      h('button', {type: 'submit', id: 'table-go'}, 'Filter')),
    card('', table({columns, rows: data.rows, keyOf: row => row.name, caption: isOfPlayers ? 'Players, strongest first' : 'Snapshots and bots, strongest first', id: `table-${show}`})),
    data.error ? note(data.error) : note(data.as_of
      ? `Bradley-Terry ratings of frozen policies as of event ${data.as_of.toLocaleString('en-GB')}; a player has that of its newest rated snapshot. Games count ${data.counts}.`
      : 'The ratings are being computed.'),
    data.total > data.rows.length ? note(`The ${data.rows.length} strongest of ${data.total} are shown; filter by name for others.`) : '',
  );
}
