// @ts-check
/** A page for any model: images are dropped, numbers are typed, the answer and the time of each kernel are shown. */

import { load } from "./xyntra-web.js";
import { bar, by, element, tell, timesTable } from "./parts.js";

const SHOWN = 5; // of a row of an output
const FLOATS = [1, 10, 16];
const NAMES = /** @type {Record<number, string>} */ ({
  1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 16: "bfloat16",
});
// Of pictures, as most models of torchvision and timm want them.
const MEAN = [0.485, 0.456, 0.406], DEVIATION = [0.229, 0.224, 0.225];

/** @typedef {import("./xyntra-web.js").Declared} Declared */

/** A picture's channels, height and width, where the input looks like one. @param {Declared} input */
function picture({ type, shape }) {
  const [n, c, h, w] = shape?.length === 4 ? shape : [];
  const sized = typeof h === "number" && typeof w === "number" && (n === 1 || typeof n !== "number");
  return sized && type === 1 && (c === 1 || c === 3) ? { channels: c, height: h, width: w } : null;
}

/** @param {Declared} input @param {HTMLElement} box @returns {() => {data: any, dims: number[]}} */
function pictureField(input, box) {
  const size = /** @type {{channels: number, height: number, width: number}} */ (picture(input));
  const { channels, height, width } = size;
  const file = element("input", { type: "file", accept: "image/*", id: `file-${input.name}` });
  const canvas = element("canvas", { width, height, role: "img", "aria-label": "no picture yet", hidden: "" });
  const normal = element("input", { type: "checkbox", id: `normal-${input.name}` });
  normal.checked = channels === 3;
  const drop = element("div", { class: "drop" }, [
    element("label", { for: file.id }, [`Drop a picture here, or choose one (${width} × ${height})`]),
    file,
    canvas,
  ]);
  const means = `Normalise as for ImageNet (mean ${MEAN.join(", ")})`;
  const label = element("label", { for: normal.id }, [normal, ` ${channels === 3 ? means : "Normalise to -1 … 1"}`]);
  box.append(drop, element("p", {}, [label]), element("p", { class: "note" }, ["Without a picture, numbers are made up."]));
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));

  /** @param {Blob|undefined} blob */
  const take = async (blob) => {
    if (!blob) return;
    try {
      const image = await createImageBitmap(blob);
      const scale = Math.max(width / image.width, height / image.height); // the middle of it
      const [w, h] = [image.width * scale, image.height * scale];
      context.imageSmoothingQuality = "high";
      context.drawImage(image, (width - w) / 2, (height - h) / 2, w, h);
      canvas.hidden = false;
      canvas.setAttribute("aria-label", "the picture as the model gets it");
    } catch (error) {
      tell(`That is no picture: ${error}`, true);
    }
  };
  file.addEventListener("change", () => take(file.files?.[0]));
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer?.files[0]);
  });

  return () => {
    const data = new Float32Array(channels * height * width);
    if (canvas.hidden) return { data: data.map(() => Math.random() * 2 - 1), dims: [1, channels, height, width] };
    const { data: pixels } = context.getImageData(0, 0, width, height);
    for (let i = 0; i < height * width; i++) {
      for (let c = 0; c < channels; c++) {
        const grey = (pixels[4 * i] * 299 + pixels[4 * i + 1] * 587 + pixels[4 * i + 2] * 114) / 1000;
        const value = (channels === 3 ? pixels[4 * i + c] : grey) / 255;
        const [mean, deviation] = !normal.checked ? [0, 1] : channels === 3 ? [MEAN[c], DEVIATION[c]] : [0.5, 0.5];
        data[c * height * width + i] = (value - mean) / deviation;
      }
    }
    return { data, dims: [1, channels, height, width] };
  };
}

