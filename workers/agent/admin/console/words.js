// Numbers as people read them, and elements that hold text: whatever clients named never becomes HTML.

const NOTHING = "–";
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function scaled(value, step, units) {
  let at = 0;
  while (at < units.length - 1 && Math.abs(value) >= step * 0.9995) {
    value /= step;
    at += 1;
  }
  // Three digits, whatever the size: columns stay as wide as they are.
  const digits = value >= 99.95 || (at === 0 && Number.isInteger(value)) ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + units[at];
}

/** A count or a rate: 9,812, 51.2 k, 3.40 M. */
function count(value) {
  if (value == null) return NOTHING;
  if (value > 0 && value < 9.95 && !Number.isInteger(value)) return value.toFixed(1);
  return value < 9999.5 ? plain.format(value) : scaled(value, 1000, ["", " k", " M", " G", " T"]);
}

function bytes(value) {
  return value == null ? NOTHING : scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
}

/** A part of one. */
function percent(value) {
  if (value == null) return NOTHING;
  const hundredths = value * 100;
  return (hundredths > 0 && hundredths < 9.95 ? hundredths.toFixed(1) : hundredths.toFixed(0)) + " %";
}

/** A time in seconds: 12 µs, 1.30 ms, 4.2 s, 3 min 10 s, 4 d 2 h. */
function time(value) {
  if (value == null) return NOTHING;
  if (value < 0.0000005) return "0 µs";
  if (value < 0.9995) return scaled(value * 1e6, 1000, [" µs", " ms"]).replace(/^(\d+)\.\d+ µs$/, "$1 µs");
  if (value < 9.95) return `${value.toFixed(1)} s`;
  return span(value);
}

/** A time in whole units, of which it has the two largest. */
function span(value) {
  let rest = Math.max(0, Math.floor(value));
  const parts = [];
  for (const [unit, seconds] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    const whole = Math.floor(rest / seconds);
    rest -= whole * seconds;
    if (whole) parts.push(`${whole} ${unit}`);
    else if (parts.length) break;
  }
  return parts.slice(0, 2).join(" ") || "0 s";
}

/** A moment, in Unix seconds, by the clock on the wall. */
function clock(moment) {
  return new Date(moment * 1000).toLocaleTimeString("en-GB");
}

function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

const total = (counts) => Object.values(counts ?? {}).reduce((sum, value) => sum + value, 0);
const place = (id) => document.getElementById(id);

/** Text of others with a mark for all that has no shape of its own, but could turn a line around or hide in it. */
const visible = (text) => String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");

/** Set text only where it changed: the rest of the page need not be laid out again. */
function say(node, text) {
  const said = visible(text);
  if (node.textContent !== said) node.textContent = said;
}

/** Say something for which there may be too little room. */
function remark(node, text) {
  say(node, text);
  set(node, "title", visible(text));
}

function set(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function recall(key) {
  try {
    return localStorage.getItem(`skywalker-${key}`);
  } catch {
    return null; // The browser keeps nothing for this page.
  }
}

function keep(key, value) {
  try {
    localStorage.setItem(`skywalker-${key}`, value);
  } catch {} // It is asked again next time.
}
