import {card, h, note} from '../kit/dom.js';
import {draw, drawYardsticks} from '../plots/ratings.js';

export const title = 'Strength';
export const usesCourse = true;

function pages({offset, shown, total}, size, name, context) {
  if (shown >= total) return null;
  const to = (place) => context.link('strength', {...context.query, [name]: place});
  return h('p', null, offset > 0 ? h('a', {href: to(Math.max(offset - size, 0))}, 'Previous') : null, ' ',
    offset + shown < total ? h('a', {href: to(offset + shown)}, 'Next') : null);
}

export function render(root, data, context) {
  if (data.error) root.append(note(data.error));
  const options = {level: 2, ...context.plots};
  if (data.ratings) {
    const box = card('');
    root.append(box);
    draw(box, data.ratings, options);
    const more = pages(data.ratings.players, data.ratings.players.shown, 'offset', context);
    if (more) box.append(more);
  } else if (!data.error) {
    root.append(note('Ratings are being computed; they come by themselves.'));
    context.soon();
  }
  if (!data.yardsticks.curves.length && !data.yardsticks.probes.length) {
    root.append(note(data.expected));
    return;
  }
  const box = card('');
  root.append(box);
  drawYardsticks(box, data.yardsticks, options);
  const more = pages(data.yardsticks.yardsticks, 6, 'first', context);
  if (more) box.append(more);
}
