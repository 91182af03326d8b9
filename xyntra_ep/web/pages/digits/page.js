// @ts-check
/** A digit is drawn, brought into the form of the dataset that the model has learned from, and recognised. */

import { load } from "./xyntra-web.js";
import { bar, by, element, tell, timesTable } from "./parts.js";

const FINE = 32, COARSE = 8, LEVELS = 16; // a bitmap of 32 x 32; of each 4 x 4 of its points, how many are set
const PEN = 30; // width of a line on the board
const WIDER = 1; // on each side, in the bitmap: the pens of the dataset were thick
const STEP = 8; // of the arrow keys
/** @type {Record<string, number[]>} */
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const board = /** @type {HTMLCanvasElement} */ (by("board"));
const context = /** @type {CanvasRenderingContext2D} */ (board.getContext("2d", { willReadFrequently: true }));
const pen = { x: board.width / 2, y: board.height / 4, down: false, drawn: false };
let drawing = false;

/** @param {number} x @param {number} y */
function lineTo(x, y) {
  context.lineWidth = PEN;
  context.lineCap = context.lineJoin = "round";
  context.strokeStyle = "#14171a";
  context.beginPath();
  context.moveTo(pen.x, pen.y);
  context.lineTo(x, y);
  context.stroke();
  Object.assign(pen, { x, y, drawn: true });
}

/** @param {PointerEvent} event @returns {[number, number]} */
function place(event) {
  const box = board.getBoundingClientRect();
  return [((event.clientX - box.left) * board.width) / box.width, ((event.clientY - box.top) * board.height) / box.height];
}

/** The drawing as 64 numbers from 0 to 16, or null where nothing is drawn: what is drawn fills the height, or the width. */
function pixels() {
  const { width, height } = board;
  const { data } = context.getImageData(0, 0, width, height);
  let left = width, right = -1, top = height, bottom = -1;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (data[4 * (y * width + x) + 3] < 128) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  if (right < 0) return null;
  const side = (Math.max(bottom - top + 1, right - left + 1) * FINE) / (FINE - 2 * WIDER);
  const centre = [(left + right + 1) / 2, (top + bottom + 1) / 2];
  const isInk = (/** @type {number} */ u, /** @type {number} */ v) => {
    const [x, y] = [u, v].map((at, axis) => Math.floor(centre[axis] + ((at + 0.5) / FINE - 0.5) * side));
    return x >= 0 && y >= 0 && x < width && y < height && data[4 * (y * width + x) + 3] >= 128;
  };
  const found = new Float32Array(COARSE * COARSE);
  const each = FINE / COARSE;
  for (let v = 0; v < FINE; v++) {
    for (let u = 0; u < FINE; u++) {
      if ([[0, 0], [WIDER, 0], [-WIDER, 0], [0, WIDER], [0, -WIDER]].some(([du, dv]) => isInk(u + du, v + dv)))
        found[Math.floor(v / each) * COARSE + Math.floor(u / each)]++;
    }
  }
  return found;
}

/** @param {Float32Array|null} values */
function show(values) {
  const canvas = /** @type {HTMLCanvasElement} */ (by("seen"));
  const seen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const each = canvas.width / COARSE;
  for (let i = 0; i < COARSE * COARSE; i++) {
    const grey = 255 - Math.round((255 * (values ? values[i] : 0)) / LEVELS);
    seen.fillStyle = `rgb(${grey} ${grey} ${grey})`;
    seen.fillRect((i % COARSE) * each, Math.floor(i / COARSE) * each, each, each);
  }
}

/** @param {ArrayLike<number>|null} probabilities */
function bars(probabilities) {
  const best = probabilities ? Array.from(probabilities).indexOf(Math.max(...Array.from(probabilities))) : -1;
  by("answer").textContent = best < 0 ? "–" : String(best);
  by("bars").replaceChildren(
    ...Array.from({ length: 10 }, (_, digit) => {
      const share = probabilities ? probabilities[digit] : 0;
      return element("tr", { class: digit === best ? "best" : "" }, [
        element("th", { scope: "row" }, [String(digit)]),
        element("td", { class: "share" }, [bar(share)]),
        element("td", { class: "number" }, [`${(100 * share).toFixed(1)} %`]),
      ]);
    }),
  );
}

async function main() {
  bars(null);
  show(null);
  const model = await load("plan.json");
  const where = model.target === "webgpu" ? `GPU: ${model.device} (WebGPU)` : `WebAssembly: ${model.device}`;
  tell(`${where}. ${model.skipped.length ? `Not on a GPU: ${model.skipped.join("; ")}.` : ""}`);
  const [input] = model.inputs, [output] = model.outputs;

  async function predict() {
    const values = pixels();
    show(values);
    if (!values) return bars(null);
    try {
      tell("", true);
      const from = performance.now();
      const found = await model.run({ [input.name]: values }, { timings: true });
      const ms = performance.now() - from;
      bars(/** @type {Float32Array} */ (found[output.name].data));
      by("times").replaceChildren(...timesTable(model, ms));
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), true);
    }
  }

  function clear() {
    context.clearRect(0, 0, board.width, board.height);
    Object.assign(pen, { x: board.width / 2, y: board.height / 4, down: false, drawn: false });
    show(null);
    bars(null);
  }

  board.addEventListener("pointerdown", (event) => {
    board.setPointerCapture(event.pointerId);
    drawing = true;
    [pen.x, pen.y] = place(event);
    lineTo(pen.x, pen.y);
  });
  board.addEventListener("pointermove", (event) => {
    if (drawing) lineTo(...place(event));
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    board.addEventListener(kind, () => {
      if (drawing) predict();
      drawing = false;
    });
  }
  board.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (move) {
      const [x, y] = [pen.x + STEP * move[0], pen.y + STEP * move[1]].map((at) => Math.min(board.width, Math.max(0, at)));
      if (pen.down) lineTo(x, y);
      else Object.assign(pen, { x, y });
    } else if (event.key === " ") {
      pen.down = !pen.down;
      if (pen.down) lineTo(pen.x, pen.y);
    } else if (event.key === "Enter") predict();
    else if (event.key === "Escape") clear();
    else return;
    event.preventDefault();
  });
  by("clear").addEventListener("click", clear);
  const button = /** @type {HTMLButtonElement} */ (by("predict"));
  button.addEventListener("click", predict);
  button.disabled = false;
}

main().catch((error) => {
  tell("");
  const wanted = "A browser with WebGPU or WebAssembly is needed: a current Chrome, Edge, Firefox or Safari.";
  tell(`${error.message.replace(/\.?$/, ".")} ${wanted}`, true);
});
