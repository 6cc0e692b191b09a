// The report on some runs as one file, which opens without this page.

import {h} from './dom.js';

export function reportLink(runs) {
  const words = new URLSearchParams(runs.map((run) => ['run', run]));
  return h('a', {href: `/api/v1/report?${words}`, download: '', class: 'report-link', key: 'report'}, 'Report as one file');
}
