// What is wrong, the worst first: for who opens this page at night and has one second.

const HUNG_S = 3; // A loop turns at least every second.

/** Return [level, headline, detail] for everything that is not as it should be; levels are "bad" and "warn". */
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
  return found.sort((a, b) => (a[0] === "warn") - (b[0] === "warn"));
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
  set(place("status"), "data-level", found.length ? found[0][0] : "good");
  say(place("headline"), found.length ? found[0][1] + (found.length > 1 ? `, and ${found.length - 1} more` : "") : "All well");
  const lines = found.length ? found : [["good", "", well]];
  const items = place("troubles");
  while (items.childElementCount < lines.length) items.append(element("li", {}, element("b"), element("span")));
  while (items.childElementCount > lines.length) items.lastChild.remove();
  lines.forEach(([level, what, detail], at) => {
    const [headline, rest] = items.children[at].children;
    set(items.children[at], "data-level", level);
    say(headline, at || !found.length ? what : ""); // The first one is the headline.
    say(rest, detail);
  });
  return found.length;
}
