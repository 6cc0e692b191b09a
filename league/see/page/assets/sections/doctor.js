import {badge, card, h, note} from '../kit/dom.js';
import {count} from '../kit/format.js';

export const title = 'Doctor';

export function render(root, data) {
  if (data.error) root.append(h('p', {role: 'alert'}, data.error));
  if (!data.is_ready) {
    if (!data.error) root.append(card('', h('p', null, 'The journal is being examined; the findings appear here by themselves.')));
    return;
  }
  if (!data.findings.length) {
    root.append(card('', h('p', null, badge('good', 'good'), ` Nothing found by ${data.checks} checks over ${count(data.games)} games.`)));
  }
  for (const finding of data.findings) {
    root.append(card(finding.check, h('p', null, badge('look', 'warn'), ` ${finding.what}`),
      h('dl', {class: 'finding'}, h('dt', null, 'Seen'), h('dd', null, finding.evidence), h('dt', null, 'Change'), h('dd', null, finding.change))));
  }
  root.append(note(`${data.checks} checks over ${count(data.games)} games (${data.counts}), as of event ${data.as_of.toLocaleString('en-GB')} of ${data.seq.toLocaleString('en-GB')}.`));
}
