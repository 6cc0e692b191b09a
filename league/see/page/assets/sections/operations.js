import {badge, card, h, note, part} from '../kit/dom.js';
import {deedDone, deedWords} from '../kit/deeds.js';
import {show} from '../kit/patch.js';
import {clock} from '../kit/format.js';

export const title = 'Operations';

function field(argument, names, value) {
  const id = `field-${argument.name}`;
  const label = argument.name.replaceAll('_', ' ') + (argument.is_required ? '' : ' (optional)');
  if (argument.name === 'settings') return h('label', {for: id}, label, h('span', null, argument.what), h('textarea', {id, name: argument.name, rows: 3, spellcheck: 'false'}));
  const words = names[argument.name] || [];
  const number = argument.kind === 'number' || argument.kind === 'integer';
  const input = h('input', {
    id, name: argument.name, type: 'text', inputmode: number ? (argument.kind === 'integer' ? 'numeric' : 'decimal') : null, autocomplete: 'off',
    required: argument.is_required, list: words.length ? `${id}-known` : null,
    value: value || (argument.default === null || argument.default === undefined ? '' : String(argument.default)),
  });
  return h('label', {for: id}, label, h('span', {id: `${id}-what`}, argument.what), input,
    words.length ? h('datalist', {id: `${id}-known`, 'data-argument': argument.name}, known(words)) : null);
}

