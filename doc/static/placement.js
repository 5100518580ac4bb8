"use strict";
// A block that scrolls in itself can have the focus, so that the keyboard scrolls it.
{
  const fit = () => {
    for (const block of document.querySelectorAll(".docs-body :is(pre, table.docutils)")) {
      if (block.scrollWidth > block.clientWidth) {
        block.tabIndex = 0;
      }
    }
  };
  // A tab or a part of the page that the reader opens shows other blocks.
  for (const type of ["DOMContentLoaded", "resize", "change", "toggle"]) {
    addEventListener(type, fit, true);
  }
}
// Sphinx gives the caption of a list of pages the role of a heading, which needs a level.
addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('.caption[role="heading"]')) {
    caption.ariaLevel = "2";
  }
});