/** @param {Declared} input @param {HTMLElement} box @returns {() => {data: any, dims: number[]}} */
function numbersField(input, box) {
  const free = input.shape === null || input.shape.some((size) => typeof size !== "number");
  const declared = input.shape?.map((size) => (typeof size === "number" ? size : 1)) ?? [1];
  const shape = element("input", { type: "text", id: `shape-${input.name}`, value: declared.join(" "), inputmode: "numeric" });
  const values = element("textarea", { id: `values-${input.name}`, rows: "4", spellcheck: "false" });
  if (free) box.append(element("label", { for: shape.id }, ["Sizes"]), element("p", {}, [shape]));
  const label = "Numbers, with spaces or commas between them (none: they are made up)";
  box.append(element("label", { for: values.id }, [label]), values);
  return () => {
    const split = (/** @type {string} */ text) => text.split(/[\s,;[\]]+/).filter(Boolean);
    const dims = free ? split(shape.value).map(Number) : declared;
    const count = dims.reduce((a, b) => a * b, 1);
    const typed = split(values.value);
    const isFloat = FLOATS.includes(input.type);
    const made = () => (isFloat ? Math.random() * 2 - 1 : 0);
    if (typed.some((word) => Number.isNaN(Number(word)))) throw new Error(`${input.name}: not all of that is numbers`);
    return { data: typed.length ? typed.map(Number) : Array.from({ length: count }, made), dims };
  };
}

/** The largest values of each row, or the first ones. @param {string} name @param {{data: any, dims: number[]}} tensor */
function answer(name, { data, dims }) {
  const parts = [element("h2", {}, [`${name} [${dims.join(" × ")}]`])];
  const width = dims.at(-1) ?? 1;
  const values = Array.from(data.subarray(0, width), Number);
  const order = values.map((_, i) => i).sort((a, b) => values[b] - values[a]).slice(0, SHOWN);
  if (width === 1 || !(data instanceof Float32Array)) {
    parts.push(element("p", {}, [Array.from(data.subarray(0, 32), String).join(", ") + (data.length > 32 ? " …" : "")]));
    return parts;
  }
  const top = Math.max(...order.map((i) => Math.abs(values[i])), 1e-30);
  const rows = order.map((i) =>
    element("tr", {}, [
      element("th", { scope: "row" }, [String(i)]),
      element("td", { class: "number" }, [values[i].toPrecision(5)]),
      element("td", { class: "share" }, [bar(Math.abs(values[i]) / top)]),
    ]),
  );
  const heads = [["place", ""], ["value", "number"], ["", ""]];
  const head = heads.map(([text, kind]) => element("th", { scope: "col", class: kind }, [text]));
  const first = data.length > width ? " of the first row" : "";
  parts.push(element("table", {}, [
    element("caption", { class: "note" }, [`The ${order.length} largest values${first}`]),
    element("thead", {}, [element("tr", {}, head)]),
    element("tbody", {}, rows),
  ]));
  return parts;
}

async function main() {
  const begun = performance.now();
  const model = await load("plan.json", {
    progress: (done, all) => tell(`Loading weights: ${Math.round((100 * done) / all)} %`),
  });
  by("name").textContent = document.title = model.name;
  const ready = `ready in ${((performance.now() - begun) / 1000).toFixed(2)} s`;
  const where = model.target === "webgpu" ? `GPU: ${model.device} (WebGPU)` : `WebAssembly: ${model.device}`;
  tell(`${where}, ${ready}. ${model.skipped.length ? `Not on a GPU: ${model.skipped.join("; ")}.` : ""}`);
  const fields = model.inputs.map((input) => {
    const sizes = input.shape?.map((size) => size ?? "?").join(" × ") ?? "any sizes";
    const box = element("fieldset", {}, [element("legend", {}, [`${input.name}: ${NAMES[input.type]} [${sizes}]`])]);
    by("inputs").append(box);
    return { name: input.name, read: picture(input) ? pictureField(input, box) : numbersField(input, box) };
  });
  const run = /** @type {HTMLButtonElement} */ (by("run"));
  run.disabled = false;
  by("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    run.disabled = true;
    try {
      tell("", true);
      const feeds = Object.fromEntries(fields.map(({ name, read }) => [name, read()]));
      const from = performance.now();
      const outputs = await model.run(feeds, { timings: true });
      const ms = performance.now() - from;
      by("answer").replaceChildren(...Object.entries(outputs).flatMap(([name, tensor]) => answer(name, tensor)));
      by("times").replaceChildren(...timesTable(model, ms));
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), true);
    }
    run.disabled = false;
  });
}

main().catch((error) => {
  tell("");
  const wanted = "A browser with WebGPU or WebAssembly is needed: a current Chrome, Edge, Firefox or Safari.";
  tell(`${error.message.replace(/\.?$/, ".")} ${wanted}`, true);
});
