// The shell: way in, navigation by the address, and the refresh of the open section as the run proceeds.

import {enter, enterBy, follow, get, post} from './kit/api.js';
import {h} from './kit/dom.js';
import {counted, duration} from './kit/format.js';

const REFRESH_MS = 2000;
const modules = new Map();
const place = {run: null, section: null, query: {}};
let sections = [], runs = [], readOnly = false, leave = [], endNews = null, dirty = false, refreshedAt = 0, shownAt = 0, number = 0;

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

function context() {
  return {...place, runs, readOnly, link, go, read, get, post, announce, onRemove: end => leave.push(end), refresh: () => show(false)};
}

function isBusy(root) {
  const focused = document.activeElement;
  return root.contains(focused) && focused.matches('input, select, textarea') || root.querySelector('[data-busy]') !== null;
}

function failed(error) {
  const main = byId('main');
  main.replaceChildren(h('section', {class: 'card bad-edge', role: 'alert'}, h('h1', null, 'That did not work'), h('p', null, error.message)));
}

/** Read the open section and draw it; a refresh keeps focus, scroll and open details. */
async function show(isNew) {
  const mine = ++number;
  const {section, query} = place;
  dirty = false;
  refreshedAt = Date.now();
  try {
    const [drawn, data] = await Promise.all([module(section), read(section, query)]);
    if (mine !== number) return;
    const main = byId('main');
    const focused = document.activeElement && main.contains(document.activeElement) ? document.activeElement.id : '';
    const open = new Set([...main.querySelectorAll('details[open]')].map(each => each.id));
    const scrolled = new Map([...main.querySelectorAll('.scroll[id]')].map(each => [each.id, each.scrollLeft]));
    leave.splice(0).forEach(end => end());
    const heading = h('h1', {tabindex: -1, id: 'heading'}, drawn.title);
    const root = h('div', {class: `section section-${section}`});
    main.replaceChildren(heading, root);
    await drawn.render(root, data, context());
    for (const each of root.querySelectorAll('details')) if (open.has(each.id)) each.open = true;
    for (const [id, left] of scrolled) if (byId(id)) byId(id).scrollLeft = left;
    document.title = `${drawn.title} · ${place.run} · League`;
    if (isNew) {
      // Not with the first picture: there the Tab key begins at the link that skips the navigation.
      if (shownAt) heading.focus({preventScroll: true});
      scrollTo(0, 0);
    } else if (focused && byId(focused)) {
      byId(focused).focus({preventScroll: true});
    }
    shownAt = Date.now();
    main.dataset.shown = section;
    performance.mark('shown');
  } catch (error) {
    if (mine === number) failed(error);
  }
}

function drawNavigation() {
  const items = sections.map(name => module(name).then(each => h('a', {
    href: link(name), id: `nav-${name}`, 'aria-current': name === place.section ? 'page' : null,
  }, each.title)));
  Promise.all(items).then(found => {
    byId('nav').replaceChildren(h('ul', null, found.map(each => h('li', null, each))));
    const open = byId(`nav-${place.section}`);
    if (open) byId('nav').scrollLeft = open.offsetLeft - byId('nav').clientWidth / 2 + open.clientWidth / 2;
  });
}

function showRuns() {
  byId('nav').replaceChildren();
  byId('run-name').textContent = '';
  document.title = 'League';
  byId('main').dataset.shown = 'runs';
  byId('main').replaceChildren(h('h1', {tabindex: -1}, 'Runs'), h('ul', {class: 'runs'}, runs.map(run => h('li', {class: 'card'},
    h('a', {href: link('overview', {}, run.id)}, run.id), h('p', {class: 'muted'},
      `${run.phase}, ${counted(run.env_steps, 'env step')}, ${counted(run.snapshots, 'snapshot')}`)))));
}

async function navigate() {
  const found = parsed();
  if (!found.run && runs.length === 1) found.run = runs[0].id;
  if (!found.run) {
    if (endNews) endNews();
    endNews = null;
    place.run = null;
    runs = (await get('/runs')).runs;
    return showRuns();
  }
  const other = found.run !== place.run;
  Object.assign(place, {run: found.run, section: sections.includes(found.section) ? found.section : sections[0], query: found.query});
  byId('run-name').textContent = place.run;
  if (!other) drawNavigation();
  if (other) {
    if (endNews) endNews();
    endNews = follow(place.run, () => { dirty = true; }, up => { byId('freshness').dataset.up = String(up); });
  }
  byId('main').setAttribute('aria-busy', 'true');
  await show(true);
  if (other) drawNavigation(); // after the first picture, as it loads every section for its title
  byId('main').removeAttribute('aria-busy');
}

function tick() {
  const fresh = byId('freshness');
  const lost = fresh.dataset.up === 'false';
  fresh.textContent = lost ? 'connection lost' : shownAt ? `updated ${duration((Date.now() - shownAt) / 1000)} ago` : '';
  fresh.classList.toggle('lost', lost);
  if (dirty && place.run && !document.hidden && Date.now() - refreshedAt >= REFRESH_MS && !isBusy(byId('main'))) show(false);
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
  const field = h('input', {id: 'token', type: 'password', autocomplete: 'off', required: true});
  const said = h('p', {role: 'alert'}, error.status === 401 ? '' : error.message);
  const form = h('form', {class: 'card', onsubmit: async event => {
    event.preventDefault();
    try {
      await begin(await enterBy(field.value.trim().replace(/^.*#token=/, '')));
    } catch (again) {
      said.textContent = again.message;
    }
  }}, h('h1', null, 'Who is there?'), h('p', null, 'Open this page by the address that league serve prints, or give its token here.'),
  h('label', {for: 'token'}, 'Token or address'), field, h('button', {type: 'submit'}, 'Enter'), said);
  byId('main').replaceChildren(form);
}

async function begin(session) {
  sections = session.sections;
  readOnly = !session.may_change;
  byId('read-only').hidden = !readOnly;
  runs = (await get('/runs')).runs;
  addEventListener('hashchange', () => { if (location.hash !== '#main') navigate().catch(failed); });
  setInterval(tick, 500);
  await navigate();
}

setUpTheme();
enter().then(begin).catch(error => (error.status === 401 || error.status === 0 ? askForToken(error) : failed(error)));
