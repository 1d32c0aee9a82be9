// The page: what the node says every second, what is asked every two, and nothing at all while nobody looks.

const ASK_MS = 2000; // between questions for topics and clients
const AGAIN_MS = 1000; // until a node that is gone is tried again
const SILENT_MS = 4000; // without a word, after which it counts as gone
const ROWS = 100;

const series = new Series();
const charts = [];
chart(place("calls-chart"), charts, series, ["calls", "met"], { scale: linear, least: 10, write: count });
chart(place("hand-off-chart"), charts, series, ["hand_off_p99", "hand_off_p50"], { scale: logarithmic, write: time });
const sparks = [["waiting-tile", "waiting"], ["connections-tile", "connections"], ["cpu-tile", "cpu"], ["wait-tile", "wait_p99"]].map(
  ([tile, column]) => spark(document.querySelector(`#${tile} .spark`), series, column),
);

const members = new Table(place("members"), {
  key: (row) => row.id,
  mark: (row) => (row.here ? "here" : ""),
  empty: "this node is alone",
  columns: [
    { head: "node", kind: "words name", isHead: true, cell: (row) => row.name || row.address, title: (row) => `${row.name} ${row.address}`, hue: (row) => row.hue },
    { head: "workers", cell: (row) => count(row.workers) },
    { head: "share", cell: (row) => percent(row.share) },
  ],
});

const workers = new Table(place("workers"), {
  key: (row) => row.name,
  mark: (row) => row.mark,
  empty: "no worker",
  columns: [
    { head: "process", kind: "words", isHead: true, cell: (row) => row.name },
    { head: "", kind: "words state", cell: (row) => row.state },
    { head: "pid", kind: "less", cell: (row) => String(row.pid ?? NOTHING) },
    { head: "CPU", kind: "bar", cell: (row) => percent(row.cpu), bar: (row) => row.cpu, about: "of one core" },
    { head: "calls/s", cell: (row) => count(row.calls) },
    { head: "share", kind: "bar", cell: (row) => percent(row.share), bar: (row) => row.share, about: "of the calls of all workers" },
    { head: "forwarded", kind: "less", cell: (row) => percent(row.forwarded), about: "calls whose topic another worker or node owns" },
    { head: "clients", cell: (row) => count(row.connections) },
    { head: "waiting", cell: (row) => count(row.waiting && total(row.waiting)), about: "calls and subscriptions of its clients" },
    { head: "topics", kind: "less", cell: (row) => count(row.topics), about: "owned here, on which somebody waits" },
    { head: "choked", kind: "less", cell: (row) => count(row.choked), about: "clients that do not read as fast as they are written to" },
    { head: "unread", kind: "less", cell: (row) => bytes(row.unread_bytes), about: "output that clients have not read" },
    { head: "unsent", kind: "less", cell: (row) => bytes(row.unsent_bytes && total(row.unsent_bytes)), about: "queued for other workers and nodes" },
    { head: "loop", cell: (row) => (row.beat_age == null ? NOTHING : `${row.beat_age.toFixed(1)} s`), about: "since its loop turned last" },
    { head: "turn p99", kind: "less", cell: (row) => time(row.turn_p99), about: "how long a turn of its loop takes" },
    { head: "memory", kind: "less", cell: (row) => bytes(row.rss) },
    { head: "files", kind: "less", cell: (row) => count(row.open_files), about: "open files and sockets" },
  ],
});

const topics = new Table(place("topics"), {
  key: (row) => `${row.worker} ${row.topic} ${row.cut}`,
  empty: "nobody waits on any topic",
  columns: [
    { head: "topic", kind: "words name", isHead: true, cell: (row) => row.topic, title: (row) => (row.cut ? `${row.topic} (too long to be shown in whole)` : row.topic) },
    { head: "since", cell: (row) => time(row.since), about: "how long the oldest of them waits" },
    { head: "senders", cell: (row) => count(row.senders) },
    { head: "receivers", cell: (row) => count(row.receivers) },
    { head: "takers", cell: (row) => count(row.takers) },
    { head: "subscr.", cell: (row) => count(row.subscribers), about: "subscribers" },
    { head: "calls/s", cell: (row) => count(row.rate), about: "estimated from samples" },
    { head: "share", cell: (row) => percent(row.share), about: "of the calls on all topics of its worker, estimated from samples" },
    { head: "worker", kind: "less", cell: (row) => String(row.worker) },
  ],
});

