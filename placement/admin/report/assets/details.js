// The details of the selected tree, in a dialog beside the page (on a phone: above it).

const LISTED_TREES = 50;

class Details {
  constructor(cloud, consumers, dialog, { onSelect, onSearch, onClose }) {
    Object.assign(this, { cloud, consumers, dialog, onSelect, onSearch, onClose });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && dialog.open) {
        event.preventDefault();
        this.close();
      }
    });
    dialog.addEventListener("close", () => this.onClose());
  }

  open(tree) {
    this.dialog.replaceChildren(...this.#contents(tree));
    if (!this.dialog.open) {
      if (matchMedia("(max-width: 900px)").matches) {
        this.dialog.showModal();
      } else {
        this.dialog.show();
      }
    }
    this.dialog.scrollTop = 0;
    byId("details-title").focus({ preventScroll: true });
  }

  close() {
    this.dialog.close();
  }

  #contents(tree) {
    const { cloud } = this;
    const root = cloud.first[tree];
    const size = cloud.trees.size[tree];
    const consumers = cloud.trees.consumers[tree];
    const drain = cloud.trees.drain?.[tree];
    return [
      element("div", { class: "details-head" },
        element("div", {},
          element("h2", { id: "details-title", tabindex: "-1" }, isolated(cloud.name(tree))),
          element("p", { class: "faint" }, `${size === 1 ? "1 provider" : `${number(size)} providers`}, `
            + `${consumers === 1 ? "1 consumer" : `${number(consumers)} consumers`}`),
          cloud.disabled(tree) ? element("p", { class: "note" },
            "Disabled: the root has the trait COMPUTE_STATUS_DISABLED, so Nova does not schedule to it.")
            : null),
        element("button", {
          type: "button", class: "quiet close", "aria-label": "Close the details",
          click: () => this.close(),
        }, cross())),
      ...(drain ? [element("section", { class: "drain" }, `Can be drained: ${drain}`)] : []),
      ...this.#sharing(tree),
      element("section", { "aria-label": "Provider tree" },
        element("ul", { class: "tree" }, this.#branch(root, cloud.first[tree + 1], root))),
      ...this.#consumers(tree, consumers),
    ];
  }

  #consumers(tree, count) {
    if (count === 0) {
      return [];
    }
    const listed = this.consumers.of(tree);
    const rows = listed.map(({ name, type, project, amounts }) => element("tr", {},
      element("th", { scope: "row" }, isolated(name)),
      element("td", {}, isolated(type)),
      element("td", {}, isolated(project)),
      element("td", {}, amounts.map(([class_, amount]) =>
        element("span", { class: "amount" }, isolated(class_), ` ${number(amount)}`)))));
    return [element("section", { "aria-label": "Consumers" },
      element("h3", {}, "Consumers"),
      count > listed.length
        ? element("p", { class: "hint" },
          `The page has the ${number(listed.length)} largest of ${number(count)} consumers.`)
        : null,
      scrolling("Table of consumers", element("table", { class: "consumers" },
        tableHead(["Consumer", "Type", "Project", "Amounts"], false),
        element("tbody", {}, rows))))];
  }

  // The providers with one parent, each with its descendants.
  #branch(start, end, root, parent = -1) {
    const items = [];
    for (let provider = start; provider < end; provider++) {
      if (this.cloud.providers.parent[provider] === parent) {
        items.push(element("li", {},
          this.#provider(provider),
          this.#children(provider, end, root)));
      }
    }
    return items;
  }

  #children(provider, end, root) {
    const items = this.#branch(provider + 1, end, root, provider - root);
    return items.length ? element("ul", {}, items) : null;
  }

  #provider(provider) {
    const { cloud } = this;
    const inventories = cloud.inventoriesOf(provider);
    const name = cloud.providers.name[provider] || cloud.providers.uuid[provider];
    return element("article", { class: "provider" },
      element("h3", {}, isolated(name)),
      element("p", { class: "faint" },
        element("code", {}, cloud.providers.uuid[provider]),
        ` generation ${number(cloud.providers.generation[provider])}`),
      inventories.length ? this.#inventories(name, inventories, cloud.disabled(cloud.treeOf[provider]))
        : element("p", { class: "faint" }, "No inventory"),
      this.#links("Traits", cloud.traits(provider).sort(), "trait"),
      this.#links("Aggregates", cloud.aggregates(provider).sort(), "aggregate"));
  }

  #inventories(name, inventories, disabled) {
    const rows = inventories.map((inventory) => {
      const free = disabled ? 0 : Math.max(0, inventory.capacity - inventory.used);
      return element("div", { class: "inventory" },
        element("div", { class: "pair" },
          isolated(inventory.name, { class: "class" }),
          element("b", {}, percent(fullness(inventory.used, inventory.capacity)))),
        bar({ ...inventory, free }),
        element("p", {}, `${number(inventory.used)} of ${number(inventory.capacity)} used, `
          + `${number(free)} free`),
        element("p", { class: "faint" }, inventoryFacts(inventory)));
    });
    return element("div", { class: "inventories", role: "group", "aria-label": `Inventories of ${name}` },
      rows);
  }

  #links(title, names, kind) {
    if (names.length === 0) {
      return null;
    }
    return element("div", { class: "links" },
      element("span", { class: "faint" }, title),
      names.map((name) => element("button", {
        type: "button", class: `chip ${kind}`, title: "Show all providers with it",
        click: () => this.onSearch(name),
      }, isolated(name))));
  }

  #sharing(tree) {
    const { cloud } = this;
    const sections = [];
    const serving = cloud.trees.sharing[tree];
    if (serving.length) {
      sections.push(element("section", { class: "sharing" },
        element("h3", {}, "Uses these sharing providers"),
        element("ul", {}, serving.map((one) => element("li", {}, this.#sharingProvider(one))))));
    }
    cloud.sharing_providers.position.forEach((position, one) => {
      if (position >= 0 && cloud.treeOf[position] === tree) {
        sections.push(this.#served(one));
      }
    });
    return sections;
  }

  #sharingProvider(one) {
    const { cloud } = this;
    const position = cloud.sharing_providers.position[one];
    const name = isolated(cloud.sharing_providers.name[one]);
    if (position < 0) {
      return [name, element("span", { class: "faint" }, " (not among the shown trees)")];
    }
    const inventories = cloud.inventoriesOf(position).map((inventory) =>
      element("span", { class: "faint" },
        ` ${inventory.name} ${percent(fullness(inventory.used, inventory.capacity))}`));
    return [this.#treeLink(cloud.treeOf[position], name), ...inventories];
  }

  #served(one) {
    const { cloud } = this;
    const trees = cloud.treesServedBy(one);
    const all = cloud.sharing_providers.trees[one];
    const listed = trees.slice(0, LISTED_TREES).map((tree) =>
      element("li", {}, this.#treeLink(tree, isolated(cloud.name(tree)))));
    return element("section", { class: "sharing" },
      element("h3", {}, isolated(cloud.sharing_providers.name[one]),
        ` shares with ${all === 1 ? "1 tree" : `${number(all)} trees`}`),
      element("ul", { class: "inline" }, listed),
      all > listed.length
        ? element("p", { class: "faint" }, `${number(all - listed.length)} more trees are not listed. `
          + "To show them in the table, select an aggregate of this provider.")
        : null);
  }

  #treeLink(tree, name) {
    return element("button", { type: "button", class: "link", click: () => this.onSelect(tree) },
      name);
  }
}

// What limits allocations, apart from the capacity.
function inventoryFacts(inventory) {
  const facts = [`total ${number(inventory.total)}`];
  if (inventory.reserved) {
    facts.push(`reserved ${number(inventory.reserved)}`);
  }
  if (inventory.ratio !== 1) {
    facts.push(`ratio ${RATIO.format(inventory.ratio)}`);
  }
  if (inventory.minUnit !== 1) {
    facts.push(`min unit ${number(inventory.minUnit)}`);
  }
  if (inventory.maxUnit < inventory.total) {
    facts.push(`max unit ${number(inventory.maxUnit)}`);
  }
  if (inventory.stepSize !== 1) {
    facts.push(`step ${number(inventory.stepSize)}`);
  }
  return facts.join(", ");
}

function cross() {
  return graphic("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    graphic("path", { class: "icon-line", d: "M3 3l10 10M13 3L3 13" }));
}
