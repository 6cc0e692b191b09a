// Deeds on whole runs: what became of each, in words, and the wait for their end.

import {badge, h} from './dom.js';
import {duration} from './format.js';

const LOOK_MS = 700;
const KINDS = {working: 'warn', done: 'good', refused: 'bad'};

/** One deed as a line. link: (section, query, run) => address. */
export function deedWords(deed, link) {
  const seconds = (deed.ended || Date.now() / 1000) - deed.since;
  return h('p', {key: deed.number, class: 'deed'}, badge(deed.state, KINDS[deed.state]), ` ${deed.name} `, h('b', null, deed.run), ` (${duration(Math.max(seconds, 0))})`,
    deed.said ? h('span', null, `: ${deed.said}`) : null,
    deed.state === 'done' && deed.began ? [' ', h('a', {href: link('overview', {}, deed.began), class: 'deed-began'}, `Open ${deed.began}`)] : null);
}

/** Wait until a deed has ended; changed: called with each look at it. */
export async function deedDone(begun, get, changed) {
  for (;;) {
    const {deeds} = await get('/deeds');
    const found = deeds.find((deed) => deed.number === begun.number) || begun;
    changed(found);
    if (found.state !== 'working') return found;
    await new Promise((after) => setTimeout(after, LOOK_MS));
  }
}
