// The map: a canvas with a cell for each tree. Up to some hundred trees have cells with their names:
// tiles with the fullness, or labels.

const TILES = { most: 96, width: 148, height: 56, gap: 6 };
const LABELS = { most: 400, width: 96, height: 26, gap: 4 };
const SQUARES = { smallest: 6, largest: 26, height: 420 };

class TreeMap {
  constructor(cloud, container, onSelect) {
    this.cloud = cloud;
    this.onSelect = onSelect;
    this.trees = [];      // in the order of the cells
    this.matches = null;  // the trees that are not dimmed
    this.values = [];     // the fullness of each tree
    this.focused = 0;
    this.selected = null;
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map",
      "aria-label": "Map of root providers",
      click: (event) => this.#click(event),
      keydown: (event) => this.#key(event),
      mousemove: (event) => this.#point(event),
      mouseleave: () => this.#hideTip(),
      focus: () => this.#focus(this.focused),
      blur: () => this.draw(),
    });
    this.tip = element("div", { class: "tip", hidden: true });
    this.status = element("p", { class: "status", "aria-live": "polite" });
    container.append(this.canvas, this.tip, this.status);
    new ResizeObserver(() => this.draw()).observe(container);
  }

  show(trees, values, matches, colors, text) {
    Object.assign(this, { trees, values, matches, colors, text });
    this.focused = Math.min(this.focused, Math.max(0, trees.length - 1));
    this.draw();
  }

  select(tree) {
    this.selected = tree;
    const cell = this.trees.indexOf(tree);
    if (cell >= 0) {
      this.focused = cell;
    }
    this.draw();
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width || !this.colors) {
      return;
    }
    this.#layOut(width);
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.height = `${this.height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    context.clearRect(0, 0, width, this.height);
    this.font = getComputedStyle(document.body).fontFamily;
    this.hatch = hatch(context, this.colors[0].line);
    this.trees.forEach((tree, cell) => this.#drawCell(context, tree, cell));
    this.#outline(context, this.trees.indexOf(this.selected), 2);
    if (document.activeElement === this.canvas) {
      this.#outline(context, this.focused, 3);
    }
  }

  #layOut(width) {
    const count = Math.max(1, this.trees.length);
    this.named = [TILES, LABELS].find(({ most }) => count <= most);
    if (this.named) {
      this.gap = this.named.gap;
      this.columns = Math.max(1, Math.floor((width + this.gap) / (this.named.width + this.gap)));
      this.cellWidth = (width + this.gap) / this.columns - this.gap;
      this.cellHeight = this.named.height;
    } else {
      const fitting = Math.floor(Math.sqrt(width * SQUARES.height / count));
      const pitch = Math.min(SQUARES.largest, Math.max(SQUARES.smallest, fitting));
      this.columns = Math.max(1, Math.floor(width / pitch));
      this.gap = pitch > 9 ? 2 : 1;
      this.cellWidth = width / this.columns - this.gap;
      this.cellHeight = this.cellWidth;
    }
    this.height = Math.ceil(count / this.columns) * (this.cellHeight + this.gap);
  }

  #box(cell) {
    return {
      x: (cell % this.columns) * (this.cellWidth + this.gap),
      y: Math.floor(cell / this.columns) * (this.cellHeight + this.gap),
    };
  }

  #drawCell(context, tree, cell) {
    const { x, y } = this.#box(cell);
    const index = band(this.values[tree], this.cloud.disabled(tree));
    const color = this.colors[index];
    context.globalAlpha = this.matches === null || this.matches.has(tree) ? 1 : 0.15;
    context.fillStyle = color.fill;
    this.#shape(context, x, y, 0);
    context.fill();
    if (index === NO_CAPACITY_BAND) {
      context.fillStyle = this.hatch;
      context.fill();
    }
    if (this.named || this.cellWidth >= 10) {
      context.strokeStyle = color.line;
      context.lineWidth = 1;
      this.#shape(context, x, y, 0.5);
      context.stroke();
    }
    if (this.named) {
      this.#label(context, tree, x, y, color);
    } else if (index in MARKS) {
      this.#mark(context, x, y, color, MARKS[index]);
    }
    context.globalAlpha = 1;
  }

  #shape(context, x, y, inset) {
    context.beginPath();
    context.roundRect(x + inset, y + inset, this.cellWidth - 2 * inset, this.cellHeight - 2 * inset,
      this.named ? this.gap : Math.min(3, this.cellWidth / 5));
  }

  #label(context, tree, x, y, color) {
    context.fillStyle = color.text;
    context.textBaseline = "alphabetic";
    if (this.named === LABELS) {
      context.font = `12px ${this.font}`;
      context.fillText(shortened(context, this.cloud.name(tree), this.cellWidth - 10), x + 5, y + 17);
      return;
    }
    const room = this.cellWidth - 20;
    context.font = `600 13px ${this.font}`;
    context.fillText(shortened(context, this.cloud.name(tree), room), x + 10, y + 23);
    context.font = `12px ${this.font}`;
    context.fillText(shortened(context, this.text(tree), room), x + 10, y + 42);
  }

  // Marks a tree that is nearly full by a line, an exceeded capacity by a cross, and a disabled tree
  // by a level line, so that they do not depend on color alone.
  #mark(context, x, y, color, lines) {
    const at = ([right, down]) => [x + right * this.cellWidth, y + down * this.cellHeight];
    context.strokeStyle = color.text;
    context.lineWidth = Math.max(1, this.cellWidth / 10);
    context.beginPath();
    for (const [start, end] of lines) {
      context.moveTo(...at(start));
      context.lineTo(...at(end));
    }
    context.stroke();
  }

  #outline(context, cell, width) {
    if (cell < 0 || cell >= this.trees.length) {
      return;
    }
    const { x, y } = this.#box(cell);
    context.strokeStyle = getComputedStyle(this.canvas).color;
    context.lineWidth = width;
    this.#shape(context, x, y, width / 2 - 1);
    context.stroke();
  }

  #cellAt(event) {
    const column = Math.floor(event.offsetX / (this.cellWidth + this.gap));
    const row = Math.floor(event.offsetY / (this.cellHeight + this.gap));
    const cell = row * this.columns + column;
    return column < this.columns && cell >= 0 && cell < this.trees.length ? cell : -1;
  }

  #click(event) {
    const cell = this.#cellAt(event);
    if (cell >= 0) {
      this.focused = cell;
      this.onSelect(this.trees[cell]);
    }
  }

  #point(event) {
    const cell = this.#cellAt(event);
    if (cell < 0) {
      this.#hideTip();
      return;
    }
    const { x, y } = this.#box(cell);
    this.tip.textContent = this.#describe(cell);
    this.tip.hidden = false;
    const right = this.canvas.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(x, right))}px`;
    this.tip.style.top = `${y + this.cellHeight + 6}px`;
  }

  #hideTip() {
    this.tip.hidden = true;
  }

  #key(event) {
    const page = this.columns * 10;
    const steps = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns,
      PageDown: page, PageUp: -page, Home: -this.trees.length, End: this.trees.length,
    };
    if (event.key in steps) {
      event.preventDefault();
      this.#focus(this.focused + steps[event.key]);
    } else if ((event.key === "Enter" || event.key === " ") && this.trees.length) {
      event.preventDefault();
      this.onSelect(this.trees[this.focused]);
    }
  }

  #focus(cell) {
    this.focused = Math.max(0, Math.min(this.trees.length - 1, cell));
    this.status.textContent = this.trees.length ? this.#describe(this.focused) : "";
    this.draw();
  }

  #describe(cell) {
    const tree = this.trees[cell];
    return `${this.cloud.name(tree)}: ${this.text(tree)}`;
  }
}

function shortened(context, text, width) {
  if (context.measureText(text).width <= width) {
    return text;
  }
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) {
    end--;
  }
  return `${text.slice(0, end)}…`;
}

function hatch(context, color) {
  const tile = element("canvas", { width: "8", height: "8" });
  const lines = tile.getContext("2d");
  lines.strokeStyle = color;
  lines.lineWidth = 1;
  lines.beginPath();
  for (const offset of [-4, 0, 4, 8]) {
    lines.moveTo(offset, 8);
    lines.lineTo(offset + 8, 0);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat");
}