const nameOf = (client) => [client.name, client.peer].filter(Boolean).join(" · ");

const clients = new Table(place("clients"), {
  key: (row) => `${row.worker} ${row.peer}`,
  mark: (row) => (row.choked ? "warn" : ""),
  empty: "no client",
  columns: [
    { head: "client", kind: "words name", isHead: true, cell: nameOf, title: nameOf },
    { head: "", kind: "words state", cell: (row) => (row.choked ? "▲ choked" : "") },
    { head: "unread", cell: (row) => bytes(row.unread_bytes) },
    { head: "waiting", cell: (row) => count(row.waiting) },
    { head: "subscr.", cell: (row) => count(row.subscriptions), about: "subscriptions" },
    { head: "age", cell: (row) => span(row.age) },
    { head: "door", kind: "words less", cell: (row) => row.door },
    { head: "worker", kind: "less", cell: (row) => String(row.worker) },
  ],
});

const closed = new Table(place("closed"), {
  key: (row) => `${row.time} ${row.worker} ${row.peer}`,
  mark: (row) => (["peer", "draining", "became-link"].includes(row.reason) ? "" : "warn"),
  empty: "no connection was closed lately",
  columns: [
    { head: "at", kind: "words", cell: (row) => clock(row.time) },
    { head: "reason", kind: "words state", cell: (row) => row.reason },
    { head: "client", kind: "words", cell: (row) => row.peer },
    { head: "", kind: "words name", cell: (row) => row.text, title: (row) => row.text },
    { head: "worker", kind: "less", cell: (row) => String(row.worker) },
  ],
});

let outcomes = null; // made of the outcomes that the node has

const present = (values) => values.filter((value) => value != null);
const sum = (values) => (present(values).length ? present(values).reduce((a, b) => a + b, 0) : null);

function showState(state) {
  const { node, rates, latency } = state;
  const connections = sum(state.workers.map((worker) => worker.connections)) ?? 0;
  const cpu = sum(state.processes.map((process) => process.cpu));
  const missed = series.add(state.time, {
    calls: rates.calls, met: rates.met, connections, waiting: total(state.waiting), cpu,
    hand_off_p50: latency.hand_off?.p50, hand_off_p99: latency.hand_off?.p99, wait_p99: latency.wait?.p99,
    restarts: total(state.restarts) - state.restarts.reload, limits_hit: total(state.limits_hit),
    ...state.last, // of this second alone, as in the history
  });
  if (missed) askHistory();

  say(place("name"), node.name || node.address);
  showFacts([
    ["address", node.address], ["version", node.version], ["pid", String(node.pid)],
    ["up", span(state.time - node.started)],
    ["state", node.draining ? "draining" : node.ready ? "ready" : "not ready"],
  ]);
  const nodes = state.ring.nodes > 1 ? `${plural(state.ring.nodes, "node")} are one ring` : "no other node is in its ring";
  const well = `${plural(node.workers, "worker serves", "workers serve")}, ${nodes}, no restart and no limit hit in the last ${span(series.known("restarts"))}`;
  const number = tellTroubles(troubles(state, series), well);
  document.title = `${number ? `(${number}) ` : ""}${visible(node.name || node.address)} – skywalker`;

  say(place("calls"), count(rates.calls));
  say(place("met"), count(rates.met));
  say(place("p99"), time(latency.hand_off?.p99));
  say(place("p50"), time(latency.hand_off?.p50));
  say(place("waiting"), count(total(state.waiting)));
  say(place("waiting-kinds"), Object.entries(state.waiting).map(([kind, value]) => `${kind === "subscription" ? "subscr." : kind} ${count(value)}`).join(" · "));
  say(place("connections"), count(connections));
  say(place("traffic"), `${bytes(rates.bytes_received)}/s in · ${bytes(rates.bytes_sent)}/s out`);
  say(place("cpu"), percent(cpu));
  say(place("memory"), `${bytes(sum(state.processes.map((process) => process.rss)))} of memory`);
  say(place("wait"), time(latency.wait?.p99));
  say(place("wait-half"), `p50 ${time(latency.wait?.p50)}, of calls that met`);
  charts.forEach((each) => each.draw());
  sparks.forEach((draw) => draw());

  showWorkers(state);
  showTotals(state);
}

