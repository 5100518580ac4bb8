// The bands of fullness, which the map shows as colors. The colors themselves are in the style
// sheet. The lightness of the blue colors follows the fullness, and the last three bands have marks,
// so that the bands can be told apart without color vision.

const NEARLY_FULL = 0.9;
const BANDS = [
  { label: "no capacity", contains: (value) => value === null },
  { label: "unused", contains: (value) => value === 0 },
  { label: "under 50 %", contains: (value) => value < 0.5 },
  { label: "50 to 75 %", contains: (value) => value < 0.75 },
  { label: "75 to 90 %", contains: (value) => value <= NEARLY_FULL },
  { label: "90 to 100 %", contains: (value) => value <= 1 },
  { label: "over 100 %", contains: () => true },
  { label: "disabled", contains: () => false },
];

const NO_CAPACITY_BAND = 0;
const NEARLY_FULL_BAND = 5;
const DISABLED_BAND = 7;

// The marks of the last bands, on a square of the size 1.
const RISING = [[0.28, 0.72], [0.72, 0.28]];
const FALLING = [[0.28, 0.28], [0.72, 0.72]];
const LEVEL = [[0.22, 0.5], [0.78, 0.5]];
const MARKS = { [NEARLY_FULL_BAND]: [RISING], 6: [RISING, FALLING], [DISABLED_BAND]: [LEVEL] };

// A disabled tree has a band of its own, whatever its fullness is.
function band(value, disabled) {
  return disabled ? DISABLED_BAND : BANDS.findIndex((one) => one.contains(value));
}

// The legend of the map: a list of buttons, which show only the trees of one band.
class Legend {
  constructor(list, onChange) {
    this.selected = null;
    this.buttons = BANDS.map(({ label }, index) => {
      this.counts ??= [];
      const count = element("span", { class: "band-count" });
      this.counts.push(count);
      const button = element("button", {
        type: "button",
        class: "band",
        "aria-pressed": "false",
        click: () => this.#toggle(index, onChange),
      }, swatch(index), label, " ", count);
      list.append(element("li", {}, button));
      return button;
    });
  }

  show(counts) {
    counts.forEach((count, index) => {
      this.counts[index].textContent = number(count);
      this.buttons[index].disabled = count === 0 && this.selected !== index;
    });
  }

  // The colors of the bands and of the text on them, in the current theme.
  colors() {
    return this.buttons.map((button) => {
      const style = getComputedStyle(button.querySelector("i"));
      return { fill: style.backgroundColor, text: style.color, line: style.borderTopColor };
    });
  }

  // Shows only the trees of one band.
  select(index) {
    if (this.selected !== index) {
      this.buttons[index].click();
    }
  }

  #toggle(index, onChange) {
    this.selected = this.selected === index ? null : index;
    this.buttons.forEach((button, other) =>
      button.setAttribute("aria-pressed", String(other === this.selected)));
    onChange();
  }
}

// The color of a band, with the mark that it has in the map.
function swatch(index) {
  const lines = (MARKS[index] ?? []).map((line) => `M${line.flat().map((one) => one * 14).join(" ")}`);
  return element("i", { class: `band-${index}` }, lines.length === 0 ? null
    : graphic("svg", { class: "icon", viewBox: "0 0 14 14", "aria-hidden": "true" },
      graphic("path", { class: "icon-line", d: lines.join("") })));
}
