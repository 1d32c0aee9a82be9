// The last minutes, a value a second: what the node remembers, and from then on what it says.

const SECONDS = 300;
const COLUMNS = ["calls", "met", "hand_off_p50", "hand_off_p99", "wait_p99", "connections", "waiting", "cpu", "restarts", "limits_hit"];

class Series {
  constructor() {
    this.end = 0; // Unix seconds of the newest value
    for (const name of COLUMNS) this[name] = new Array(SECONDS).fill(null);
  }

  /** Fill what is missing from the node's own memory. */
  remember(history) {
    if (!history.time) return;
    if (history.time > this.end) this.move(history.time);
    const late = Math.round(this.end - history.time);
    for (const name of COLUMNS) {
      const known = history[name] ?? [];
      for (let back = 1; back <= known.length; back += 1) {
        const at = SECONDS - late - back;
        if (at >= 0) this[name][at] ??= known[known.length - back];
      }
    }
  }

  /** Add what the node says of this second; return whether it has not told of some before. */
  add(moment, values) {
    const steps = this.move(moment);
    for (const name of COLUMNS) this[name][SECONDS - 1] = values[name] ?? null;
    return steps > 1;
  }

  // Seconds that nobody told of stay gaps. A clock that was set back starts anew.
  move(moment) {
    const steps = moment < this.end - 1 ? SECONDS : Math.min(SECONDS, Math.round(moment - this.end));
    if (!steps) return 0;
    this.end = moment;
    for (const name of COLUMNS) {
      this[name].splice(0, steps);
      while (this[name].length < SECONDS) this[name].push(null);
    }
    return steps;
  }

  /** For how many of these seconds a column has been known. */
  known(name) {
    const first = this[name].findIndex((value) => value != null);
    return first < 0 ? 0 : SECONDS - first;
  }

  /** By how much a counter grew in these minutes. */
  growth(name) {
    let first = null, last = null, grown = 0;
    for (const value of this[name]) {
      if (value == null) continue;
      if (first == null) first = value;
      else grown += Math.max(0, value - last); // The node may have been started anew.
      last = value;
    }
    return grown;
  }
}
