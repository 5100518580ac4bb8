// The table of providers. Only the rows in view are elements, so that it is fast with any number of
// trees.

const ROW_HEIGHT = 44; // in pixels, as in the style sheet
const SPARE_ROWS = 6;
const PRINTED_ROWS = 500;

class ProviderTable {
  constructor(cloud, container, onSelect) {
    this.cloud = cloud;
    this.onSelect = onSelect;
    this.trees = [];
    this.sorting = { column: 1, descending: true };
    this.active = 0; // the row that the keyboard reaches
    this.selected = null;
    this.printing = false;
    this.rows = new Map(); // row number -> element, for the rows in view
    this.above = spaceRow();
    this.below = spaceRow();
    this.columns = this.#columns();
    this.body = element("tbody", {}, this.above, this.below);
    this.heads = this.columns.map((column, index) => this.#head(column, index));
    this.table = element("table", { class: "providers" },
      element("caption", { class: "hidden" }, "Root providers"),
      element("thead", {}, element("tr", { "aria-rowindex": "1" }, this.heads)), this.body);
    this.scroller = element("div", {
      class: "scroller",
      role: "group",
      "aria-label": "Table of providers",
      tabindex: "-1",
      scroll: () => this.#render(),
      keydown: (event) => this.#key(event),
    }, this.table);
    this.note = element("p", { class: "note", hidden: true });
    container.append(this.scroller, this.note);
    new ResizeObserver(() => this.#render()).observe(this.scroller);
    addEventListener("beforeprint", () => this.#print(true));
    addEventListener("afterprint", () => this.#print(false));
  }

  show(trees) {
    this.trees = this.#sorted(trees);
    this.active = 0;
    this.scroller.scrollTop = 0;
    this.rows.forEach((row) => row.remove());
    this.rows.clear();
    this.#render();
  }

  select(tree) {
    this.selected = tree;
    const row = this.trees.indexOf(tree);
    if (row >= 0) {
      this.active = row;
    }
    this.#render();
  }

  focus() {
    this.#scrollTo(this.active);
    this.#render();
    this.#button(this.active)?.focus({ preventScroll: true });
  }

  #columns() {
    const cloud = this.cloud;
    const first = (tree) => cloud.first[tree];
    return [
      {
        title: "Provider", class: "wide",
        key: (tree) => cloud.name(tree),
        cell: (tree) => this.#nameCell(tree),
      },
      {
        title: "Fullest class", numeric: true, class: "use",
        key: (tree) => cloud.fullness(tree) ?? -1,
        cell: (tree) => this.#useCell(tree, cloud.trees.fullest[tree], true),
      },
      ...cloud.mainClasses().map((class_) => ({
        title: cloud.classes[class_], numeric: true, class: "optional",
        key: (tree) => cloud.fullness(tree, class_) ?? -1,
        cell: (tree) => this.#useCell(tree, class_, false),
      })),
      {
        title: "Consumers", numeric: true, class: "right optional",
        key: (tree) => cloud.trees.consumers[tree],
        cell: (tree) => [number(cloud.trees.consumers[tree])],
      },
      ...(cloud.trees.drain ? [{
        title: "Can be drained", class: "drain optional",
        key: (tree) => cloud.trees.drain[tree],
        cell: (tree) => [element("span", { title: cloud.trees.drain[tree] },
          cloud.trees.drain[tree] || "–")],
      }] : [
        {
          title: "Providers", numeric: true, class: "right optional",
          key: (tree) => cloud.trees.size[tree],
          cell: (tree) => [number(cloud.trees.size[tree])],
        },
        {
          title: "Traits", numeric: true, class: "right optional",
          key: (tree) => cloud.trait_sets[cloud.providers.traits[first(tree)]].length,
          cell: (tree) => [number(cloud.trait_sets[cloud.providers.traits[first(tree)]].length)],
        },
      ]),
    ];
  }

  #head(column, index) {
    return element("th", { scope: "col", class: column.class ?? false },
      element("button", { type: "button", click: () => this.#sortBy(index) },
        isolated(column.title), element("i", { class: "arrow", "aria-hidden": "true" })));
  }

  #nameCell(tree) {
    return [element("button", { type: "button", class: "link", tabindex: "-1" },
      isolated(this.cloud.name(tree)))];
  }

  #useCell(tree, class_, withName) {
    if (class_ < 0 || !this.cloud.hasClass[class_][tree]) {
      return [element("span", { class: "faint" }, withName ? treeText(tree, class_) : "–")];
    }
    const used = this.cloud.used[class_][tree];
    const capacity = this.cloud.capacity[class_][tree];
    const disabled = this.cloud.disabled(tree);
    const value = percent(fullness(used, capacity));
    const label = withName
      ? element("span", { class: "pair" }, isolated(this.cloud.classes[class_]),
        element("b", {}, disabled ? `disabled, ${value}` : value))
      : element("span", { class: "pair" },
        element("span", {}, `${number(used)} / ${number(capacity)}`));
    return [label, bar({ used, capacity, nominal: capacity, ...(disabled && { free: 0 }) })];
  }

  #sorted(trees) {
    const { column, descending } = this.sorting;
    const { key, numeric } = this.columns[column];
    const keys = new Map(trees.map((tree) => [tree, key(tree)]));
    const collator = new Intl.Collator("en", { numeric: true });
    const compare = numeric
      ? (a, b) => keys.get(a) - keys.get(b) || 0
      : (a, b) => collator.compare(keys.get(a), keys.get(b));
    const sign = descending ? -1 : 1;
    // Trees with equal keys keep the order of the document.
    return [...trees].sort((a, b) => sign * compare(a, b) || a - b);
  }

