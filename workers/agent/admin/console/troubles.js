// What is wrong, the worst first: for who opens this page at night and has one second.

const HUNG_S = 3; // A loop turns at least every second.

/** Return [level, headline, detail] for everything that is not as it should be; levels are "bad", "warn" and "note". */
function troubles(state, series) {
  const found = [];
  const { node, workers } = state;
  const hung = workers.filter((worker) => isHung(worker));
  for (const worker of hung) {
    found.push(["bad", `Worker ${worker.slot} hangs`, `its loop has not turned for ${time(worker.beat_age)}; pid ${worker.pid}`]);
  }
  const serving = workers.filter((worker) => worker.serving).length;
  if (serving < node.workers && !node.draining) {
    const missing = plural(node.workers - serving, "worker does", "workers do");
    found.push([serving ? "warn" : "bad", `${missing} not serve`, `${serving} of ${node.workers} do`]);
  }
  if (node.draining) found.push(["warn", "Draining", `nobody new comes in; ${plural(calling(state.waiting), "call")} still ${calling(state.waiting) === 1 ? "waits" : "wait"}`]);
  else if (!node.ready && serving === node.workers) found.push(["warn", "Not ready", "it is not announced to others yet"]);
  const choked = workers.reduce((sum, worker) => sum + worker.choked, 0);
  const unread = workers.reduce((sum, worker) => sum + worker.unread_bytes, 0);
  if (choked) found.push(["warn", `${plural(choked, "client reads", "clients read")} too slowly`, `${bytes(unread)} wait to be read`]);
  const strangers = state.ring.unproven;
  if (strangers.length) found.push(["warn", `${plural(strangers.length, "stranger")} where nodes of the cluster are looked for`, strangers.join(", ")]);
  const restarts = series.growth("restarts");
  if (restarts) found.push(["warn", `${plural(restarts, "restart")} in the last 5 minutes`, list({ ...state.restarts, reload: 0 })]);
  const limits = series.growth("limits_hit");
  if (limits) found.push(["warn", `Limits were hit ${limits === 1 ? "once" : `${count(limits)} times`} in the last 5 minutes`, list(state.limits_hit)]);
  const rank = ["bad", "warn", "note"];
  return found.sort((a, b) => rank.indexOf(a[0]) - rank.indexOf(b[0]));
}

function isHung(worker) {
  return worker.beat_age > HUNG_S;
}

/** Calls that wait, which subscriptions do not: they stay. */
function calling(waiting) {
  return waiting.send + waiting.recv + waiting.take;
}

function list(counts) {
  const parts = Object.entries(counts).filter(([, value]) => value);
  return parts.length ? `since the start: ${parts.map(([name, value]) => `${name} ${count(value)}`).join(", ")}` : "";
}

/** Put troubles, or that there are none, where they are seen first. */
function tellTroubles(found, well) {
  const serious = found.filter(([level]) => level !== "note");
  const level = serious.length ? serious[0][0] : "good";
  set(place("status"), "data-level", level);
  say(place("headline"), serious.length ? serious[0][1] + (serious.length > 1 ? `, and ${serious.length - 1} more` : "") : "All well");
  const lines = serious.length ? found : [["good", "", well], ...found];
  const items = place("troubles");
  while (items.childElementCount < lines.length) items.append(element("li", {}, element("b"), element("span")));
  while (items.childElementCount > lines.length) items.lastChild.remove();
  lines.forEach(([level, what, detail], at) => {
    const [headline, rest] = items.children[at].children;
    set(items.children[at], "data-level", level);
    say(headline, at || !serious.length ? what : ""); // The first one is the headline.
    say(rest, detail);
  });
  return serious.length;
}
