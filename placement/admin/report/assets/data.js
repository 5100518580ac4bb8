// The data of the page. The JSON document is columnar: see placement/admin/report/page.py.

// The number of resource classes with a column of their own in the table of providers.
const MAIN_CLASSES = 3;

class Cloud {
  constructor(document_) {
    const { traits, aggregates, ...rest } = document_;
    Object.assign(this, rest, { traitNames: traits, aggregateNames: aggregates });
    this.treeCount = this.trees.size.length;
    this.first = new Uint32Array(this.treeCount + 1); // the position of the root of each tree
    this.firstInventory = new Uint32Array(this.providers.name.length + 1);
    this.treeOf = new Uint32Array(this.providers.name.length);
    this.used = this.classes.map(() => new Float64Array(this.treeCount));
    this.capacity = this.classes.map(() => new Float64Array(this.treeCount));
    this.hasClass = this.classes.map(() => new Uint8Array(this.treeCount));
    this.#index();
    this.texts = null;
  }

  #index() {
    let provider = 0;
    let inventory = 0;
    for (let tree = 0; tree < this.treeCount; tree++) {
      this.first[tree] = provider;
      for (const end = provider + this.trees.size[tree]; provider < end; provider++) {
        this.treeOf[provider] = tree;
        this.firstInventory[provider] = inventory;
        for (const last = inventory + this.providers.inventories[provider]; inventory < last; inventory++) {
          const shape = this.inventories.shape[inventory];
          const class_ = this.shapes.class[shape];
          this.used[class_][tree] += this.inventories.used[inventory];
          this.capacity[class_][tree] += this.shapes.capacity[shape];
          this.hasClass[class_][tree] = 1;
        }
      }
    }
    this.first[this.treeCount] = provider;
    this.firstInventory[provider] = inventory;
  }

  // The resource classes that the most trees have.
  mainClasses() {
    const counts = this.hasClass.map((trees) => trees.reduce((sum, one) => sum + one, 0));
    return [...counts.keys()].filter((class_) => counts[class_] > 0)
      .sort((a, b) => counts[b] - counts[a] || a - b).slice(0, MAIN_CLASSES).sort((a, b) => a - b);
  }

  name(tree) {
    return this.providers.name[this.first[tree]] || this.providers.uuid[this.first[tree]];
  }

  uuid(tree) {
    return this.providers.uuid[this.first[tree]];
  }

  // Whether the root has the trait COMPUTE_STATUS_DISABLED.
  disabled(tree) {
    return this.trees.disabled[tree] === 1;
  }

  // The usage divided by the capacity; null without capacity and usage.
  fullness(tree, class_ = this.trees.fullest[tree]) {
    if (class_ < 0 || !this.hasClass[class_][tree]) {
      return null;
    }
    return fullness(this.used[class_][tree], this.capacity[class_][tree]);
  }

  traits(provider) {
    return this.trait_sets[this.providers.traits[provider]].map((trait) => this.traitNames[trait]);
  }

  aggregates(provider) {
    return this.aggregate_sets[this.providers.aggregates[provider]]
      .map((aggregate) => this.aggregateNames[aggregate]);
  }

  inventoriesOf(provider) {
    const found = [];
    for (let i = this.firstInventory[provider]; i < this.firstInventory[provider + 1]; i++) {
      const shape = this.inventories.shape[i];
      found.push({
        name: this.classes[this.shapes.class[shape]],
        class: this.shapes.class[shape],
        used: this.inventories.used[i],
        capacity: this.shapes.capacity[shape],
        total: this.shapes.total[shape],
        reserved: this.shapes.reserved[shape],
        ratio: this.shapes.allocation_ratio[shape],
        nominal: this.shapes.total[shape] * this.shapes.allocation_ratio[shape],
        minUnit: this.shapes.min_unit[shape],
        maxUnit: this.shapes.max_unit[shape],
        stepSize: this.shapes.step_size[shape],
      });
    }
    return found.sort((a, b) => a.class - b.class);
  }

  // The positions of the trees with which a sharing provider shares its inventories.
  treesServedBy(sharingProvider) {
    const found = [];
    this.trees.sharing.forEach((all, tree) => all.includes(sharingProvider) && found.push(tree));
    return found;
  }

  // The text in which a search finds a tree: names, UUIDs, traits, and aggregates in lower case.
  text(tree) {
    this.texts ??= new Array(this.treeCount);
    if (this.texts[tree] === undefined) {
      const words = [];
      const links = new Set();
      for (let provider = this.first[tree]; provider < this.first[tree + 1]; provider++) {
        words.push(this.providers.name[provider], this.providers.uuid[provider]);
        this.traits(provider).forEach((name) => links.add(name));
        this.aggregates(provider).forEach((uuid) => links.add(uuid));
      }
      this.texts[tree] = [...words, ...links].join("\n").toLowerCase();
    }
    return this.texts[tree];
  }
}

// The consumers of the trees, the largest ones first. The text is parsed when it is needed, because
// it can be large.
class Consumers {
  constructor(node) {
    this.node = node;
    this.data = null;
  }

  of(tree) {
    this.data ??= this.#read();
    const { name, type, project, amounts, types, projects, amount_sets, first } = this.data;
    const found = [];
    for (let i = first[tree]; i < first[tree + 1]; i++) {
      found.push({
        name: name[i],
        type: types[type[i]],
        project: projects[project[i]],
        amounts: amount_sets[amounts[i]],
      });
    }
    return found;
  }

  #read() {
    const data = JSON.parse(this.node.textContent);
    let next = 0;
    return { ...data, first: [0, ...data.size.map((size) => (next += size))] };
  }
}

function fullness(used, capacity) {
  if (capacity > 0) {
    return used / capacity;
  }
  return used > 0 || capacity < 0 ? Infinity : null;
}

// The trees that contain all words of a query.
function matching(cloud, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let tree = 0; tree < cloud.treeCount; tree++) {
    if (words.length === 0 || words.every((word) => cloud.text(tree).includes(word))) {
      found.push(tree);
    }
  }
  return found;
}

const NUMBER = new Intl.NumberFormat("en-US");
const RATIO = new Intl.NumberFormat("en-US", { maximumFractionDigits: 4 });

function number(value) {
  return NUMBER.format(value);
}

// A percentage in whole numbers: 100 % only if nothing is free, and 0 % only without usage.
function percent(value) {
  if (value === null) {
    return "none";
  }
  if (value === Infinity) {
    return "over";
  }
  const rounded = Math.round(value * 100);
  if (value > 0 && rounded === 0) {
    return "< 1 %";
  }
  if (value < 1 && rounded === 100) {
    return "> 99 %";
  }
  if (value > 1 && rounded === 100) {
    return "> 100 %";
  }
  return `${number(rounded)} %`;
}

// The suffix of a resource class -> its unit in KiB, and the names of larger units.
const UNITS = [["_MB", 1], ["_GB", 2]];
const PREFIXES = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// An amount of memory or disk in a larger unit; an empty text for other resource classes.
function inLargeUnits(class_, amount) {
  const unit = UNITS.find(([suffix]) => class_.endsWith(suffix));
  if (unit === undefined || amount < 1024) {
    return "";
  }
  let [, prefix] = unit;
  while (amount >= 1024 && prefix < PREFIXES.length - 1) {
    amount /= 1024;
    prefix++;
  }
  return `${amount.toLocaleString("en-US", { maximumSignificantDigits: 3 })} ${PREFIXES[prefix]}`;
}
