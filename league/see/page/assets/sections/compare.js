import {card, h, note} from '../kit/dom.js';
import {reportLink} from '../kit/report_link.js';
import {drawComparison} from '../plots/curves.js';

export const title = 'Compare runs';

const MAX_RUNS = 6;

function choice(context, chosen) {
  const boxes = context.runs.filter((run) => run.id !== context.run).map((run) => {
    const box = h('input', {type: 'checkbox', id: `compare-${run.id}`, checked: chosen.includes(run.id), onchange: (event) => {
      const others = chosen.filter((name) => name !== run.id);
      if (event.currentTarget.checked) others.push(run.id);
      context.go('compare', {runs: others.join(',')});
    }, disabled: !chosen.includes(run.id) && chosen.length >= MAX_RUNS - 1});
    return h('label', {class: 'choice'}, box, ` ${run.id} (${run.phase})`);
  });
  return h('fieldset', {class: 'filters'}, h('legend', null, `${context.run} beside`), boxes);
}

// A trial of a sweep is no run of the folder, and stands by SWEEP~NUMBER in an address.
const known = (others, name) => name.includes('~') || others.some((run) => run.id === name);

export async function render(root, data, context) {
  const others = context.runs.filter((run) => run.id !== context.run);
  const chosen = (context.query.runs || '').split(',').filter((name) => known(others, name));
  if (!others.length && !chosen.length) {
    root.append(note('There is no other run beside this one. Serve the folder above it to compare its runs: ',
      h('code', null, 'league serve runs')));
    return;
  }
  root.append(choice(context, chosen));
  if (!chosen.length) {
    root.append(note('Choose the runs to compare.'));
    return;
  }
  const words = new URLSearchParams([data.run, ...chosen].map((name) => ['run', name]));
  const found = await context.get(`/compare?${words}`);
  const box = card('', h('p', null, reportLink([data.run, ...chosen])));
  root.append(box);
  drawComparison(box, found, {level: 2});
}
