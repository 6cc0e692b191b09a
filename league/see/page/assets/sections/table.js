import {badge, card, h, note, svg, table} from '../kit/dom.js';
import {sparkline} from '../kit/sparkline.js';
import {count, counted, elo, fixed} from '../kit/format.js';

export const title = 'League table';

// The interval of a rating on the common scale of the table.
function interval(row, low, span) {
  if (row.elo === null) return null;
  const x = value => 3 + (94 * (value - low)) / span;
  return svg('svg', {viewBox: '0 0 100 14', class: 'interval', role: 'img', 'aria-label': `${elo(row.low)} to ${elo(row.high)}`},
    svg('line', {x1: x(row.low), x2: x(row.high), y1: 7, y2: 7}), svg('circle', {cx: x(row.elo), cy: 7, r: 3.5}));
}

function trend(row) {
  if (row.trend.length < 2) return null;
  const change = row.trend[row.trend.length - 1] - row.trend[row.trend.length - 2];
  const label = `ratings of its last ${counted(row.trend.length, 'snapshot')}, from ${elo(row.trend[0])} to ${elo(row.trend[row.trend.length - 1])}`;
  return [sparkline(row.trend, label), ' ', h('span', {class: 'muted'}, `${change >= 0 ? '▲' : '▼'} ${elo(change)}`)];
}

export function render(root, data, context) {
  const show = context.query.show || 'players';
  const text = h('input', {id: 'table-text', type: 'search', value: context.query.text || ''});
  const choice = h('select', {id: 'table-show', onchange: () => context.go('table', {show: choice.value, text: text.value})},
    h('option', {value: 'players'}, 'Players'), h('option', {value: 'policies'}, 'Snapshots and bots'));
  choice.value = show;
  const rated = data.rows.filter(row => row.elo !== null);
  const low = Math.min(...rated.map(row => row.low)), span = Math.max(...rated.map(row => row.high)) - low || 1;
  const columns = [
    {key: 'name', label: show === 'players' ? 'Player' : 'Policy', cell: row => (row.player
      ? h('a', {href: context.link('player', {player: row.player})}, row.name) : row.name)},
    {key: 'role', label: 'Role', cell: row => row.role.replaceAll('_', ' ')},
    {key: 'elo', label: 'Elo', number: true, cell: row => elo(row.elo)},
    {key: 'low', label: '95 % interval', value: row => row.low, cell: row => interval(row, low, span)},
    ...(show === 'players' ? [{key: 'trend', label: 'Trend', value: row => (row.trend.length ? row.trend[row.trend.length - 1] - row.trend[0] : null), cell: trend}] : []),
    {key: 'rated_games', label: 'Rated games', number: true, cell: row => count(row.rated_games)},
    {key: 'steps', label: 'Steps trained', number: true, cell: row => count(row.steps)},
    ...(show === 'players' ? [
      {key: 'games', label: 'Games', number: true, cell: row => count(row.games)},
      {key: 'snapshots', label: 'Snapshots', number: true, cell: row => count(row.snapshots)},
      {key: 'resets', label: 'Resets', number: true, cell: row => count(row.resets)},
      {key: 'score', label: 'Score lately', number: true, cell: row => fixed(row.score, 2)},
    ] : []),
    {key: 'state', label: 'State', cell: row => badge(row.state, row.state === 'learns' ? 'good' : row.state === 'paused' ? 'warn' : 'plain')},
  ];
  root.append(
    h('form', {class: 'filters', role: 'search', onsubmit: event => { event.preventDefault(); text.blur(); context.go('table', {show, text: text.value}); }},
      h('label', {for: 'table-show'}, 'Show'), choice, h('label', {for: 'table-text'}, 'Name has'), text, h('button', {type: 'submit', id: 'table-go'}, 'Filter')),
    card('', table({columns, rows: data.rows, caption: show === 'players' ? 'Players, strongest first' : 'Snapshots and bots, strongest first', id: `table-${show}`})),
    data.error ? note(data.error) : note(data.as_of
      ? `Bradley-Terry ratings of frozen policies as of event ${data.as_of.toLocaleString('en-GB')}; a player has that of its newest rated snapshot. Games count ${data.counts}.`
      : 'The ratings are being computed.'),
    data.total > data.rows.length ? note(`The ${data.rows.length} strongest of ${data.total} are shown; filter by name for others.`) : null || '',
  );
}
