import {badge, card, figure, h, note} from '../kit/dom.js';
import {table} from '../kit/table.js';
import {clock, count} from '../kit/format.js';
import {draw as lines} from '../plots/lines.js';

export const title = 'Fleet';
export const usesCourse = true;

const KINDS = {working: 'good', parked: 'warn', drained: 'plain', lost: 'bad'};

export function render(root, data, context) {
  root.append(h('dl', {class: 'figures'},
    figure('Steps/s', count(data.steps_per_s)), figure('Leases in hand', count(data.num_leases)), figure('Leases finished', count(data.finished)),
    figure('Leases lost', count(data.expired)), figure('Hosts lost', count(data.hosts_lost)), figure('Answers refused', count(data.refused)),
    figure('Games thrown away', count(data.aborted)), figure('Open directives', count(data.directives))),
  card('Hosts', data.hosts.length ? table({
    id: 'hosts', caption: 'Hosts', rows: data.hosts,
    columns: [
      {key: 'name', label: 'Host'},
      {key: 'kind', label: 'Kind', rank: 1, cell: row => row.kind.replaceAll('_', ' ')},
      {key: 'state', label: 'State', cell: row => badge(row.state, KINDS[row.state] || 'plain')},
      {key: 'player', label: 'Works for', cell: row => row.player || row.device || null},
      {key: 'lease', label: 'Lease', number: true, rank: 2, cell: row => row.lease || null},
      {key: 'pid', label: 'Process', number: true, rank: 1, cell: row => row.pid || null},
      {key: 'change', label: 'Change', value: row => row.state, cell: row => (row.kind !== 'actor_host' || context.readOnly ? null
        : h('a', {href: context.link('operations', {name: row.state === 'parked' ? 'unpark' : 'park', value: row.name})}, row.state === 'parked' ? 'Unpark' : 'Park'))},
    ],
  }) : note('The run is not live: it has no hosts now.')));
  const charts = h('div', {class: 'columns'});
  root.append(charts);
  for (const chart of data.charts) {
    const box = h('section', {class: 'card', key: chart.title});
    charts.append(box);
    lines(box, {title: chart.title, summary: chart.meaning, series: [{label: chart.title, ...chart.series}]},
      {level: 2, height: 200, ...context.plots});
  }
  root.append(
    card('Leases in hand', data.leases.length ? table({
      id: 'leases', caption: 'Leases in hand', rows: data.leases,
      columns: [
        {key: 'lease_id', label: 'Lease', number: true},
        {key: 'host', label: 'Host'},
        {key: 'home', label: 'For'},
        {key: 'steps', label: 'Steps', number: true, cell: row => count(row.steps)},
        {key: 'assignments', label: 'Assignments', number: true},
      ],
    }) : note('None.')),
    card('Failures', data.failures.length ? h('ol', {class: 'events'}, data.failures.map(each => h('li', null,
      each.seq.toLocaleString('en-GB'), ' ', badge(each.kind, 'warn'), ' ', h('span', {class: 'muted'}, clock(each.wall_time)), ` ${each.text}`)))
      : note('No lease was lost and nothing was set aside.')),
    card('Logs', data.logs.length ? h('p', {class: 'filters'}, data.logs.map(name => h('a', {
      href: context.link('fleet', name === data.log ? {} : {log: name}), id: `log-${name}`, 'aria-current': name === data.log ? 'true' : null}, name))) : note('No logs.'),
    data.log ? h('pre', {tabindex: 0, 'aria-label': `end of ${data.log}.log`, role: 'region'}, data.lines.join('\n') || '(empty)') : null),
  );
}