function showFacts(facts) {
  const list = place("facts");
  while (list.childElementCount < facts.length) list.append(element("div", {}, element("dt"), element("dd", {}, element("bdi"))));
  facts.forEach(([name, value], at) => {
    say(list.children[at].firstChild, name);
    say(list.children[at].lastChild.firstChild, value);
  });
}

function showWorkers(state) {
  const processes = new Map(state.processes.map((process) => [process.pid, process]));
  const rows = state.workers.map((worker) => {
    const name = `worker-${worker.slot}`;
    const process = processes.get(worker.pid);
    processes.delete(worker.pid);
    const mark = isHung(worker) ? "bad" : worker.choked ? "warn" : worker.serving ? "" : "quiet";
    return { ...worker, name, mark, open_files: process?.open_files, state: stateOf(worker) };
  });
  for (const process of processes.values()) rows.push({ ...process, mark: "quiet", state: "" });
  workers.fill(rows);
  const all = total(state.routed);
  const words = { here: "by the worker they came to", sibling: "by another of this node", node: "by another node" };
  remark(place("routed"), all ? "calls answered " + Object.entries(state.routed).map(([route, value]) => `${words[route]} ${percent(value / all)}`).join(" · ") : "");
}

function stateOf(worker) {
  if (isHung(worker)) return "✕ hangs";
  return worker.choked ? "▲ chokes" : worker.state;
}

function showTotals(state) {
  say(place("since"), `${new Date(state.node.started * 1000).toLocaleString("sv-SE")}, ${span(state.time - state.node.started)} ago`);
  outcomes ??= new Table(place("outcomes"), {
    key: (row) => row.method,
    empty: "no calls yet",
    columns: [
      { head: "calls", kind: "words", isHead: true, cell: (row) => row.method },
      ...Object.keys(Object.values(state.calls)[0] ?? {}).map((name) => ({ head: name, cell: (row) => count(row[name]) })),
    ],
  });
  outcomes.fill(Object.entries(state.calls).map(([method, counts]) => ({ method, ...counts })));
  const groups = [["connections moved", state.moves], ["connections closed", state.closes], ["restarts", state.restarts], ["errors", state.errors], ["limits hit", state.limits_hit], ["reloads", state.reloads]];
  const list = place("counts");
  while (list.childElementCount < groups.length) list.append(element("section", {}, element("h3"), element("table")));
  groups.forEach(([title, counts], at) => {
    const [heading, node] = list.children[at].children;
    say(heading, title);
    node.counts ??= new Table(node, {
      key: ([name]) => name,
      empty: "none",
      columns: [{ head: "", kind: "words", isHead: true, cell: ([name]) => name }, { head: "", cell: ([, value]) => count(value) }],
    });
    node.counts.fill(Object.entries(counts ?? {}).filter(([, value]) => value));
  });
}

// Questions, one of each kind at a time.

const asked = new Map();

async function ask(path, show) {
  asked.get(path)?.abort();
  const control = new AbortController();
  asked.set(path, control);
  try {
    const answer = await fetch(`api/${path}`, { signal: control.signal, cache: "no-store" });
    if (answer.ok) show(await answer.json());
  } catch (error) {
    if (!(error instanceof TypeError) && error.name !== "AbortError") throw error; // No answer: the stream says so.
  } finally {
    if (asked.get(path) === control) asked.delete(path);
  }
}

const note = (found, shown, all, what) =>
  [`${shown < all ? `${count(shown)} of ` : ""}${plural(all, what)}`, found.looked_at < all && `${count(found.looked_at)} looked at`,
    found.silent.length && `no answer from ${found.silent.map((slot) => `worker-${slot}`).join(", ")}`].filter(Boolean).join(", ");

const order = (name) => document.querySelector(`input[name=${name}-order]:checked`).value;

const questions = {
  topics: () => ask(`topics?order=${order("topics")}&limit=${ROWS}`, (found) => {
    topics.fill(found.topics, found.silent.length ? "those that answered know of nobody who waits" : undefined);
    remark(place("topics-note"), note(found, found.topics.length, found.topics_in_all, "topic"));
  }),
  connections: () => ask(`connections?order=${order("connections")}&limit=${ROWS}`, (found) => {
    clients.fill(found.connections, found.silent.length ? "those that answered have no client" : undefined);
    closed.fill(found.closed);
    remark(place("connections-note"), note(found, found.connections.length, found.connections_in_all, "connection"));
  }),
};

