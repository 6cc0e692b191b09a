import {badge, card, figure, h, note} from '../kit/dom.js';
import {ago, count, duration, elo, percent} from '../kit/format.js';
import {draw as lines} from '../plots/lines.js';
import {drawYardsticks} from '../plots/ratings.js';

export const title = 'Overview';

const WORDS = {good: 'good', warn: 'look', bad: 'bad'};

export function render(root, data, context) {
  const plot = {level: 3, height: 200, onRemove: context.onRemove};
  root.append(
    h('p', {class: 'lead'}, badge(data.phase, data.is_live ? 'good' : data.phase === 'failed' || data.phase === 'killed' ? 'bad' : 'plain'),
      ' ', data.now, data.message ? ` ${data.message}` : ''),
    h('dl', {class: 'figures'},
      figure('Game', data.game),
      figure('Env steps', count(data.env_steps), data.is_live ? `${count(data.steps_per_s)}/s` : null),
      figure('Games', count(data.games)),
      figure('Players', count(data.players)),
      figure('Snapshots', count(data.snapshots)),
      figure('Trained', duration(data.trained_s)),
      figure('Budget spent', percent(data.budget_spent)),
      figure('Best', data.best ? elo(data.best.elo) : '–', data.best ? `Elo [${elo(data.best.low)}, ${elo(data.best.high)}]` : null)),
    card('Is it healthy?', h('ul', {class: 'checks'}, data.checks.map(check => h('li', null,
      badge(WORDS[check.kind], check.kind), ' ', check.text, check.evidence ? h('span', {class: 'muted'}, ` ${check.evidence}`) : null))),
    data.heartbeat_at ? note(`Last heartbeat ${ago(data.heartbeat_at)}.`) : null),
  );
  const stronger = card('Is it getting stronger?',
    note('Scores against opponents that never change need no rating model: where they stay level while ratings rise, the league only beats itself.'));
  root.append(stronger);
  if (data.yardsticks.curves.length || data.yardsticks.probes.length) {
    drawYardsticks(stronger, data.yardsticks, plot);
  } else {
    stronger.append(note(data.expected));
  }
  lines(stronger, {title: 'Best rating', x: 'env steps', y: 'Elo', series: [{label: 'best', ...data.best_rating}]}, plot);
  const speed = card('Speed');
  root.append(speed);
  lines(speed, {title: 'Env steps per second', x: 'env steps', y: 'steps/s', series: [{label: 'steps/s', ...data.speed}]}, plot);
  root.append(note(`Games count ${data.counts}. As of event ${data.seq.toLocaleString('en-GB')} of ${data.run}.`));
}
