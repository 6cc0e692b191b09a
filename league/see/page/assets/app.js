// The shell: way in, navigation by the address, and the refresh of the open section as the run proceeds.

import {enter, enterBy, follow, get, post} from './kit/api.js';
import {h} from './kit/dom.js';
import {patch, show as showIn} from './kit/patch.js';
import {plotControls} from './plots/controls.js';
import {counted, duration} from './kit/format.js';

const REFRESH_MS = 2000;
const SOON_MS = 400; // between two looks at what is still being computed
const modules = new Map();
const place = {run: null, section: null, query: {}, other: null};
const OTHERS = {'~pool': {module: 'pool', path: 'pools'}, '~sweep': {module: 'sweep', path: 'sweeps'}}; // in the place of a run in their addresses
let sections = [], runs = [], isOneRun = false, readOnly = false, endNews = null, dirty = false, refreshedAt = 0, shownAt = 0, number = 0, again = null;
const lost = {since: 0, server: false, daemon: null, news: {}, command: ''};

const byId = id => document.getElementById(id);
const announce = text => { byId('announce').textContent = text; };

function link(section, query = {}, run = place.run) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined));
  const tail = words.toString();
  return `#/${encodeURIComponent(run)}/${section}${tail ? `?${tail}` : ''}`;
}

function go(section, query = {}) {
  location.hash = link(section, query);
}

