// Connects the parts of the page. `performance.mark("usable")` marks the end of the start.

const cloud = new Cloud(JSON.parse(byId("data").textContent));

class Page {
  constructor() {
    this.search = byId("search");
    this.opener = null; // the element that receives the focus after the details close
    this.legend = new Legend(byId("legend"), () => this.update());
    this.map = new TreeMap(cloud, byId("map-canvas"), (tree) => this.select(tree));
    this.table = new ProviderTable(cloud, byId("provider-table"), (tree) => this.select(tree));
    this.parts = new Parts(cloud, byId("parts-tabs"), (text) => this.find(text));
    const consumers = new Consumers(byId("consumers"));
    this.details = new Details(cloud, consumers, byId("details"), {
      onSelect: (tree) => this.select(tree),
      onSearch: (text) => this.find(text),
      onClose: () => this.#closed(),
    });
    this.#fillControls();
    this.search.addEventListener("input", () => this.update());
    for (const id of ["map-class", "map-order"]) {
      byId(id).addEventListener("change", () => this.update());
    }
    byId("parts-class").addEventListener("change", () => this.#showParts());
    for (const link of document.querySelectorAll("[data-band]")) {
      link.addEventListener("click", () => this.legend.select(Number(link.dataset.band)));
    }
    addEventListener("hashchange", () => this.#openFromAddress());
    this.#showClasses();
    this.#showParts();
    this.update();
    this.#openFromAddress();
  }

  // Shows the trees that match the search and the legend.
  update() {
    const class_ = Number(byId("map-class").value);
    const all = [...Array(cloud.treeCount).keys()];
    const values = all.map((tree) =>
      cloud.fullness(tree, class_ < 0 ? cloud.trees.fullest[tree] : class_));
    const found = matching(cloud, this.search.value);
    const bands = found.map((tree) => band(values[tree], cloud.disabled(tree)));
    const selected = this.legend.selected;
    const shown = selected === null ? found : found.filter((_, i) => bands[i] === selected);
    this.legend.show(BANDS.map((_, index) => bands.filter((one) => one === index).length));
    const matches = shown.length === cloud.treeCount ? null : new Set(shown);
    this.map.show(this.#ordered(all, values), values, matches, this.legend.colors(),
      (tree) => treeText(tree, class_));
    this.table.show(shown);
    byId("match-count").textContent = shown.length === cloud.treeCount
      ? `${number(cloud.treeCount)} trees`
      : `${number(shown.length)} of ${number(cloud.treeCount)} trees`;
  }

  recolor() {
    this.map.colors = this.legend.colors();
    this.map.draw();
  }

  select(tree) {
    if (!byId("details").open) {
      this.opener = document.activeElement;
    }
    this.map.select(tree);
    this.table.select(tree);
    this.details.open(tree);
    history.replaceState(null, "", `#provider=${encodeURIComponent(cloud.uuid(tree))}`);
  }

  find(text) {
    this.search.value = text;
    this.update();
    if (byId("details").open) {
      this.opener = null;
      this.details.close();
    }
    byId("providers").scrollIntoView();
  }

  #closed() {
    this.map.select(null);
    this.table.select(null);
    history.replaceState(null, "", location.href.split("#")[0]);
    if (this.opener === byId("map-canvas").firstChild) {
      this.opener.focus({ preventScroll: true });
    } else {
      this.table.focus();
    }
  }

  #ordered(trees, values) {
    if (byId("map-order").value === "name") {
      const collator = new Intl.Collator("en", { numeric: true });
      return trees.sort((a, b) => collator.compare(cloud.name(a), cloud.name(b)));
    }
    // Disabled trees are last.
    return trees.sort((a, b) => cloud.disabled(a) - cloud.disabled(b)
      || (values[b] ?? -1) - (values[a] ?? -1) || a - b);
  }

  #openFromAddress() {
    const uuid = decodeURIComponent(location.hash.match(/^#provider=(.+)$/)?.[1] ?? "");
    const provider = uuid ? cloud.providers.uuid.indexOf(uuid) : -1;
    if (provider >= 0) {
      this.select(cloud.treeOf[provider]);
    }
  }

  #fillControls() {
    const classes = cloud.classes.map((name, index) => [String(index), name]);
    options(byId("map-class"), [["-1", "Fullest class"], ...classes], "-1");
    options(byId("parts-class"), classes, "0");
  }

  #showClasses() {
    const { capacity, used, free, reserved, nominal, inventories } = cloud.class_totals;
    const rows = capacity.map((_, class_) => ({
      head: isolated(cloud.classes[class_]),
      class_: cloud.classes[class_],
      capacity: capacity[class_],
      used: used[class_],
      free: free[class_],
      reserved: reserved[class_],
      nominal: nominal[class_],
      count: inventories[class_],
    }));
    byId("class-table").append(rows.length
      ? scrolling("Resource classes", sumsTable("Resource class", "Inventories", rows))
      : element("p", { class: "empty" }, "The database contains no inventory."));
  }

  #showParts() {
    if (cloud.classes.length) {
      this.parts.show(Number(byId("parts-class").value));
    }
  }
}

function treeText(tree, class_) {
  const shown = class_ < 0 ? cloud.trees.fullest[tree] : class_;
  const value = cloud.fullness(tree, shown);
  const text = value === null ? "no capacity" : `${cloud.classes[shown]} ${percent(value)}`;
  return cloud.disabled(tree) ? `disabled, ${text}` : text;
}

// The theme of the system, unless the reader has selected the other one.
class Theme {
  constructor(button, onChange) {
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.button = button;
    this.onChange = onChange;
    this.chosen = null;
    button.addEventListener("click", () => {
      this.chosen = this.dark ? "light" : "dark";
      this.#apply();
    });
    this.system.addEventListener("change", () => this.#apply());
    // The map is drawn in the colors of the theme, so it has to be drawn again for paper.
    addEventListener("beforeprint", () => this.#show("light"));
    addEventListener("afterprint", () => this.#apply());
    this.#apply();
  }

  get dark() {
    return this.chosen === null ? this.system.matches : this.chosen === "dark";
  }

  #apply() {
    this.button.setAttribute("aria-pressed", String(this.dark));
    this.#show(this.dark ? "dark" : "light");
  }

  #show(theme) {
    document.documentElement.dataset.theme = theme;
    this.onChange();
  }
}

const page = new Page();
new Theme(byId("theme"), () => page.recolor());
requestAnimationFrame(() => setTimeout(() => performance.mark("usable")));
