import {badge, card, h, note} from '../kit/dom.js';
import {clock, counted} from '../kit/format.js';

export const title = 'Events';

const PAGE = 50;
const FIRST = 20; // events that are searched for without being asked again

function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

const seen = {place: '', rows: new Map(), wanted: PAGE, next: 0, busy: false, trouble: ''}; // the events of one search, as far back as was read

function row(event) {
  return h('li', {key: event.seq}, h('details', {id: `event-${event.seq}`},
    h('summary', null, h('span', {class: 'seq'}, event.seq.toLocaleString('en-GB')), ' ', badge(event.kind), ' ',
      h('time', {class: 'muted'}, clock(event.wall_time)), ' ', h('span', {class: 'brief'}, event.text)),
    h('pre', {tabindex: 0}, pretty(event.body))));
}

// Newer events join those that were read, and as many older ones leave; where more came at once than a page holds, it
// begins with the newest.
function take(data, place) {
  const newest = Math.max(...seen.rows.keys(), 0);
  if (seen.place !== place || data.next > newest) Object.assign(seen, {place, rows: new Map(), wanted: PAGE, next: data.next, busy: false, trouble: ''});
  for (const event of data.rows) seen.rows.set(event.seq, event);
  const kept = [...seen.rows.keys()].sort((a, b) => b - a).slice(0, seen.wanted);
  if (kept.length < seen.rows.size) Object.assign(seen, {rows: new Map(kept.map((seq) => [seq, seen.rows.get(seq)])), next: kept[kept.length - 1]});
}

async function more(wanted, context) {
  const {place} = seen;
  const goal = seen.rows.size + wanted;
  seen.wanted = Math.max(seen.wanted, goal + PAGE);
  seen.busy = true;
  try {
    while (seen.next && seen.rows.size < goal && seen.place === place) {
      const found = await context.read('events', {...context.query, before: seen.next});
      if (seen.place !== place) return;
      for (const event of found.rows) seen.rows.set(event.seq, event);
      seen.next = found.next;
    }
    seen.trouble = '';
  } catch (error) {
    seen.trouble = error.message;
  }
  seen.busy = false;
  context.refresh();
}

export function render(root, data, context) {
  const {text = '', kind = '', before = ''} = context.query;
  take(data, `${context.run} ${text} ${kind} ${before}`);
  const form = h('form', {class: 'filters', role: 'search', onsubmit: event => {
    event.preventDefault();
    const [words, kinds] = ['events-text', 'events-kind'].map(id => document.getElementById(id).value);
    context.go('events', {text: words, kind: kinds});
  }}, h('span', {class: 'pair'}, h('label', {for: 'events-text'}, 'Text'), h('input', {id: 'events-text', type: 'search', value: text, placeholder: 'player, snapshot, reason …'})),
  h('span', {class: 'pair'}, h('label', {for: 'events-kind'}, 'Kind'), h('select', {id: 'events-kind', value: kind},
    h('option', {value: ''}, 'All but routine'), h('option', {value: 'all'}, 'All'), data.kinds.map(each => h('option', {value: each}, each)))),
  h('button', {type: 'submit', id: 'events-go'}, 'Search'));
  const rows = [...seen.rows.values()].sort((a, b) => b.seq - a.seq);
  const shown = counted(rows.length, 'event');
  root.append(form, card('', h('ol', {class: 'events', reversed: true}, rows.map(row)),
    h('p', {class: 'muted', role: 'status'}, seen.trouble || (seen.next ? `${shown}; searched back to event ${seen.next.toLocaleString('en-GB')}.` : `${shown}; that is all.`)),
    seen.next ? h('button', {type: 'button', id: 'events-older', class: 'quiet', disabled: seen.busy, onclick: () => more(PAGE, context)}, 'Older events') : null));
  if (before) root.append(note(h('a', {href: context.link('events', {text, kind})}, 'Newest events')));
  if (rows.length < FIRST && seen.next && !seen.busy && !seen.trouble) more(FIRST - rows.length, context);
}
