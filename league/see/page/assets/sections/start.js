// A run from nothing: a game or a configuration is fitted to a budget, every choice with its reason, and started.

import {badge, card, h, part, scroll} from '../kit/dom.js';
import {deedDone, deedWords} from '../kit/deeds.js';

const UNITS = [['minutes', 60], ['hours', 3600], ['days', 86400]];

/** The form, in a part that opens. context: {get, post, link, announce, games}. */
export function start(isOpen, context) {
  return h('details', {id: 'start', class: 'card', open: isOpen}, h('summary', null, 'Start a run'), part('start-form', mount, context));
}

function field(id, name, what, input) {
  return h('label', {for: id}, name, h('span', null, what), input);
}

function mount(box, context) {
  const fitted = h('div', {id: 'start-fitted', role: 'status'});
  const input = (id, more) => h('input', {id, autocomplete: 'off', ...more});
  const form = h('form', {class: 'fields', id: 'start-form', onsubmit: fit},
    field('start-source', 'game or configuration', 'such as connect_four, gymnasium:CartPole-v1, or the path of a YAML file', input('start-source', {required: true, list: 'start-games'})),
    h('datalist', {id: 'start-games'}, context.games.map((game) => h('option', {value: game}))),
    h('label', {for: 'start-amount'}, 'budget of time', h('span', null, 'empty for that of the configuration'), h('span', {class: 'pair'}, input('start-amount', {inputmode: 'decimal', value: '10'}),
      h('select', {id: 'start-unit', 'aria-label': 'Unit of the budget'}, UNITS.map(([name, seconds]) => h('option', {value: seconds}, name))))),
    field('start-settings', 'settings (optional)', 'KEY=VALUE, one a line; all others are fitted', h('textarea', {id: 'start-settings', rows: 2, spellcheck: 'false'})),
    h('div', null, h('button', {type: 'submit', id: 'start-fit'}, 'Fit a configuration')));
  box.append(form, fitted);

  const value = (id) => box.querySelector(`#${id}`).value.trim();
  const refuse = (error) => fitted.replaceChildren(h('p', {class: 'refused'}, badge('refused', 'bad'), ` ${error.message}`));

  async function fit(event) {
    event.preventDefault();
    const amount = value('start-amount');
    fitted.replaceChildren(h('p', null, badge('working', 'warn'), ' The game is tried and timed.'));
    try {
      if (amount !== '' && !(Number(amount) > 0)) throw new Error('a budget is a number above 0.');
      const seconds = amount === '' ? null : Number(amount) * Number(value('start-unit'));
      draw(await context.post('/start/fit', {source: value('start-source'), seconds, settings: value('start-settings')}));
    } catch (error) {
      refuse(error);
    }
  }

  function draw({text, choices}) {
    const outcome = h('div', {class: 'outcome', role: 'status', id: 'start-outcome'});
    const whole = h('textarea', {id: 'start-text', rows: 16, class: 'whole', spellcheck: 'false', value: text});
    const name = h('input', {id: 'start-name', required: true, pattern: '[A-Za-z0-9][A-Za-z0-9._\\-]*', maxlength: 64, autocomplete: 'off', value: suggested(value('start-source'))});
    fitted.replaceChildren(card('Fitted', h('p', null, `${choices.length} values were chosen. Each says why; what you write into the configuration holds.`),
      scroll('Values that were chosen', h('dl', {class: 'finding choices-made'}, choices.flatMap((choice) => [h('dt', null, h('code', null, `${choice.key}: ${JSON.stringify(choice.value)}`)), h('dd', null, choice.reason)]))),
      h('details', {id: 'start-whole'}, h('summary', null, 'The whole configuration'), h('label', {for: 'start-text'}, 'as it will be used'), whole),
      h('form', {class: 'fields', id: 'start-go', onsubmit: (event) => go(event, name, whole, outcome)}, field('start-name', 'name', 'of its folder here', name),
        h('div', null, h('button', {type: 'submit', id: 'start-do'}, 'Start it'))), outcome));
    name.focus();
  }

  async function go(event, name, whole, outcome) {
    event.preventDefault();
    try {
      const begun = await context.post('/start', {name: name.value.trim(), text: whole.value});
      const ended = await deedDone(begun, context.get, (deed) => outcome.replaceChildren(deedWords(deed, context.link)));
      context.announce(`Start of ${ended.run}: ${ended.state}`);
    } catch (error) {
      outcome.replaceChildren(h('p', {class: 'refused'}, badge('refused', 'bad'), ` ${error.message}`));
    }
  }

  return {update(newest) { context = newest; }};
}

function suggested(source) {
  const name = source.replace(/^.*[/:]/, '').replace(/\.ya?ml$/, '').replace(/[^A-Za-z0-9._-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return `${name || 'run'}-${new Date().toISOString().slice(5, 16).replace(/[T:]/g, '-')}`;
}
