// @ts-check
/** The runner of models on the processor: kernels are in one module of WebAssembly, with its vectors of 128 bits. */

import {
  alignUp, ARENA, arrayOf, bytesOf, CONSTANT, count, declared, fetched, fixedSizes, INIT, INPUT, LITERAL, OUTPUT, POOL, Sizes,
  SPARE, timingsOf, XyntraError,
} from "./xyntra-web.js";

/** @typedef {import("./xyntra-web.js").Plan} Plan */
/** @typedef {import("./xyntra-web.js").Part} Part */
/** @typedef {import("./xyntra-web.js").Step} Step */
/** @typedef {import("./xyntra-web.js").Tensor} Tensor */
/** @typedef {import("./xyntra-web.js").Constants} Constants */
/** @typedef {import("./xyntra-web.js").Found} Found */

/** What kernels call that is no instruction. Functions are computed in double precision, rounded when it is handed back. */
const MATH = Object.fromEntries(
  [
    "exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "cbrt", "pow",
  ].map((name) => [`${name}f`, /** @type {any} */ (Math)[name]]),
);
MATH.sched_yield = () => 0; // there is one thread
MATH.exp2f = (/** @type {number} */ x) => 2 ** x;
MATH.fmodf = (/** @type {number} */ x, /** @type {number} */ y) => x % y;
MATH.roundf = (/** @type {number} */ x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5);

export class WasmRunner {
  /** @param {Plan} plan @param {Part} part @param {URL} base @param {Constants} constants */
  static async create(plan, part, base, constants) {
    if (!globalThis.WebAssembly) throw new XyntraError("this browser has no WebAssembly");
    const code = await (await fetched(new URL(/** @type {string} */ (part.module), base))).arrayBuffer();
    const { instance } = await WebAssembly.instantiate(code, { env: MATH });
    const runner = new WasmRunner(plan, part, instance, constants);
    await runner.initialise(0);
    return runner;
  }

  /** @param {Plan} plan @param {Part} part @param {WebAssembly.Instance} instance @param {Constants} constants */
  constructor(plan, part, instance, constants) {
    this.plan = plan;
    this.part = part;
    this.constants = constants;
    this.sizes = new Sizes(part, 64);
    this.device = "the processor, one thread";
    this.exported = /** @type {any} */ (instance.exports);
    /** @type {WebAssembly.Memory} */ this.memory = this.exported.memory;
    const steps = part.alternatives.flatMap((one) => [...one.init, ...one.run]);
    this.table = alignUp(this.exported.__heap_base.value, 64); // buffers of a call, then its parameters
    this.numbers = this.table + alignUp(4 * Math.max(1, ...steps.map((step) => step.buffers.length)), 64);
    this.top = this.numbers + alignUp(8 * Math.max(1, ...steps.map((step) => step.params.length)), 64); // of what is kept
    /** Addresses of what init steps have made, by alternative and buffer. @type {number[][]} */ this.fixed = [];
    /** @type {{step: Step, addresses: number[], params: bigint[], units: number}[]} */ this.calls = [];
  }

  /** Addresses of parts of so many bytes from `from` on, and one behind them. @param {number} from @param {number[]} sizes */
  lay(from, sizes) {
    const at = sizes.map((bytes) => {
      const here = from;
      from = alignUp(from + bytes + SPARE, 64);
      return here;
    });
    const pages = Math.ceil((from - this.memory.buffer.byteLength) / 65536);
    if (pages > 0) {
      try {
        this.memory.grow(pages);
      } catch {
        throw new XyntraError(`the browser has no ${(from / 2 ** 20).toFixed()} MiB for WebAssembly`);
      }
    }
    return { at, end: from };
  }

  /** The weights of an alternative, packed. @param {number} number */
  async initialise(number) {
    if (this.fixed[number]) return;
    const plan = this.part.alternatives[number], size = fixedSizes(plan), constant = await this.constants();
    const sorts = (/** @type {number[]} */ kinds) => plan.buffers.flatMap(([kind], b) => (kinds.includes(kind) ? [b] : []));
    const data = (/** @type {number} */ b) => {
      const [kind, what] = plan.buffers[b];
      return kind === CONSTANT || kind === LITERAL ? constant(what) : undefined;
    };
    const kept = sorts([POOL, LITERAL]), passing = sorts([CONSTANT, INIT]);
    const bytes = (/** @type {number} */ b) => data(b)?.length ?? size(plan.buffers[b][1]);
    const stay = this.lay(this.top, kept.map(bytes)), go = this.lay(stay.end, passing.map(bytes));
    /** @type {number[]} */ const at = [];
    kept.forEach((b, i) => (at[b] = stay.at[i]));
    passing.forEach((b, i) => (at[b] = go.at[i]));
    for (const b of [...kept, ...passing]) new Uint8Array(this.memory.buffer).set(data(b) ?? [], at[b]);
    for (const step of plan.init) {
      const addresses = step.buffers.map(([b, offset]) => at[b] + (offset === undefined ? 0 : size(offset)));
      this.call(step, addresses, step.params.map((param) => BigInt(size(param))), size(step.units));
    }
    this.top = stay.end;
    this.fixed[number] = at;
  }

