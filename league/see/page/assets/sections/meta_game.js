import {card, h, note} from '../kit/dom.js';
import {drawBars, drawDisc} from '../plots/meta_game.js';

export const title = 'Meta-game';

export function render(root, data, context) {
  if (data.error) root.append(note(data.error));
  if (!data.game) {
    if (!data.error) root.append(note('The game between snapshots is being solved; it comes by itself.'));
    context.soon();
    return;
  }
  const options = {level: 2, pick: (policy) => context.go('events', {text: policy}),
    link: (kind, id) => context.link('events', {text: id})};
  const disc = card('');
  const bars = card('');
  root.append(h('div', {class: 'columns'}, disc, bars), note(`As of event ${data.seq.toLocaleString('en-GB')}.`));
  drawDisc(disc, data.game, options);
  drawBars(bars, data.game, options);
}
