// @ts-check
/** What pages have in common. */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} kind @param {Record<string, any>} [attributes] @param {(Node|string)[]} [children]
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(kind, attributes = {}, children = []) {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @param {string} id */
export const by = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Say how it stands, or that something failed. @param {string} text @param {boolean} [failed] */
export function tell(text, failed = false) {
  const place = by(failed ? "failed" : "status");
  place.textContent = text;
  if (failed) place.hidden = text === "";
}

/** @param {number} share  of the longest */
export function bar(share) {
  return element("span", { class: "bar", style: `width: ${(100 * share).toFixed(1)}%`, "aria-hidden": "true" });
}

/**
 * A run's kernels, the slowest first.
 * @param {import("./xyntra-web.js").Model} model @param {number} ms  of the run as a whole
 */
export function timesTable(model, ms) {
  const whole = `The whole run took ${ms.toFixed(1)} ms here`;
  const { timings } = model;
  const untold = "This GPU, or browser, does not tell the time of each kernel.";
  if (!timings) return [element("p", { class: "note" }, [`${whole}. ${untold}`])];
  const total = timings.reduce((sum, one) => sum + one.ms, 0), longest = Math.max(...timings.map((one) => one.ms), 1e-9);
  const rows = [...timings].sort((a, b) => b.ms - a.ms).map(({ label, kernel, ms: each }) =>
    element("tr", {}, [
      element("td", {}, [label]),
      element("td", {}, [kernel.replace(/^.*\//, "").replace(/(_[0-9a-f]{8})?(\.\w+)?$/, "")]),
      element("td", { class: "number" }, [each > 0 ? each.toFixed(3) : "< 0.1"]), // a browser's clock is that coarse
      element("td", { class: "share" }, [bar(each / longest)]),
    ]),
  );
  const together = total > 0 ? total.toFixed(2) : "less than 0.1";
  const heads = [["operation", ""], ["kernel", ""], ["ms", "number"], ["", ""]];
  const head = heads.map(([text, kind]) => element("th", { scope: "col", class: kind }, [text]));
  return [
    element("p", { class: "note" }, [`${whole}; its ${timings.length} kernels took ${together} ms.`]),
    element("table", {}, [element("thead", {}, [element("tr", {}, head)]), element("tbody", {}, rows)]),
  ];
}