  /** @param {Step} step @param {number[]} addresses @param {bigint[]} params @param {number} units */
  call(step, addresses, params, units) {
    if (units === 0) return;
    new Uint32Array(this.memory.buffer, this.table, addresses.length).set(addresses);
    new BigInt64Array(this.memory.buffer, this.numbers, params.length).set(params);
    this.exported[this.part.kernels[step.kernel]](this.table, this.numbers, 0n, BigInt(units));
  }

  /** Memory and calls for the shapes at hand. @param {Tensor[]} tensors */
  arrange(tensors) {
    const { sizes, part } = this, { plan } = sizes, fixed = this.fixed[sizes.number];
    const bytes = sizes.outputs.map((dims, i) => count(dims) * declared(this.plan.outputs, part.outputs[i]).bytes);
    const { at } = this.lay(this.top, [sizes.arenaBytes, ...tensors.map(({ data }) => data.byteLength), ...bytes]);
    this.arena = at[0];
    this.inputs = at.slice(1, 1 + tensors.length);
    this.outputs = at.slice(1 + tensors.length);
    const base = plan.buffers.map(([kind, what], b) => {
      if (kind === INPUT) return /** @type {number[]} */ (this.inputs)[what];
      if (kind === OUTPUT) return /** @type {number[]} */ (this.outputs)[what];
      return kind === ARENA ? at[0] + sizes.at[b] : fixed[b];
    });
    this.calls = plan.run.map((step) => ({
      step,
      addresses: step.buffers.map(([b, offset]) => base[b] + (offset === undefined ? 0 : sizes.size(offset))),
      params: step.params.map((size) => sizes.exact(size)),
      units: sizes.size(step.units),
    }));
    this.loops = (plan.loops ?? []).map(([first, last, images, strides]) => ({
      first,
      last,
      images: sizes.size(images),
      strides: new Map(strides.map(([b, stride]) => [b, sizes.size(stride)])),
    }));
  }

  /** @param {Tensor[]} tensors @param {boolean} timed @returns {Promise<Found>} */
  async run(tensors, timed) {
    const { sizes, part } = this;
    if (sizes.prepare(tensors)) {
      const { key } = sizes;
      await this.initialise(sizes.number);
      sizes.key = "";
      this.arrange(tensors);
      sizes.key = key;
    }
    const inputs = /** @type {number[]} */ (this.inputs), outputs = /** @type {number[]} */ (this.outputs);
    const { calls } = this, { faults = [], buffers } = sizes.plan;
    tensors.forEach(({ data }, i) => new Uint8Array(this.memory.buffer).set(bytesOf(data), inputs[i]));
    const ms = calls.map(() => 0);
    const one = (/** @type {number} */ i, /** @type {(b: number) => number} */ moved) => {
      const { step, addresses, params, units } = calls[i];
      const begun = performance.now();
      this.call(step, addresses.map((address, k) => address + moved(step.buffers[k][0])), params, units);
      ms[i] += performance.now() - begun;
    };
    for (let i = 0; i < calls.length; i++) {
      const loop = this.loops?.find(({ first }) => first === i);
      if (!loop) {
        one(i, () => 0);
        continue;
      }
      for (let image = 0; image < loop.images; image++)
        for (let k = loop.first; k <= loop.last; k++) one(k, (b) => image * (loop.strides.get(b) ?? 0));
      i = loop.last;
    }
    for (const [b, message] of faults) {
      const first = /** @type {number} */ (this.arena) + sizes.at[b];
      if (new Uint8Array(this.memory.buffer, first, sizes.size(buffers[b][1])).some(Boolean)) sizes.refuse(message);
    }
    const results = sizes.outputs.map((dims, i) => {
      return { data: arrayOf(declared(this.plan.outputs, part.outputs[i]), this.memory.buffer, outputs[i], dims), dims };
    });
    return { results, timings: timed ? timingsOf(part, calls, ms) : null };
  }

  close() {}
}
