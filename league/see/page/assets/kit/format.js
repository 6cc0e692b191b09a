// Numbers and times for people.

export function count(n) {
  if (n === null || n === undefined) return '–';
  const size = Math.abs(n);
  if (size >= 1e9) return `${Number((n / 1e9).toFixed(2))}G`;
  if (size >= 1e6) return `${Number((n / 1e6).toFixed(2))}M`;
  if (size >= 1e4) return `${Number((n / 1e3).toFixed(1))}k`;
  return Math.round(n).toLocaleString('en-GB');
}

/** A whole number with its noun, which has an s where it needs one. */
export function counted(n, noun) {
  return `${n.toLocaleString('en-GB')} ${noun}${n === 1 ? '' : 's'}`;
}

export function elo(x) {
  if (x === null || x === undefined) return '–';
  const rounded = Math.round(x);
  return rounded > 0 ? `+${rounded}` : rounded < 0 ? `−${-rounded}` : '0';
}

export function percent(x, digits = 0) {
  return x === null || x === undefined ? '–' : `${(100 * x).toFixed(digits)} %`;
}

export function fixed(x, digits = 3) {
  return x === null || x === undefined ? '–' : Number(x).toFixed(digits);
}

/** Bytes, as 512 B, 1.5 kB or 20 MB. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return '–';
  const [unit, name] = [[1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']].find(([each]) => bytes >= each) || [1, 'B'];
  return `${Number((bytes / unit).toPrecision(3))} ${name}`;
}

/** Three significant digits. */
export function short(x) {
  if (x === null || x === undefined) return '–';
  const size = Math.abs(x);
  if (size >= 1e4) return count(x);
  if (x === 0) return '0';
  return size < 1e-3 ? x.toExponential(2) : String(Number(x.toPrecision(3)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function ago(wall) {
  return wall ? `${duration(Math.max(Date.now() / 1000 - wall, 0))} ago` : '–';
}

export function clock(wall) {
  return wall ? new Date(wall * 1000).toISOString().replace('T', ' ').slice(0, 19) : '–';
}
