import {card, h, note, part} from '../kit/dom.js';
import {table} from '../kit/table.js';
import {ago, count} from '../kit/format.js';
import {advisors, mountAsking} from '../kit/asking.js';

export const title = 'Replays';

const games = new Map(); // key of a game -> its record; a refresh of the section keeps it

const names = (row) => row.seats.map((holder) => holder.name).join(' - ');
const numbers = (row) => row.returns.map((value) => (value > 0 ? '+' : '') + Number(value.toFixed(3))).join(' ');

// A recorded game never changes: its player goes on through every refresh.
function mount(box, record, context, path) {
  const ask = (policy) => context.get(`${path}/opinion?${new URLSearchParams({game: context.query.game || 0, policy})}`);
  return mountAsking(box, record, {id: 'replay-player', ask, names: advisors(context)});
}

async function playerCard(context, file, game) {
  const key = `${context.run}/${file}/${game}`, path = `/runs/${encodeURIComponent(context.run)}/replays/${encodeURIComponent(file)}`;
  if (!games.has(key)) games.set(key, await context.get(`${path}?game=${game}`));
  const record = games.get(key);
  return card(record.title, note(record.outcome), part(key, mount, record, context, path),
    h('p', null, h('a', {href: context.link('replays', {...context.query, file: '', game: ''})}, 'Close')));
}

export async function render(root, data, context) {
  const {file, game, home, away} = context.query;
  if (file) root.append(await playerCard(context, file, Number(game || 0)));
  const filtered = [home, away].filter(Boolean);
  const about = filtered.length
    ? [note(`Games of ${filtered.join(' and ')}. `, h('a', {href: context.link('replays', {})}, 'Show all'))] : [];
  if (!data.rows.length) {
    root.append(card('Recorded games', about, note(filtered.length ? 'No game is recorded between them. ' : `No game is recorded in ${data.path}. `
      + '`league replays RUN` plays the most telling ones.')));
    return;
  }
  const columns = [
    {key: 'who', label: 'seats', value: names, cell: (row) => h('a', {
      href: context.link('replays', {...context.query, file: row.file, game: String(row.game)}),
    }, names(row))},
    {key: 'why', label: 'about', value: (row) => row.tags.why || row.tags.kind || row.tags.match || ''},
    {key: 'returns', label: 'returns', value: (row) => row.returns[0], cell: numbers},
    {key: 'steps', label: 'steps', number: true, cell: (row) => count(row.steps)},
    {key: 'written_at', label: 'recorded', cell: (row) => ago(row.written_at)},
  ];
  columns[1].cell = columns[1].value;
  root.append(card('Recorded games', about, table({columns, rows: data.rows, caption: 'Recorded games', id: 'replays'}),
    data.damaged.map((sentence) => h('p', {class: 'bad'}, sentence))));
}