  #sortBy(column) {
    const first = this.columns[column].numeric === true;
    const descending = this.sorting.column === column ? !this.sorting.descending : first;
    this.sorting = { column, descending };
    this.show(this.trees);
  }

  #render() {
    this.heads.forEach((head, index) => {
      if (index === this.sorting.column) {
        head.setAttribute("aria-sort", this.sorting.descending ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
    });
    const [start, end] = this.#window();
    this.rows.forEach((_, row) => row >= start && row < end || this.#remove(row));
    let next = this.above.nextSibling;
    for (let row = start; row < end; row++) {
      if (!this.rows.has(row)) {
        this.rows.set(row, this.#row(row));
        this.body.insertBefore(this.rows.get(row), next);
      }
      next = this.rows.get(row).nextSibling;
    }
    this.rows.forEach((element_, row) => this.#mark(element_, row));
    this.above.style.height = `${this.printing ? 0 : start * ROW_HEIGHT}px`;
    this.below.style.height = `${this.printing ? 0 : (this.trees.length - end) * ROW_HEIGHT}px`;
    this.table.setAttribute("aria-rowcount", String(this.trees.length + 1));
  }

  #remove(row) {
    const element_ = this.rows.get(row);
    if (element_.contains(document.activeElement)) {
      this.scroller.focus({ preventScroll: true });
    }
    element_.remove();
    this.rows.delete(row);
  }

  #mark(element_, row) {
    element_.classList.toggle("selected", this.trees[row] === this.selected);
    element_.querySelector("button").tabIndex = row === this.active ? 0 : -1;
  }

  // The first row in view, and the one after the last row in view.
  #window() {
    if (this.printing) {
      return [0, Math.min(PRINTED_ROWS, this.trees.length)];
    }
    const rows = Math.ceil(this.scroller.clientHeight / ROW_HEIGHT);
    const start = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    return [start, Math.min(this.trees.length, start + rows + 2 * SPARE_ROWS)];
  }

  #row(row) {
    const tree = this.trees[row];
    const cells = this.columns.map((column, index) => element(
      index === 0 ? "th" : "td",
      { scope: index === 0 ? "row" : false, class: column.class ?? false },
      column.cell(tree)));
    return element("tr", {
      "aria-rowindex": String(row + 2),
      click: () => {
        this.active = row;
        this.#button(row).focus({ preventScroll: true });
        this.onSelect(tree);
      },
    }, cells);
  }

  #button(row) {
    return this.rows.get(row)?.querySelector("button");
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 2);
    const steps = {
      ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page,
      Home: -this.trees.length, End: this.trees.length,
    };
    if (!(event.key in steps) || event.target.closest("thead") || !this.trees.length) {
      return;
    }
    event.preventDefault();
    this.active = Math.max(0, Math.min(this.trees.length - 1, this.active + steps[event.key]));
    this.focus();
  }

  #scrollTo(row) {
    const head = this.table.tHead.offsetHeight;
    const top = row * ROW_HEIGHT;
    const bottom = top + ROW_HEIGHT + head - this.scroller.clientHeight;
    this.scroller.scrollTop = Math.max(bottom, Math.min(top, this.scroller.scrollTop));
  }

  #print(printing) {
    this.printing = printing;
    this.note.hidden = !printing || this.trees.length <= PRINTED_ROWS;
    this.note.textContent = `These are the first ${number(PRINTED_ROWS)} of `
      + `${number(this.trees.length)} rows.`;
    this.#render();
  }
}

// The space of the rows above or below the view.
function spaceRow() {
  return element("tr", { class: "space", "aria-hidden": "true" }, element("td"));
}
