// Elements of the page. Text is always inserted as text, never as markup.

// Creates an element with attributes, properties (with a leading dot), listeners (functions), and
// children.
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function graphic(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      node.addEventListener(name, value);
    } else if (name.startsWith(".")) {
      node[name.slice(1)] = value;
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

// A name that a user of the API has chosen. <bdi> isolates its direction from the text around it.
function isolated(text, attributes = {}) {
  return element("bdi", attributes, text);
}

// A bar over the nominal capacity: what is used, free, and neither: reserved, or in a disabled tree.
function bar({ used, capacity, nominal, free = Math.max(0, capacity - used) }) {
  const width = Math.max(nominal, capacity, 1e-9);
  const over = used > capacity;
  const usedWidth = (over ? (capacity > 0 ? capacity : width) : used) / width * 100;
  const freeWidth = Math.min(100 - usedWidth, free / width * 100);
  return graphic("svg", { class: "meter", "aria-hidden": "true", focusable: "false" },
    graphic("rect", { class: "reserved", width: "100%", height: "100%" }),
    graphic("rect", { class: "free", x: `${usedWidth}%`, width: `${freeWidth}%`, height: "100%" }),
    graphic("rect", { class: usedClass(used, capacity), width: `${usedWidth}%`, height: "100%" }));
}

function usedClass(used, capacity) {
  const value = fullness(used, capacity);
  if (value > 1) {
    return "used over";
  }
  return value > NEARLY_FULL ? "used nearly" : "used";
}

function options(select, labels, selected) {
  select.replaceChildren(...labels.map(([value, label]) =>
    element("option", { value, ".selected": value === selected }, label)));
}