function parsed() {
  const [path, tail = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [run = '', section = ''] = path.split('/').map(decodeURIComponent);
  return {run, section, query: Object.fromEntries(new URLSearchParams(tail))};
}

function read(section, query) {
  const words = new URLSearchParams(query).toString();
  return get(`/runs/${encodeURIComponent(place.run)}/sections/${section}${words ? `?${words}` : ''}`);
}

async function module(section) {
  if (!modules.has(section)) modules.set(section, import(`./sections/${section}.js`));
  return modules.get(section);
}

function context(course) {
  return {...place, runs, readOnly, link, go, read, get, post, announce, refresh: () => show(false),
    plots: {course, run: place.run}, soon: () => { again = setTimeout(() => show(false), SOON_MS); }};
}

function failed(error) {
  showIn(byId('main'), h('section', {class: 'card bad-edge', role: 'alert'}, h('h1', null, 'That did not work'), h('p', null, error.message)));
}

/** Read the open section and draw it in place. */
async function show(isNew) {
  const mine = ++number;
  const {run, section, query} = place;
  dirty = false;
  refreshedAt = Date.now();
  clearTimeout(again);
  try {
    const drawn = await module(section);
    const [data, course] = await Promise.all([read(section, query), drawn.usesCourse ? get(`/runs/${encodeURIComponent(run)}/course`) : null]);
    if (mine !== number) return;
    const heading = h('h1', {tabindex: -1, id: 'heading'}, drawn.title);
    const root = h('div', {class: `section section-${section}`, key: `${run}/${section}`});
    await drawn.render(root, data, context(course));
    if (mine !== number) return;
    const stage = h('main', null, h('div', {class: 'section-head', key: 'head'}, heading, course ? plotControls(context(course).plots) : null), root);
    patch(byId('main'), stage);
    document.title = `${drawn.title} · ${run} · League`;
    if (isNew) {
      // Not with the first picture: there the Tab key begins at the link that skips the navigation.
      if (shownAt) byId('heading').focus({preventScroll: true});
      scrollTo(0, 0);
    }
    shownAt = Date.now();
    tellServer(true);
    byId('main').dataset.shown = section;
    performance.mark('shown');
  } catch (error) {
    if (mine !== number) return;
    if (isNew) failed(error);
    if (error.status === 0) tellServer(false);
  }
}

function tellServer(isThere) {
  if (isThere === !lost.server) return;
  lost.server = !isThere;
  lost.since = isThere ? 0 : shownAt || Date.now();
  dirty = true;
  drawBanner();
}

const SILENT_S = 30; // age of a heartbeat above which its daemon counts as silent

function tellDaemon(news) {
  lost.news = news;
  const isSilent = news.phase && !['stopped', 'failed'].includes(news.phase) && news.since && Date.now() / 1000 - news.since > SILENT_S;
  const phase = ['killed', 'failed'].includes(news.phase) ? news.phase : isSilent || news.phase === 'silent' ? 'silent' : '';
  lost.daemon = phase ? {...news, phase} : null;
  drawBanner();
}

// What is shown stays while its source is away; the banner says since when, and what to do.
function drawBanner() {
  const said = [];
  if (lost.server) {
    said.push(h('strong', null, `No answer from this page's server since ${timeOf(lost.since)}.`), ' Below is the last picture, which renews itself as soon as the server is back. ',
      ...(lost.command ? ['Start it with ', h('code', null, lost.command), '.'] : []));
  } else if (lost.daemon) {
    const {phase, since, path} = lost.daemon;
    said.push(h('strong', null, `The daemon of this run ${phase === 'silent' ? 'is silent' : `is gone (${phase})`} since ${timeOf(1000 * since)}.`), ' Below is its last state. ',
      ...(phase === 'silent' ? [] : [h('code', null, `league up ${path}`), ' continues it; ']), h('code', null, `league logs ${path}`), ' shows what it did last.');
  }
  const banner = byId('banner');
  banner.hidden = !said.length;
  showIn(banner, said);
}

function timeOf(ms) {
  return `${new Date(ms).toISOString().slice(11, 19)} UTC`; // no age: it would be read aloud with every second
}

function drawNavigation() {
  const items = sections.map(name => module(name).then(each => h('a', {
    href: link(name), id: `nav-${name}`, 'aria-current': name === place.section ? 'page' : null,
  }, each.title)));
  Promise.all(items).then(found => {
    showIn(byId('nav'), h('ul', null, found.map(each => h('li', null, each))));
    const open = byId(`nav-${place.section}`);
    if (open) byId('nav').scrollLeft = open.offsetLeft - byId('nav').clientWidth / 2 + open.clientWidth / 2;
  });
}

/** Read the table of runs and draw it in place. */
async function showRuns() {
  const mine = ++number;
  refreshedAt = Date.now();
  const [{draw}, table, {deeds}] = await Promise.all([import('./sections/runs.js'), get('/run-table'), readOnly ? {deeds: []} : get('/deeds')]);
  if (mine !== number) return;
  showIn(byId('nav'));
  byId('run-name').textContent = '';
  document.title = 'League';
  runs = table.rows;
  draw(byId('main'), {...table, deeds}, {get, post, link, announce, readOnly, refresh: showRuns});
  shownAt = Date.now();
  tellServer(true);
  byId('main').dataset.shown = 'runs';
}

/** Read a rating pool or a sweep and draw it in place. */
async function showOther({kind, name, query}) {
  const mine = ++number;
  refreshedAt = Date.now();
  clearTimeout(again);
  const {module: file, path} = OTHERS[kind];
  const [{draw}, data] = await Promise.all([import(`./sections/${file}.js`), get(`/${path}/${encodeURIComponent(name)}`)]);
  if (mine !== number) return;
  showIn(byId('nav'));
  byId('run-name').textContent = name;
  document.title = `${name} · League`;
  draw(byId('main'), data, {get, post, announce, readOnly, query, link: (one, words) => link(one, words, kind), runLink: link, refresh: () => showOther({kind, name, query})});
  shownAt = Date.now();
  tellServer(true);
  byId('main').dataset.shown = file;
}

async function navigate() {
  const found = parsed();
  place.other = found.run in OTHERS ? {kind: found.run, name: found.section, query: found.query} : null;
  if (place.other) found.run = '';
  if (!found.run && !place.other && isOneRun) found.run = runs[0].id;
  if (!found.run) {
    if (endNews) endNews();
    endNews = null;
    place.run = null;
    tellDaemon({});
    return showTop();
  }
  const other = found.run !== place.run;
  Object.assign(place, {run: found.run, section: sections.includes(found.section) ? found.section : sections[0], query: found.query});
  byId('run-name').textContent = place.run;
  if (!other) drawNavigation();
  if (other) {
    if (endNews) endNews();
    endNews = follow(place.run, news => { dirty = true; tellDaemon(news); }, tellServer);
  }
  byId('main').setAttribute('aria-busy', 'true');
  await show(true);
  if (other) drawNavigation(); // after the first picture, as it loads every section for its title
  byId('main').removeAttribute('aria-busy');
}

function showTop() {
  return place.other ? showOther(place.other) : showRuns();
}

function tick() {
  byId('freshness').textContent = shownAt && !lost.server ? `updated ${duration((Date.now() - shownAt) / 1000)} ago` : '';
  if (lost.server) drawBanner();
  else tellDaemon(lost.news);
  if (document.hidden || Date.now() - refreshedAt < REFRESH_MS) return;
  if (place.run && dirty) show(false);
  else if (!place.run && shownAt) showTop().catch((error) => { if (error.status === 0) tellServer(false); });
}

function themeOf() {
  return document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

function drawTheme() {
  byId('theme').textContent = themeOf() === 'dark' ? 'Light' : 'Dark';
  byId('theme').setAttribute('aria-label', themeOf() === 'dark' ? 'Light colours' : 'Dark colours');
}

function setUpTheme() {
  const kept = localStorage.getItem('theme');
  if (kept) document.documentElement.dataset.theme = kept;
  byId('theme').addEventListener('click', () => {
    document.documentElement.dataset.theme = themeOf() === 'dark' ? 'light' : 'dark';
    localStorage.setItem('theme', document.documentElement.dataset.theme);
    drawTheme();
    if (place.run) show(false);
  });
  drawTheme();
}

function askForToken(error) {
  const form = h('form', {class: 'card', onsubmit: async event => {
    event.preventDefault();
    try {
      await begin(await enterBy(byId('token').value.trim().replace(/^.*#token=/, '')));
    } catch (again) {
      byId('refused').textContent = again.message;
    }
  }}, h('h1', null, 'Who is there?'), h('p', null, 'Open this page by the address that league serve prints, or give its token here.'),
  h('label', {for: 'token'}, 'Token or address'), h('input', {id: 'token', type: 'password', autocomplete: 'off', required: true}),
  h('button', {type: 'submit'}, 'Enter'), h('p', {role: 'alert', id: 'refused'}, error.status === 401 ? '' : error.message));
  showIn(byId('main'), form);
}

async function begin(session) {
  sections = session.sections;
  lost.command = session.command;
  readOnly = !session.may_change;
  isOneRun = session.is_of_one_run;
  byId('read-only').hidden = !readOnly;
  runs = (await get('/runs')).runs;
  addEventListener('hashchange', () => { if (location.hash !== '#main') navigate().catch(failed); });
  setInterval(tick, 500);
  await navigate();
}

setUpTheme();
enter().then(begin).catch(error => (error.status === 401 || error.status === 0 ? askForToken(error) : failed(error)));
