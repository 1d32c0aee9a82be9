// Tables whose rows stay the same elements while their values change: no flicker, and a selection survives.

/**
 * Columns are {head, cell, title?, kind?, bar?}: `cell` gives the text for a row, `bar` the part of a bar behind it,
 * `kind` the class of the column: "words" are aligned to the left, "less" are left out where it is narrow.
 */
class Table {
  constructor(node, { key, columns, mark = () => "", empty }) {
    Object.assign(this, { key, columns, mark, ifEmpty: empty, rows: new Map() });
    const heads = columns.map(({ head, kind = "", about }) => {
      const cell = element("th", { scope: "col", class: kind }, head);
      if (about) cell.title = about;
      return cell;
    });
    this.empty = element("tr", { class: "empty" }, element("td", { colspan: columns.length }, empty));
    this.body = element("tbody", {}, this.empty);
    node.replaceChildren(element("thead", {}, element("tr", {}, ...heads)), this.body);
  }

  row(key) {
    return this.rows.get(key);
  }

  fill(items, ifEmpty = this.ifEmpty) {
    const seen = new Set();
    let before = this.empty;
    for (const item of items) {
      let key = this.key(item);
      while (seen.has(key)) key += "'"; // Two of one name are two rows.
      seen.add(key);
      let row = this.rows.get(key);
      if (!row) this.rows.set(key, (row = this.make()));
      if (before.nextSibling !== row) before.after(row);
      before = row;
      this.write(row, item);
    }
    for (const [key, row] of this.rows) {
      if (seen.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    this.empty.hidden = seen.size > 0;
    say(this.empty.firstChild, ifEmpty);
  }

  make() {
    const cells = this.columns.map(({ kind = "", bar, isHead }) => {
      const cell = element(isHead ? "th" : "td", { class: kind }, element("bdi"));
      if (isHead) cell.scope = "row";
      if (bar) cell.prepend(element("i", { "aria-hidden": "true" }));
      return cell;
    });
    return element("tr", {}, ...cells);
  }

  write(row, item) {
    set(row, "class", this.mark(item));
    this.columns.forEach(({ cell, title, bar, hue }, at) => {
      const place = row.children[at];
      const text = cell(item);
      say(place.lastChild, text);
      place.classList.toggle("nothing", /^(0( B| %)?|–)$/.test(text));
      if (hue) set(place.lastChild, "class", hue(item));
      if (title) set(place, "title", visible(title(item)));
      if (bar) place.firstChild.style.setProperty("--part", Math.min(1, Math.max(0, bar(item) ?? 0)).toFixed(3));
    });
  }
}
