// Lines over the last minutes. They are stretched to the width of their place, so that nothing is measured.

const HEIGHT = 100;

/** The path of a line; a gap in the values is a gap in it. */
function linePath(values, height) {
  let path = "", pen = false;
  values.forEach((value, at) => {
    if (value == null) pen = false;
    else {
      path += `${pen ? "L" : "M"}${at} ${height(value).toFixed(2)}${pen ? "" : "h0"}`;
      pen = true;
    }
  });
  return path;
}

/** The path of what lies below a line. */
function areaPath(values, height) {
  let path = "", from = null;
  [...values, null].forEach((value, at) => {
    if (value == null) {
      if (from != null) path += `L${at - 1} ${HEIGHT}L${from} ${HEIGHT}Z`;
      from = null;
    } else {
      path += from == null ? `M${at} ${HEIGHT}L${at} ${height(value).toFixed(2)}` : `L${at} ${height(value).toFixed(2)}`;
      from ??= at;
    }
  });
  return path;
}

/** The least of 1, 1.5, 2, 3, … 10, 15, 20, … that is not below a value. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 6, 8, 10].find((step) => step * power >= value * 0.9999) * power;
}

function linear(lines, least) {
  const top = roundUp(lines.flat().reduce((most, value) => Math.max(most, value ?? 0), least));
  return { height: (value) => HEIGHT * (1 - value / top), marks: [0.5, 1].map((part) => part * top) };
}

// Times from 20 µs to 20 ms look alike on a straight scale: all of them lie on the ground.
function logarithmic(lines) {
  const known = lines.flat().filter((value) => value != null && value > 0);
  const low = Math.floor(Math.log10(known.length ? Math.min(...known) : 1e-5));
  const high = Math.max(low + 2, Math.ceil(Math.log10(known.length ? Math.max(...known) : 1e-3)));
  const height = (value) => Math.min(HEIGHT, HEIGHT * (1 - (Math.log10(Math.max(value, 1e-9)) - low) / (high - low)));
  return { height, marks: Array.from({ length: high - low }, (_, at) => 10 ** (low + at + 1)) };
}

function canvas(where, names) {
  const svg = element("svg", { viewBox: `0 0 ${SECONDS - 1} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const area = svg.appendChild(element("path", { class: "area" }));
  // The first is the one to look at: it is drawn last.
  const paths = names.map((name) => element("path", { class: `line ${name}` }));
  svg.append(...paths.toReversed());
  where.append(svg);
  return { svg, area, paths };
}

/** A small line without any marks, from nothing to its own top. */
function spark(where, series, column) {
  const { area, paths } = canvas(where, ["one"]);
  return () => {
    const { height } = linear([series[column]], 1e-6);
    paths[0].setAttribute("d", linePath(series[column], height));
    area.setAttribute("d", areaPath(series[column], height));
  };
}

/** A chart of two columns, with a scale, and values where the pointer is; over all of `charts` at once. */
function chart(where, charts, series, columns, { scale, least, write }) {
  const { svg, area, paths } = canvas(where, ["one", "two"]);
  const marks = where.appendChild(element("div", { class: "marks" }));
  const line = svg.appendChild(element("line", { class: "pointer", y1: 0, y2: HEIGHT }));
  const note = where.appendChild(element("p", { class: "note", hidden: "" }));
  where.append(element("div", { class: "ages" }, ...["5 min ago", "4", "3", "2", "1", "now"].map((age) => element("span", {}, age))));
  let pointed = null;

  function draw() {
    const lines = columns.map((name) => series[name]);
    const { height, marks: values } = scale(lines, least);
    lines.forEach((line, at) => paths[at].setAttribute("d", linePath(line, height)));
    area.setAttribute("d", areaPath(lines[0], height));
    while (marks.childElementCount < values.length) marks.append(element("span"));
    while (marks.childElementCount > values.length) marks.lastChild.remove();
    values.forEach((value, at) => {
      say(marks.children[at], write(value));
      marks.children[at].style.top = `${height(value)}%`;
    });
    tell();
  }

  function tell() {
    note.hidden = line.style.display = pointed == null;
    line.style.display = pointed == null ? "none" : "";
    if (pointed == null) return;
    line.setAttribute("x1", pointed);
    line.setAttribute("x2", pointed);
    const [one, two] = columns.map((name) => write(series[name][pointed]));
    say(note, `${clock(series.end - (SECONDS - 1 - pointed))}   ${one}   ${two}`);
    note.dataset.side = pointed > SECONDS / 2 ? "left" : "right";
    note.style.left = `${(100 * pointed) / (SECONDS - 1)}%`;
  }

  const self = { draw, point: (at) => ((pointed = at), tell()) };
  where.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = Math.round(((event.clientX - box.left) / box.width) * (SECONDS - 1));
    charts.forEach((each) => each.point(Math.max(0, Math.min(SECONDS - 1, at))));
  });
  where.addEventListener("pointerleave", () => charts.forEach((each) => each.point(null)));
  charts.push(self);
}
