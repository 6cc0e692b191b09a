// A plot as a file: its picture as SVG or PNG, its numbers as CSV.

import {h} from '../kit/dom.js';

const SCALE = 2; // pixels of the PNG for each of the plot's

/** The menu of a plot. name: of the files. picture: () => SVG element; rows: () => lists of cells. */
export function saveMenu(id, name, {picture, rows}) {
  const button = (kind, save) => h('button', {type: 'button', class: 'quiet', id: `${id}-${kind}`, 'aria-label': `Save ${name} as ${kind.toUpperCase()}`,
    onclick: (event) => {
      save();
      event.currentTarget.closest('details').open = false;
    }}, kind.toUpperCase());
  const stem = name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const parts = [];
  if (picture) {
    parts.push(button('png', () => savePng(`${stem}.png`, picture())),
      button('svg', () => save(`${stem}.svg`, 'image/svg+xml', svgText(picture()))));
  }
  parts.push(button('csv', () => save(`${stem}.csv`, 'text/csv', csvText(rows()))));
  return h('details', {class: 'plot-save', id: `${id}-save`}, h('summary', {'aria-label': `Save ${name}`}, 'Save'), h('div', {}, parts));
}

function save(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], {type}));
  download(name, url);
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function download(name, url) {
  h('a', {href: url, download: name}).click();
}

function savePng(name, svg) {
  const image = new Image();
  const [width, height] = ['width', 'height'].map((side) => Number(svg.getAttribute(side)));
  image.onload = () => {
    const canvas = h('canvas', {width: width * SCALE, height: height * SCALE});
    canvas.getContext('2d').drawImage(image, 0, 0, width * SCALE, height * SCALE);
    download(name, canvas.toDataURL('image/png'));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
}

/** A picture as text that stands by itself: its colours are values, and a ground lies behind it. */
export function svgText(svg) {
  const copy = svg.cloneNode(true);
  const style = getComputedStyle(document.documentElement);
  const ground = document.createElementNS(svg.namespaceURI, 'rect');
  for (const [key, value] of Object.entries({width: '100%', height: '100%', fill: 'var(--panel, #ffffff)'})) ground.setAttribute(key, value);
  copy.prepend(ground);
  copy.setAttribute('font-family', 'system-ui, sans-serif');
  copy.setAttribute('font-size', '12');
  const text = new XMLSerializer().serializeToString(copy);
  return text.replace(/var\(--([a-z0-9-]+)(?:, ?([^)]*))?\)/g, (whole, name, otherwise) => style.getPropertyValue(`--${name}`).trim() || otherwise);
}

function csvText(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? '' : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\n`).join('');
}
