import {card, h, note} from '../kit/dom.js';
import {draw} from '../plots/lineage.js';
import {draw as drawMix} from '../plots/opponent_mix.js';

export const title = 'Lineage';

function pages({offset, shown, total}, context) {
  if (shown >= total) return null;
  const to = (place) => context.link('lineage', {...context.query, offset: place});
  return h('p', null, offset > 0 ? h('a', {href: to(Math.max(offset - shown, 0))}, 'Earlier players') : null, ' ',
    offset + shown < total ? h('a', {href: to(offset + shown)}, 'Later players') : null);
}

function playerChoice(data, context) {
  const select = h('select', {id: 'lineage-player', value: data.mix.player, onchange: (event) => {
    context.go('lineage', {...context.query, player: event.currentTarget.value});
  }}, [...new Set([...data.graph.lanes, data.mix.player])].map((name) => h('option', {value: name}, name)));
  return h('div', {class: 'filters'}, h('label', {for: 'lineage-player'}, 'Player'), select);
}

export function render(root, data, context) {
  if (data.error) root.append(note(data.error));
  if (!data.graph) {
    if (!data.error) root.append(note('The journal is being read; the lineage comes by itself.'));
    context.soon();
    return;
  }
  const box = card('');
  root.append(box);
  draw(box, data.graph, {title: 'Snapshots', level: 2,
    pick: (snapshot) => context.go('events', {text: snapshot})});
  const more = pages(data.graph.players, context);
  if (more) box.append(more);
  if (data.mix) {
    const mix = card('', playerChoice(data, context));
    root.append(mix);
    drawMix(mix, data.mix, {level: 2});
  }
}
