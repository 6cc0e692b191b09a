// A player of a game that has ended, with a form that asks policies about every position of it.

import {h} from './dom.js';
import {mountPlayer} from '../replay/player.js';

/** Mounts into `box`. ask: policy => its opinion, a promise; names: the policies, a promise. */
export function mountAsking(box, game, {id, ask, names}) {
  const said = h('span', {role: 'status', class: 'muted'});
  const choice = h('select', {id: `${id}-policy`});
  names.then((found) => choice.append(...found.map((name) => h('option', {value: name}, name)))).catch((error) => { said.textContent = error.message; });
  const stage = h('div', {id});
  const player = mountPlayer(stage, game);
  const form = h('form', {class: 'filters', onsubmit: async (event) => {
    event.preventDefault();
    said.textContent = `${choice.value} looks at every position.`;
    try {
      player.beside(await ask(choice.value));
      said.textContent = '';
    } catch (error) {
      said.textContent = error.message;
    }
  }}, h('span', {class: 'pair'}, h('label', {for: `${id}-policy`}, 'Ask about every move'), choice), h('button', {type: 'submit', class: 'quiet', id: `${id}-ask`}, 'Ask'), said);
  box.append(form, stage);
  return {remove: player.remove};
}

/** The policies of a run that can be asked, and the bots. context: of a section. */
export async function advisors(context) {
  const {policies, bots} = await context.read('play', {});
  return [...policies, ...bots];
}