const askHistory = () => ask("history", (history) => series.remember(history));

let ringShown = null; // of which ring there is a drawing, and who was found who is in none

const ringOf = (version, strangers) => [version, ...strangers].join(" ");

const askRing = () => ask("ring", (ring) => {
  ringShown = ringOf(ring.version, ring.unproven.map((stranger) => stranger.address));
  drawRing(ring, place("ring"), members);
  const here = ring.members.find((member) => member.id === ring.here);
  say(place("share"), percent(here?.share));
  remark(place("ring-version"), `${plural(ring.members.length, "node")}, version ${ring.version}`);
  place("unproven").replaceChildren(...ring.unproven.map(({ address, reason }) => element("li", {}, visible(`${address}: ${reason}`))));
});

// The stream. While the page is hidden there is none.

let stream = null;
let heard = performance.now(); // when the node said something last
let heardAt = null; // the same by the clock on the wall, in Unix seconds
let version = null; // of the node's program
let tried = 0; // when it was asked for the stream last
let timers = [];

function open() {
  tried = performance.now();
  stream?.close();
  stream = new EventSource("api/events");
  stream.onopen = askHistory;
  stream.addEventListener("state", (event) => {
    const state = JSON.parse(event.data);
    // What was upgraded has a page of its own.
    version ??= state.node.version;
    if (version !== state.node.version) location.reload();
    heard = performance.now();
    heardAt = Date.now() / 1000;
    live("yes", "live");
    showState(state);
    // Whatever takes its time to be answered is not asked again meanwhile.
    if (ringOf(state.ring.version, state.ring.unproven) !== ringShown && !asked.has("ring")) askRing();
  });
  stream.onerror = () => {
    stream.close(); // A browser gives up at some answers, and takes its time after others.
    gone();
  };
}

function live(how, words) {
  document.body.dataset.live = how;
  say(document.querySelector("#live b"), words);
}

function gone() {
  const silent = (performance.now() - heard) / 1000;
  const since = heardAt ? `since ${clock(heardAt)}, ${span(silent)} ago; what is shown is from then` : "nothing was heard of it yet";
  live("no", "gone");
  document.title = "(!) skywalker";
  set(place("status"), "data-level", "bad");
  say(place("headline"), "The node does not answer");
  place("troubles").replaceChildren(element("li", { "data-level": "bad" }, element("b"), element("span", {}, since)));
}

function watch() {
  const now = performance.now();
  if (now - heard > SILENT_MS) gone();
  // What is open and says nothing may be of a node that is long another.
  if (stream.readyState === EventSource.CLOSED || now - Math.max(heard, tried) > SILENT_MS) open();
}

function wake() {
  sleep();
  if (document.hidden) return;
  heard = Math.max(heard, performance.now() - SILENT_MS / 2);
  open();
  questions.topics();
  questions.connections();
  timers = [setInterval(watch, AGAIN_MS), setInterval(() => Object.values(questions).forEach((question) => question()), ASK_MS)];
}

function sleep() {
  timers.forEach(clearInterval);
  timers = [];
  stream?.close();
  asked.forEach((control) => control.abort());
}

document.addEventListener("visibilitychange", wake);
addEventListener("pagehide", sleep);
addEventListener("pageshow", (event) => event.persisted && wake());

for (const name of ["topics", "connections"]) {
  const kept = document.querySelector(`input[name=${name}-order][value="${recall(`${name}-order`)}"]`);
  if (kept) kept.checked = true;
  place(`${name}-order`).addEventListener("change", () => (keep(`${name}-order`, order(name)), questions[name]()));
}

const THEMES = ["auto", "light", "dark"];

function dress(theme) {
  document.documentElement.dataset.theme = theme;
  say(place("theme"), { auto: "◐ auto", light: "○ light", dark: "● dark" }[theme]);
}

dress(THEMES.includes(recall("theme")) ? recall("theme") : "auto");
place("theme").addEventListener("click", () => {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  keep("theme", theme);
  dress(theme);
});

wake();