// The value of a field by the kind of its argument; text that is no JSON is taken as it stands.
function valueOf(argument, text) {
  if (argument.kind === 'number' || argument.kind === 'integer') {
    const number = Number(text);
    if (text.trim() === '' || Number.isNaN(number)) throw new Error(`${argument.name} is a number.`);
    return number;
  }
  if (argument.kind === 'json') {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

// The form of one operation, with what was typed into it and what was answered; only what is suggested changes.
function mount(box, form, data, given) {
  let context = given;
  const outcome = h('div', {class: 'outcome', role: 'status', id: 'op-outcome'});
  const isMild = form.is_deed && form.name !== 'delete';
  const reason = h('input', {id: 'op-reason', maxlength: 500, autocomplete: 'off'});
  const path = `/${form.is_deed ? 'folders' : 'runs'}/${encodeURIComponent(context.run)}/${form.is_deed ? 'deeds' : 'operations'}/${form.name}`;

  function wanted(element) {
    const found = {};
    for (const argument of form.arguments) {
      const text = element.elements[argument.name].value;
      if (text !== '' || argument.is_required) found[argument.name] = valueOf(argument, text);
    }
    return form.is_deed ? {arguments: found} : {arguments: found, reason: reason.value};
  }

  function refused(error) {
    outcome.replaceChildren(h('p', {class: 'refused'}, badge('refused', 'bad'), ` ${error.message}`));
  }

  async function carryOut(body) {
    try {
      if (form.is_deed) {
        const begun = await context.post(path, body);
        outcome.replaceChildren(deedWords(begun, context.link));
        const ended = await deedDone(begun, context.get, (deed) => outcome.replaceChildren(deedWords(deed, context.link)));
        context.announce(`${form.name}: ${ended.state}`);
        return;
      }
      const done = await context.post(path, body);
      outcome.replaceChildren(h('p', null, badge('done', 'good'), ` ${done.words}. `,
        h('a', {href: context.link('events', {before: done.last_event + 1}), id: 'op-event'}, `Event ${done.first_event.toLocaleString('en-GB')}`)),
      done.undoable ? h('p', null, h('a', {href: context.link('operations', {name: 'undo', value: String(done.first_event)}), id: 'op-undo'}, 'Take it back')) : '');
      context.announce(`Done: ${done.words}`);
      document.getElementById('op-event').focus();
    } catch (error) {
      refused(error);
    }
  }

  async function plan(event) {
    event.preventDefault();
    try {
      const body = wanted(event.target);
      const intended = await context.post(`${path}/plan`, body);
      outcome.replaceChildren(
        h('p', null, badge('would', 'warn'), form.is_deed ? ' The run ' : ' The league ', h('strong', null, intended.words), '. ',
          intended.is_undoable ? 'It can be taken back.' : isMild ? null : 'It cannot be taken back.'),
        h('button', {type: 'button', id: 'op-confirm', class: intended.is_undoable || isMild ? null : 'danger', onclick: () => carryOut(body)}, 'Do it'), ' ',
        h('button', {type: 'button', class: 'quiet', id: 'op-cancel', onclick: () => { outcome.replaceChildren(); document.getElementById('op-plan').focus(); }}, 'Leave it'));
      document.getElementById('op-confirm').focus();
    } catch (error) {
      refused(error);
    }
  }

  // The value of a setting: what it is now, and a choice where it is yes or no.
  function suit(event) {
    const value = event.currentTarget.elements.value;
    if (event.target.name !== 'key' || !value) return;
    const now = settings[event.target.value];
    const isKnown = event.target.value in settings;
    document.getElementById('field-value-what').textContent = isKnown ? `its new value; now ${JSON.stringify(now)}` : 'its new value';
    value.setAttribute('inputmode', typeof now === 'number' ? 'decimal' : 'text');
    const list = typeof now === 'boolean' ? 'field-value-choices' : '';
    if (list) value.setAttribute('list', list); else value.removeAttribute('list');
  }

  let {settings} = data;
  box.append(card(form.name.replaceAll('_', ' '), h('p', null, form.what), h('form', {class: 'fields', onsubmit: plan, oninput: suit, id: 'op-form'},
    form.arguments.map((argument, index) => field(argument, data.names, index ? '' : data.value)),
    form.name === 'set' ? h('datalist', {id: 'field-value-choices'}, known(['true', 'false'])) : null,
    form.is_deed ? null : h('label', {for: 'op-reason'}, 'reason (optional)', h('span', null, 'why, for the journal'), reason),
    h('div', null, h('button', {type: 'submit', id: 'op-plan'}, 'What will it do?'))), outcome));
  return {
    update(_, next, newest) {
      context = newest;
      settings = next.settings;
      for (const list of box.querySelectorAll('datalist')) show(list, known(next.names[list.dataset.argument] || []));
    },
  };
}

function known(words) {
  return words.map(each => h('option', {key: each, value: each}));
}

export function render(root, data, context) {
  if (context.readOnly) root.append(h('section', {class: 'card', id: 'op-read-only'}, h('p', null, badge('read-only'), ' This address shows everything and changes nothing. Operations need the operator’s address.')));
  else drawForms(root, data, context);
  drawChanges(root, data, context);
}

function drawForms(root, data, context) {
  if (data.refusal) root.append(h('section', {class: 'card warn-edge'}, h('p', null, data.refusal, ' Deeds on the whole run are possible.')));
  const form = data.forms.find(each => each.name === data.name);
  const groups = [...new Set(data.forms.map(each => each.group))];
  root.append(h('nav', {class: 'card choices', 'aria-label': 'Operations'}, groups.map(group => h('div', {key: group, class: 'choice-group'}, h('h2', null, group),
    h('ul', null, data.forms.filter(each => each.group === group).map(each => h('li', null, h('a', {
      href: context.link('operations', {name: each.name}), id: `op-${each.name}-link`, 'aria-current': each === form ? 'true' : null}, each.name.replaceAll('_', ' ')))))))));
  if (form && (form.is_deed || !data.refusal)) root.append(part(`op-${form.name}-${data.value}`, mount, form, data, context));
  else if (form) root.append(card(form.name.replaceAll('_', ' '), h('p', null, form.what)));
  else root.append(note('Choose an operation. What it will do is said before anything is done.'));
}

function drawChanges(root, data, context) {
  root.append(card('Changes so far', data.changes.length ? h('ol', {class: 'events'}, data.changes.map(each => h('li', null,
    h('a', {href: context.link('events', {before: each.seq + 1})}, each.seq.toLocaleString('en-GB')), ' ',
    h('span', {class: 'muted'}, clock(each.wall_time)), ` ${each.text}`, each.by ? h('span', {class: 'muted'}, ` by ${each.by}`) : null, each.reason ? `: ${each.reason}` : null, ' ',
    each.is_undone ? badge('taken back') : each.is_undoable && !data.refusal && !context.readOnly
      ? h('a', {href: context.link('operations', {name: 'undo', value: String(each.seq)})}, 'Take back') : null)))
    : note('Nobody has changed this league.')));
}
