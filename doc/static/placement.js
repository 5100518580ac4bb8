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
  addEventListener("resize", fit);
  addEventListener("DOMContentLoaded", fit);
}
