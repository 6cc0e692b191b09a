// The static report: draws every figure in the JSON of the document.

import {draw as curves, drawComparison} from './curves.js';
import {h} from '../kit/dom.js';
import {patch, show} from '../kit/patch.js';
import {whole} from './elements.js';
import {draw as heatmap} from './heatmap.js';
import {draw as lineage} from './lineage.js';
import {draw as metaGame} from './meta_game.js';
import {draw as opponentMix} from './opponent_mix.js';
import {draw as ratings, drawYardsticks} from './ratings.js';

/** Draws a Report. */
export function draw(root, report) {
  const names = report.runs.map((run) => run.name);
  const made = new Date(report.made_at * 1000).toISOString().slice(0, 16).replace('T', ' ');
  const parts = [];
  if (report.comparison) parts.push(['compare', 'Runs compared', (box) => drawComparison(box, report.comparison)]);
  report.runs.forEach((run, number) => {
    const prefix = report.runs.length > 1 ? `${run.name}: ` : '';
    for (const [id, title, fill] of sections(run)) parts.push([`${id}-${number}`, prefix + title, fill]);
  });
  show(root, h('h1', {}, names.join(', ')), h('p', {}, `Made ${made} UTC by league ${report.version}.`),
    h('nav', {'aria-label': 'Contents'}, h('ul', {}, parts.map(([id, title]) => h('li', {}, h('a', {href: `#${id}`}, title))))),
    parts.map(([id, title, fill]) => {
      const box = h('section', {'aria-labelledby': id});
      fill(box);
      return [h('h2', {id}, title), box];
    }));
}

function sections(run) {
  const found = [
    ['strength', 'Strength', (box) => {
      box.append(facts(run));
      ratings(box, run.ratings);
      drawYardsticks(box, run.yardsticks);
    }],
    ['payoff', 'Payoff', (box) => heatmap(box, run.payoff, {title: 'Win rates'})],
    ['meta-game', 'Meta-game', (box) => metaGame(box, run.meta_game)],
    ['lineage', 'Lineage', (box) => lineage(box, run.lineage, {title: 'Snapshots'})],
    ['run', 'Run', (box) => curves(box, run.curves)],
    ['players', 'Players', (box) => players(box, run)],
  ];
  return found;
}

// The plots of a player are drawn when its part is opened: a canvas in a closed part has no width.
function players(box, run) {
  for (const {player, curves: found} of run.player_curves) {
    const mix = run.mixes.find((one) => one.player === player);
    const fill = (event) => {
      if (!event.currentTarget.open) return;
      const content = h('div');
      if (mix) opponentMix(content, mix);
      curves(content, found);
      patch(event.currentTarget.lastChild, content);
    };
    box.append(h('details', {class: 'player', ontoggle: fill}, h('summary', {}, player), h('div')));
  }
}

function facts(run) {
  const listed = [['phase', run.phase], ['games', whole(run.games)], ['env steps', whole(run.env_steps)],
    ['players', whole(run.players)], ['snapshots', whole(run.snapshots)], ['events', whole(run.events)]];
  return h('dl', {class: 'facts'}, listed.map(([term, value]) =>
    h('div', {}, h('dt', {}, term), h('dd', {}, value))));
}
