// The sums of one resource class by aggregate, by trait, and by project, in three tabs.

const KINDS = [
  {
    id: "aggregate", title: "Aggregates", counted: "Trees",
    note: "An inventory counts for the aggregates of its provider and of the root provider. "
      + "The sums overlap if providers are in several aggregates.",
  },
  {
    id: "trait", title: "Traits", counted: "Trees",
    note: "An inventory counts for the traits of its provider and of the root provider.",
  },
  {
    id: "project", title: "Projects", counted: "Consumers",
    note: "The share is the part of the capacity of the whole cloud that the project uses.",
  },
];

class Parts {
  constructor(cloud, container, onSearch) {
    this.cloud = cloud;
    this.onSearch = onSearch;
    this.tabs = KINDS.map((kind, index) => element("button", {
      type: "button",
      role: "tab",
      id: `tab-${kind.id}`,
      "aria-controls": `parts-${kind.id}`,
      click: () => this.#open(index),
      keydown: (event) => this.#key(event, index),
    }, kind.title, " ", element("span", { class: "band-count" }, number(cloud.parts[kind.id].all))));
    this.panels = KINDS.map((kind) => element("div", {
      role: "tabpanel",
      id: `parts-${kind.id}`,
      "aria-labelledby": `tab-${kind.id}`,
      class: "card flush",
      tabindex: "0",
    }));
    container.append(
      element("div", { role: "tablist", "aria-label": "Kind of breakdown", class: "tabs" },
        this.tabs),
      ...this.panels);
    this.class_ = null;
    this.shown = KINDS.map(() => null); // the class that each panel shows
    addEventListener("beforeprint", () => KINDS.forEach((_, index) => this.#fill(index)));
    this.#open(0);
  }

  show(class_) {
    this.class_ = class_;
    this.#fill(this.opened);
  }

  // Creates the rows of a panel when they are needed: a panel can have 1,000 rows.
  #fill(index) {
    if (this.class_ !== null && this.shown[index] !== this.class_) {
      this.panels[index].replaceChildren(...this.#panel(KINDS[index], this.class_));
      this.shown[index] = this.class_;
    }
  }

  #panel(kind, class_) {
    const { name, count, all, totals } = this.cloud.parts[kind.id];
    const rows = [];
    totals.class.forEach((other, row) => {
      if (other === class_) {
        rows.push(Object.fromEntries(Object.entries(totals).map(([key, list]) => [key, list[row]])));
      }
    });
    const children = [element("p", { class: "hint" }, kind.note)];
    if (all > name.length) {
      children.push(element("p", { class: "hint" },
        `The page has the ${number(name.length)} largest of ${number(all)} ${kind.title.toLowerCase()}.`));
    }
    if (rows.length === 0) {
      return [...children, element("p", { class: "empty" },
        `No ${kind.id} has ${this.cloud.classes[class_]}.`)];
    }
    const isProject = kind.id === "project";
    const table = isProject
      ? this.#projects(kind, rows, name, count, class_)
      : sumsTable(kind.id, kind.counted, rows.map((row) => ({
        ...row,
        head: element("button", {
          type: "button", class: "link", title: "Show in the table of providers",
          click: () => this.onSearch(name[row.part]),
        }, isolated(name[row.part])),
        count: count[row.part],
        class_: this.cloud.classes[class_],
      })));
    return [...children, scrolling(`${kind.title}`, table)];
  }

  #projects(kind, rows, name, count, class_) {
    const capacity = this.cloud.class_totals.capacity[class_] ?? 0;
    rows.sort((a, b) => b.used - a.used);
    return element("table", { class: "sums" },
      tableHead(["Project", "Share of the capacity", "Share", "Used", kind.counted]),
      element("tbody", {}, rows.map((row) => element("tr", {},
        element("th", { scope: "row" }, isolated(name[row.part])),
        element("td", { class: "meter-cell" }, bar({ used: row.used, capacity, nominal: capacity })),
        numberCell("Share", percent(fullness(row.used, capacity))),
        numberCell("Used", number(row.used), inLargeUnits(this.cloud.classes[class_], row.used)),
        numberCell(kind.counted, number(count[row.part]))))));
  }

  #open(index) {
    this.opened = index;
    this.#fill(index);
    this.tabs.forEach((tab, other) => {
      tab.setAttribute("aria-selected", String(other === index));
      tab.tabIndex = other === index ? 0 : -1;
    });
    this.panels.forEach((panel, other) => panel.classList.toggle("closed", other !== index));
  }

  #key(event, index) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key in steps) {
      const next = (index + steps[event.key] + KINDS.length) % KINDS.length;
      this.#open(next);
      this.tabs[next].focus();
    }
  }
}

// A table of sums with bars. Each row has `head` (an element), `count`, `class_`, and the sums.
function sumsTable(title, counted, rows) {
  return element("table", { class: "sums" },
    tableHead([title, "Use of the capacity", "Use", "Used", "Free", "Capacity", "Reserved", counted]),
    element("tbody", {}, rows.map((row) => {
      const cell = (label, amount) =>
        numberCell(label, number(amount), inLargeUnits(row.class_, amount));
      return element("tr", {},
        element("th", { scope: "row" }, row.head),
        element("td", { class: "meter-cell" }, bar(row)),
        numberCell("Use", percent(fullness(row.used, row.capacity))),
        cell("Used", row.used), cell("Free", row.free), cell("Capacity", row.capacity),
        cell("Reserved", row.reserved), numberCell(counted, number(row.count)));
    })));
}

function tableHead(titles, numbers = true) {
  return element("thead", {}, element("tr", {}, titles.map((title, index) =>
    element("th", { scope: "col", class: numbers && index > 1 ? "right" : false },
      title[0].toUpperCase() + title.slice(1)))));
}

function numberCell(label, text, detail = "") {
  return element("td", { class: "right", "data-label": label }, text,
    detail ? element("small", {}, detail) : null);
}

function scrolling(label, child) {
  return element("div", { class: "scroll", role: "group", "aria-label": label, tabindex: "0" },
    child);
}
