import {badge, card, figure, h, note} from '../kit/dom.js';
import {ago, count, duration, elo, percent} from '../kit/format.js';
import {reportLink} from '../kit/report_link.js';
import {draw as lines} from '../plots/lines.js';
import {draw as drawRatings, drawYardsticks} from '../plots/ratings.js';

export const title = 'Overview';
export const usesCourse = true;

const WORDS = {good: 'good', warn: 'look', bad: 'bad'};

function verdict(question, {kind, text, more}, ...extra) {
  return h('section', {class: `card verdict ${kind}-edge`, key: question}, h('h2', null, question), h('p', {class: 'answer'}, text),
    more ? note(more) : null, extra);
}

function details(data) {
  return h('dl', {class: 'figures'},
    figure('Game', data.game),
    figure('Env steps', count(data.env_steps), data.is_live ? `${count(data.steps_per_s)}/s` : null),
    figure('Games', count(data.games)),
    figure('Players', count(data.players)),
    figure('Snapshots', count(data.snapshots)),
    figure('Trained', duration(data.trained_s)),
    figure('Budget spent', percent(data.budget_spent)),
    figure('Best', data.best ? elo(data.best.elo) : '–', data.best ? `Elo [${elo(data.best.low)}, ${elo(data.best.high)}]` : null));
}

export function render(root, data, context) {
  const plot = {level: 3, ...context.plots};
  const phase = badge(data.phase, data.is_live ? 'good' : data.phase === 'failed' || data.phase === 'killed' ? 'bad' : 'plain');
  root.append(h('div', {class: 'verdicts'},
    verdict('Is it getting stronger?', data.stronger),
    verdict('Is it healthy?', data.health, h('details', {id: 'overview-checks'}, h('summary', null, 'All signs'),
      h('ul', {class: 'checks'}, data.checks.map((check) => h('li', null, badge(WORDS[check.kind], check.kind), ' ', check.text,
        check.evidence ? h('span', {class: 'muted'}, ` ${check.evidence}`) : null))),
      data.heartbeat_at ? note(`Last heartbeat ${ago(data.heartbeat_at)}.`) : null)),
    verdict('What is it doing?', data.doing, h('p', null, phase, data.message && !data.doing.text.includes(data.message) ? ` ${data.message}` : ''))));
  const stronger = card('');
  root.append(stronger);
  drawYardsticks(stronger, data.yardsticks, {...plot, height: 190, fixedOnly: true});
  if (!stronger.children.length) stronger.append(note(data.expected || 'Nothing that never changes has measured this league yet.'));
  const ratings = h('section', {class: 'card', key: 'ratings'});
  root.append(ratings);
  if (data.ratings) drawRatings(ratings, data.ratings, {...plot, height: 190});
  else ratings.append(note(data.games ? 'Ratings are being computed; they come by themselves.' : 'Ratings come with the first rated games.'));
  root.append(details(data));
  const speed = h('section', {class: 'card', key: 'speed'});
  root.append(speed);
  lines(speed, {title: 'Env steps per second', y: 'steps/s', series: [{label: 'steps/s', ...data.speed}]}, {...plot, height: 200});
  root.append(note(`Games count ${data.counts}. As of event ${data.seq.toLocaleString('en-GB')} of ${data.run}. `, reportLink([context.run]), '.'));
}
