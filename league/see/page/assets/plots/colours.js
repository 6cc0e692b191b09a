// Colours: eight series that colour-blind eyes tell apart, and a scale from orange (loses) through grey to blue (wins).

const LIGHT = {
  ink: '#1b1f24', muted: '#57606a', ground: '#ffffff', panel: '#f6f8fa', line: '#d0d7de', accent: '#0b5cad',
  series: ['#0b5cad', '#b34700', '#00705a', '#8a3a8f', '#7a5b00', '#006f8e', '#b01e5a', '#57606a'],
  low: '#c2570c', middle: '#eef0f2', high: '#1459a5',
};
const DARK = {
  ink: '#e6edf3', muted: '#9aa7b4', ground: '#0d1117', panel: '#161b22', line: '#30363d', accent: '#6cb2ff',
  series: ['#6cb2ff', '#ff9f5a', '#4fd1b0', '#d99be0', '#e3c04f', '#5fd0ee', '#ff8fb3', '#9aa7b4'],
  low: '#f2913d', middle: '#272d35', high: '#5ba8f5',
};

/** The value of a colour variable of the page as it is now, or its fallback. name: as in LIGHT, or series-1 to series-8. */
export function colour(name) {
  const given = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  if (given) return given;
  const fallback = isDark() ? DARK : LIGHT;
  const number = /^series-([1-8])$/.exec(name);
  return number ? fallback.series[number[1] - 1] : fallback[name];
}

/** The colour of a series as a value for SVG, which follows the theme by itself. */
export function series(index) {
  const number = (index % 8) + 1;
  return `var(--series-${number}, ${colour(`series-${number}`)})`;
}

const ROLES = {main_agent: 0, main_exploiter: 1, league_exploiter: 2, fixed: 7, '': 7};

/** The number of a role's colour, the same in every plot; roles of one's own share the other four. */
export function roleIndex(role) {
  if (role in ROLES) return ROLES[role];
  return 3 + [...role].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % 4;
}

/** A colour variable as a value for SVG. */
export function ink(name) {
  return `var(--${name}, ${colour(name)})`;
}

/** True where the page is dark now. */
export function isDark() {
  const ground = getComputedStyle(document.documentElement).getPropertyValue('--ground').trim();
  if (ground) return luminance(rgb(ground)) < 0.2;
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

/** The scale of win rates in [0, 1] as the page is now: rate => [background, ink that is read on it]. */
export function diverging() {
  const {low, middle, high} = isDark() ? DARK : LIGHT;
  const ends = [rgb(low), rgb(middle), rgb(high)];
  const known = new Map();
  return (rate) => {
    const step = Math.round(rate * 200);
    if (!known.has(step)) known.set(step, mixed(step / 200, ends));
    return known.get(step);
  };
}

function mixed(rate, [low, near, high]) {
  const far = rate < 0.5 ? low : high;
  // A root spreads the middle, where most win rates of equals lie.
  const amount = Math.min(Math.abs(rate - 0.5) * 2, 1) ** 0.75;
  const parts = near.map((part, place) => Math.round(part + (far[place] - part) * amount));
  // Black or white: on any colour one of the two has a contrast of at least 4.58.
  const dark = contrast(parts, [0, 0, 0]);
  return [`rgb(${parts.join(' ')})`, dark >= contrast(parts, [255, 255, 255]) ? '#000000' : '#ffffff'];
}

/** Contrast of two colours by WCAG 2. */
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance(parts) {
  const [r, g, b] = parts.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function rgb(text) {
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text);
  if (!hex) return (text.match(/[\d.]+/g) || [128, 128, 128]).slice(0, 3).map(Number);
  const digits = hex[1].length === 3 ? [...hex[1]].map((digit) => digit + digit).join('') : hex[1];
  return [0, 2, 4].map((place) => parseInt(digits.slice(place, place + 2), 16));
}

/** Calls back when the colours of the page change; returns a function that ends it. */
export function onTheme(callback) {
  const query = matchMedia('(prefers-color-scheme: dark)');
  query.addEventListener('change', callback);
  const observer = new MutationObserver(callback);
  observer.observe(document.documentElement, {attributes: true, attributeFilter: ['class', 'data-theme']});
  return () => {
    query.removeEventListener('change', callback);
    observer.disconnect();
  };
}
