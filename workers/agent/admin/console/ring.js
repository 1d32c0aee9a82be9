// The ring: every arc in its owner's colour, this node's with a rim. One path for each node.

const HUES = 7; // colours of nodes other than this one, see page.css

function arcPath([start, length], radius) {
  const point = (turn) => {
    const angle = 2 * Math.PI * turn;
    return `${(radius * Math.sin(angle)).toFixed(3)} ${(-radius * Math.cos(angle)).toFixed(3)}`;
  };
  // Half a turn at a time: an arc that ends where it began would be none.
  const middle = start + length / 2;
  const end = start + length;
  if (length < 0.5) return `M${point(start)}A${radius} ${radius} 0 0 1 ${point(end)}`;
  return `M${point(start)}A${radius} ${radius} 0 0 1 ${point(middle)}A${radius} ${radius} 0 0 1 ${point(end)}`;
}

/** Draw a ring; its nodes are rows of `table`, and the one under the pointer stands out. */
function drawRing(ring, svg, table) {
  let other = 0, rim = null;
  const hues = ring.members.map((member) => (member.id === ring.here ? "here" : `node-${other++ % HUES}`));
  const paths = ring.members.map((member, number) => {
    const own = ring.arcs.filter((arc) => arc[2] === number);
    const draw = (radius) => own.map((arc) => arcPath(arc, radius)).join("");
    if (member.id === ring.here) rim = element("path", { class: "rim", d: draw(96) });
    return element("path", { class: hues[number], d: draw(81) });
  });
  svg.replaceChildren(element("circle", { r: 81 }), ...paths, ...(rim ? [rim] : []));
  const order = ring.members.map((_, number) => number);
  order.sort((a, b) => (ring.members[b].id === ring.here) - (ring.members[a].id === ring.here) || ring.members[b].share - ring.members[a].share);
  const rows = order.map((number) => {
    const member = ring.members[number];
    return { ...member, hue: hues[number], here: member.id === ring.here, path: paths[number] };
  });
  table.fill(rows);
  for (const row of rows) {
    const node = table.row(row.id);
    node.onpointerenter = () => svg.setAttribute("data-one", row.path.classList.toggle("one", true));
    node.onpointerleave = () => (svg.removeAttribute("data-one"), row.path.classList.remove("one"));
  }
}
