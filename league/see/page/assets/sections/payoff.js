import {card, h, note} from '../kit/dom.js';
import {table} from '../kit/table.js';
import {draw} from '../plots/heatmap.js';

export const title = 'Payoff';

const GROUPS = {frozen: 'snapshots and bots', players: 'learning players', all: 'all policies'};

function choice(id, label, options, chosen, onchange) {
  return [h('label', {for: id}, label), h('select', {id, value: chosen, onchange: (event) => onchange(event.currentTarget.value)},
    options.map(([value, text]) => h('option', {value}, text)))];
}

function filters(data, context) {
  const {matrix} = data;
  const {extent} = matrix;
  const go = (changes) => context.go('payoff', {...context.query, home: '', away: '', ...changes});
  const seats = [['-1', 'all seats'], ...Array.from({length: matrix.seats}, (_, seat) => [String(seat), `seat ${seat}`])];
  const limit = Number(context.query.limit || 40);
  const parts = [
    choice('payoff-who', 'Policies', data.groups.map((name) => [name, GROUPS[name] || name]), matrix.who,
      (who) => go({who, offset: ''})),
    choice('payoff-seat', 'Row plays', seats, matrix.seat === null ? '-1' : String(matrix.seat), (seat) => go({seat})),
    choice('payoff-limit', 'Shown', [20, 40, 60, 100].map((n) => [String(n), `${n} at once`]), String(limit),
      (value) => go({limit: value, offset: ''})),
  ];
  const pages = [
    extent.offset > 0 ? h('a', {href: context.link('payoff', {...context.query, offset: Math.max(extent.offset - limit, 0)})}, 'Stronger') : null,
    extent.offset + extent.shown < extent.total
      ? h('a', {href: context.link('payoff', {...context.query, offset: extent.offset + limit})}, 'Weaker') : null,
  ];
  return h('div', {class: 'filters'}, parts, pages);
}

function pairCard(data, context) {
  const {home, away, pair} = data;
  const heading = `${home} against ${away}`;
  if (!pair.length) return card(heading, note('They have not met.'));
  const rows = pair.flatMap((row) => row.seats.map((seat) => ({...seat, id: `${row.home} on seat ${seat.seat}`,
    games: seat.wins + seat.draws + seat.losses})));
  const columns = [{key: 'id', label: 'policy'}, {key: 'games', label: 'games', number: true},
    {key: 'wins', label: 'wins', number: true}, {key: 'draws', label: 'draws', number: true},
    {key: 'losses', label: 'losses', number: true},
    {key: 'score', label: 'mean score now', number: true, cell: (row) => (row.score === null ? null : row.score.toFixed(3))}];
  const [first] = pair;
  const sentence = `${first.home} wins ${(100 * first.win_rate).toFixed(1)} % (lower bound ${(100 * first.lower).toFixed(1)} %), ` +
    `${first.games.toLocaleString('en-GB')} games ever, which weigh as ${Math.round(first.effective_games).toLocaleString('en-GB')} now.`;
  const links = h('p', null,
    h('a', {href: context.link('replays', {home, away})}, 'Replays of this pair'), ' · ',
    h('a', {href: context.link('payoff', {...context.query, home: '', away: ''})}, 'Close'));
  return card(heading, h('p', null, sentence), table({columns, rows, caption: `Games of ${heading} by seat`, id: 'payoff-pair'}), links);
}

export function render(root, data, context) {
  root.append(filters(data, context));
  if (!data.rated) {
    root.append(note('Ratings are being computed; until then policies stand in the order in which they came.'));
    context.soon();
  }
  if (data.home || data.away) root.append(pairCard(data, context));
  const box = card('');
  root.append(box);
  draw(box, data.matrix, {title: 'Win rates', level: 2,
    pick: ({home, away}) => context.go('payoff', {...context.query, home, away})});
}
