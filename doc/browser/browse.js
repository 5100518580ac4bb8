// Displays the OpenAPI document of one microversion. The address of the page selects it:
// browse.html?microversion=1.28#update_allocations
// The fragment is the id of an operation. A page on disk cannot request files. Therefore the page
// adds a script that calls showDocument().

"use strict";

const choice = document.getElementById("microversion");
const target = document.getElementById("document");
const statusLine = document.getElementById("status");
const texts = new Map(); // the text of each document that has been loaded
let shown = null; // the instance of Swagger UI that displays the document

function microversionOfAddress() {
  return new URLSearchParams(location.search).get("microversion");
}

function operationOfAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function isOffered(microversion) {
  return [...choice.options].some((option) => option.value === microversion);
}

// Selects the microversion of the address, by default the newest one.
function followAddress() {
  const wanted = microversionOfAddress();
  choice.value = isOffered(wanted) ? wanted : choice.options[0].value;
  load(choice.value);
}

function load(microversion) {
  const name = `openapi/placement-${microversion}`;
  const link = document.getElementById("download");
  link.href = `${name}.yaml`;
  link.textContent = `placement-${microversion}.yaml`;
  target.setAttribute("aria-busy", "true");
  if (texts.has(microversion)) {
    display(microversion);
    return;
  }
  const script = document.createElement("script");
  script.src = `${name}.js`;
  script.onerror = () => {
    script.remove();
    target.replaceChildren();
    target.removeAttribute("aria-busy");
    statusLine.textContent = `The document of microversion ${microversion} cannot be loaded.`;
  };
  document.head.append(script);
}

// The script of each document calls this function.
window.showDocument = (microversion, text) => {
  texts.set(microversion, text);
  display(microversion);
};

function display(microversion) {
  if (microversion !== choice.value) {
    return; // The reader has selected another one in the meantime.
  }
  // A new instance does not retain the selected examples of another document.
  const node = document.createElement("div");
  target.replaceChildren(node);
  const ui = SwaggerUIBundle({
    domNode: node,
    layout: "DocumentLayout",
    plugins: [documentPlugin],
    docExpansion: "list",
    defaultModelRendering: "model",
    defaultModelExpandDepth: 3,
    defaultModelsExpandDepth: 0,
    showExtensions: true,
    showCommonExtensions: true,
    supportedSubmitMethods: [], // no requests from this page
    syntaxHighlight: { theme: "monokai" }, // its colors have enough contrast
    validatorUrl: null,
    onComplete: () => complete(ui, microversion),
  });
  shown = ui;
  // References in the document are relative to an address. Swagger UI does not resolve them
  // relative to a file.
  ui.specActions.updateUrl("https://placement.invalid/openapi.yaml");
  ui.specActions.updateSpec(texts.get(microversion));
}

function complete(ui, microversion) {
  if (ui !== shown) {
    return;
  }
  const count = ui.specSelectors.operations().size;
  const wanted = microversionOfAddress();
  const missing = wanted === null || isOffered(wanted)
    ? "" : `There is no document of microversion ${wanted}. `;
  statusLine.textContent = `${missing}Microversion ${microversion}: ${count} operations`;
  target.removeAttribute("aria-busy");
  openOperation(ui);
  performance.mark("usable");
}

function openOperation(ui) {
  const id = operationOfAddress();
  const operation = id && ui.specSelectors.operations()
    .find((one) => one.getIn(["operation", "operationId"]) === id);
  if (!operation) {
    return;
  }
  const tag = operation.getIn(["operation", "tags", 0], "default");
  ui.layoutActions.show(["operations", tag, id], true);
  requestAnimationFrame(() => {
    const block = [...target.querySelectorAll(".opblock")]
      .find((one) => one.id.replaceAll("\\", "") === `operations-${tag}-${id}`);
    block?.scrollIntoView();
    // The page is too short to scroll until Swagger UI has added the content of the operation.
    const observer = new MutationObserver(() => block?.scrollIntoView());
    observer.observe(target, { childList: true, subtree: true });
    setTimeout(() => observer.disconnect(), 1000);
  });
}

// The parts of the page of Swagger UI: without its title, and without the forms for servers and
// credentials. The address of the page contains the id of the last opened operation.
function documentPlugin({ React }) {
  const create = React.createElement;
  return {
    components: {
      DocumentLayout: ({ getComponent, specSelectors }) => {
        const info = specSelectors.info();
        return create("div", { className: "swagger-ui" },
          create(getComponent("SvgAssets")),
          create("h2", null, `Microversion ${info.get("version", "")}`),
          create(getComponent("Markdown", true), { source: info.get("description", "") }),
          create(getComponent("errors", true)),
          create(getComponent("operations", true)),
          create("div", { className: "wrapper" }, create(getComponent("Models", true))),
        );
      },
      authorizeOperationBtn: () => null,
    },
    // Without this change, Swagger UI invents the example of a body from its schema.
    afterLoad({ fn }) {
      const original = fn.getSampleSchema;
      this.fn.getSampleSchema = (schema, type, options, example) =>
        schema && typeof type === "string" && example === undefined
          ? "The document contains no example."
          : original(schema, type, options, example);
    },
    wrapComponents: {
      ExamplesSelect: labelled(React, "select", "Example"),
      JSONSchema202012Accordion: labelled(React, "button", "Details"),
    },
    statePlugins: {
      layout: {
        wrapActions: {
          show: (original) => (thing, isShown = true) => {
            if (Array.isArray(thing) && thing[0] === "operations" && thing.length === 3) {
              const fragment = isShown ? `#${encodeURI(thing[2])}` : "";
              history.replaceState(null, "", location.pathname + location.search + fragment);
            }
            return original(thing, isShown);
          },
        },
      },
    },
  };
}

// Wraps a component of Swagger UI that renders a select element without a name, or a button that can
// lack a text.
function labelled(React, selector, label) {
  return (Original) => (properties) => {
    const node = React.useRef(null);
    React.useEffect(() => {
      const control = node.current.querySelector(selector);
      if (control?.localName === "select" || control?.textContent.trim() === "") {
        control.setAttribute("aria-label", label);
      }
    });
    return React.createElement("span", { ref: node }, React.createElement(Original, properties));
  };
}

choice.addEventListener("change", () => {
  history.pushState(null, "", `?microversion=${choice.value}${location.hash}`);
  load(choice.value);
});
window.addEventListener("popstate", () => {
  if (choice.value !== (microversionOfAddress() ?? choice.options[0].value)) {
    followAddress();
  } else if (shown !== null) {
    openOperation(shown);
  }
});

document.getElementById("downloads").open = false;
document.getElementById("choice").hidden = false;
document.getElementById("choice").addEventListener("submit", (event) => event.preventDefault());
followAddress();
