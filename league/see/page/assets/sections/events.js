import {badge, card, h, note} from '../kit/dom.js';
import {clock, counted} from '../kit/format.js';

export const title = 'Events';

const FIRST = 20; // events that are searched for without being asked again

function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function first(body) {
  return body.length > 160 ? `${body.slice(0, 160)} …` : body;
}

function row(event) {
  return h('li', null, h('details', {id: `event-${event.seq}`},
    h('summary', null, h('span', {class: 'seq'}, event.seq.toLocaleString('en-GB')), ' ', badge(event.kind), ' ',
      h('time', {class: 'muted'}, clock(event.wall_time)), ' ', h('span', {class: 'brief'}, first(event.body))),
    h('pre', {tabindex: 0}, pretty(event.body))));
}

export function render(root, data, context) {
  const {text = '', kind = '', before = ''} = context.query;
  const words = h('input', {id: 'events-text', type: 'search', value: text, placeholder: 'player, snapshot, reason …'});
  const kinds = h('select', {id: 'events-kind'},
    h('option', {value: ''}, 'All but routine'), h('option', {value: 'all'}, 'All'), data.kinds.map(each => h('option', {value: each}, each)));
  kinds.value = kind;
  const form = h('form', {class: 'filters', role: 'search', onsubmit: event => {
    event.preventDefault();
    words.blur();
    context.go('events', {text: words.value, kind: kinds.value});
  }}, h('label', {for: 'events-text'}, 'Text'), words, h('label', {for: 'events-kind'}, 'Kind'), kinds, h('button', {type: 'submit', id: 'events-go'}, 'Search'));
  const list = h('ol', {class: 'events', reversed: true}, data.rows.map(row));
  const said = h('p', {class: 'muted', role: 'status'});
  const older = h('button', {type: 'button', id: 'events-older', class: 'quiet'}, 'Older events');
  let next = data.next;

  function say() {
    const shown = list.children.length;
    older.hidden = !next;
    said.textContent = next ? `${counted(shown, 'event')}; searched back to event ${next.toLocaleString('en-GB')}.` : `${counted(shown, 'event')}; that is all.`;
  }

  async function more(wanted) {
    list.setAttribute('data-busy', '');
    const goal = list.children.length + wanted;
    older.disabled = true;
    while (next && list.children.length < goal && list.isConnected) {
      const found = await context.read('events', {...context.query, before: next});
      list.append(...found.rows.map(row));
      next = found.next;
      say();
    }
    older.disabled = false;
  }

  older.addEventListener('click', () => more(50).catch(error => { said.textContent = error.message; }));
  root.append(form, card('', list, said, older));
  if (before) root.append(note(h('a', {href: context.link('events', {text, kind})}, 'Newest events')));
  say();
  if (data.rows.length < FIRST && next) {
    more(FIRST - data.rows.length).then(() => list.removeAttribute('data-busy')).catch(error => { said.textContent = error.message; });
  }
}
