// @ts-check
/**
 * Models that `xyntra web` has written, in a browser: by WebGPU, else by WebAssembly (docs/web.md).
 *
 *     import { load } from "./xyntra-web.js";
 *     const model = await load("plan.json");
 *     const { y } = await model.run({ x: new Float32Array(64) });      // y.data, y.dims
 */

/** @typedef {Float32Array|Uint8Array|Int8Array|Uint16Array|Int16Array|Int32Array|BigInt64Array} Data */
/** @typedef {{data: Data, dims: number[]}} Tensor */
/** @typedef {{name: string, type: number, bytes: number, shape: (number|string|null)[]|null}} Declared */
/** @typedef {{label: string, kernel: string, ms: number}} Timing */
/** @typedef {{kernel: number, label: string, buffers: number[][], params: number[], units: number}} Step */
/** @typedef {{buffer: GPUBuffer, offset: number, size: number}} Binding */
/** symbols: kind (0: a dimension, 1: an element), input, index; loops: first and last step, images, [buffer, stride] each
 * @typedef {{symbols: number[][], sizes: (number|string)[][], guards: number[], checks: [number, string][], outputs: number[][],
 *   buffers: number[][], init: Step[], run: Step[], faults?: [number, string][],
 *   loops?: [number, number, number, number[][]][]}} Alternative */
/** @typedef {{kernels: string[], module?: string, inputs: string[], ranks: number[], outputs: string[],
 *   alternatives: Alternative[]}} Part  of a plan, for one target */
/** @typedef {{file: string, bytes: number, digest: string, parts: [number, number][]}} Weights */
/** @typedef {{format: number, model: string, inputs: Declared[], outputs: Declared[], weights: Weights,
 *   targets: Record<string, Part>}} Plan */
/** @typedef {{results: Tensor[], timings: Timing[]|null}} Found */
/** @typedef {() => Promise<(part: number) => Uint8Array>} Constants */
/** @typedef {{part: Part, device: string,
 *   run: (tensors: Tensor[], timed: boolean) => Promise<Found>, close: () => void}} Runner */

const FORMAT = 1;
export const INPUT = 0, OUTPUT = 1, CONSTANT = 2, POOL = 3, ARENA = 4, LITERAL = 5, INIT = 6;
export const SPARE = 64; // bytes behind buffers
const CHUNK = 32 << 20; // of weights
const LEAST = -(2n ** 63n), MOST = 2n ** 63n - 1n;
/** Arrays by ONNX's number of the element type; halves are given as their bits. @type {Record<number, any>} */
const ARRAYS = {
  1: Float32Array, 2: Uint8Array, 3: Int8Array, 4: Uint16Array, 5: Int16Array, 6: Int32Array, 7: BigInt64Array, 9: Uint8Array,
  10: Uint16Array, 16: Uint16Array,
};

export const alignUp = (/** @type {number} */ n, /** @type {number} */ to) => Math.ceil(n / to) * to;
export const count = (/** @type {readonly number[]} */ dims) => dims.reduce((a, b) => a * b, 1);

export class XyntraError extends Error {
  name = "XyntraError";
}

// -- sizes

/**
 * The values of a plan's integer expressions (docs/plan-format.md). What does not fit into 64 bits is `spoiled`.
 * @param {readonly (readonly (number|string)[])[]} rows
 * @param {readonly bigint[]} symbols
 * @returns {{values: bigint[], spoiled: boolean[]}}
 */
export function evaluate(rows, symbols) {
  /** @type {bigint[]} */ const values = [];
  /** @type {boolean[]} */ const spoiled = [];
  for (const [op, i, j, k] of rows) {
    if (op === 0 || op === 1) {
      values.push(op === 0 ? BigInt(i) : symbols[Number(i)]);
      spoiled.push(false);
      continue;
    }
    const a = values[Number(i)], b = j === undefined ? 0n : values[Number(j)];
    const badA = spoiled[Number(i)], badB = j !== undefined && spoiled[Number(j)];
    let r = 0n, bad = badA || badB;
    switch (op) {
      case 2: r = a + b; break;
      case 3: r = a - b; break;
      case 4: r = a * b; break;
      case 5: r = floorDivide(a, b); break;
      case 6: r = -floorDivide(-a, b); break;
      case 7: r = a - floorDivide(a, b) * b; if (b === 0n) r = 0n; break;
      case 8: r = a < b ? a : b; break;
      case 9: r = a > b ? a : b; break;
      case 10: r = a === b ? 1n : 0n; break;
      case 11: r = a !== b ? 1n : 0n; break;
      case 12: r = a < b ? 1n : 0n; break;
      case 13: r = a <= b ? 1n : 0n; break;
      case 14: r = a && b ? 1n : 0n; bad = (badA && badB) || (badA && b !== 0n) || (badB && a !== 0n); break;
      case 15: r = a || b ? 1n : 0n; bad = (badA && badB) || (badA && b === 0n) || (badB && a === 0n); break;
      case 16: r = a ? 0n : 1n; break;
      case 17: r = a ? b : values[Number(k)]; bad = badA || (a ? badB : spoiled[Number(k)]); break;
      default: throw new XyntraError(`plan.json has an unknown operation ${op}`);
    }
    const fits = r >= LEAST && r <= MOST;
    values.push(fits ? r : r < 0n || op === 5 || op === 6 ? LEAST : MOST);
    spoiled.push(bad || !fits);
  }
  return { values, spoiled };
}

/** @param {bigint} a @param {bigint} b */
function floorDivide(a, b) {
  if (b === 0n) return 0n;
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

/** A plan at the shapes of a run. */
export class Sizes {
  /** @param {Part} part @param {number} alignment  of temporaries */
  constructor(part, alignment) {
    this.part = part;
    this.alignment = alignment;
    this.key = "";
    this.number = -1;
    /** @type {Alternative} */ this.plan = part.alternatives[0];
    /** @type {bigint[]} */ this.values = [];
    /** @type {boolean[]} */ this.spoiled = [];
    /** @type {number[][]} */ this.outputs = [];
    /** Of temporaries. @type {number[]} */ this.at = [];
    /** @type {number[]} */ this.room = [];
    this.arenaBytes = 0;
  }

  /** Whether anything changed. @param {Tensor[]} tensors */
  prepare(tensors) {
    const { part } = this;
    const read = part.alternatives.flatMap((plan) => plan.symbols.filter(([kind]) => kind === 1));
    const elements = read.map(([, input, index]) => tensors[input].data[index]);
    this.shapes = tensors.map((tensor, i) => `${part.inputs[i]} [${tensor.dims}]`).join(", ");
    const key = `${this.shapes} ${elements}`;
    if (key === this.key) return false;
    this.key = "";
    tensors.forEach(({ dims }, i) => {
      if (part.ranks[i] >= 0 && dims.length !== part.ranks[i]) this.refuse(`input '${part.inputs[i]}' has ${part.ranks[i]} axes`);
    });
    this.number = part.alternatives.findIndex((plan) => this.applies(plan, tensors));
    if (this.number < 0) this.refuse("there is no plan for these shapes");
    const plan = (this.plan = part.alternatives[this.number]);
    for (const [size, message] of plan.checks) if (this.exact(size) === 0n) this.refuse(message);
    this.outputs = plan.outputs.map((dims) => dims.map((size) => this.size(size)));
    for (const step of plan.run) this.size(step.units);
    this.placeArena();
    this.key = key;
    return true;
  }

  /** @param {string} what @returns {never} */
  refuse(what) {
    throw new XyntraError(`${what} (${this.shapes})`);
  }

  /** @param {Alternative} plan @param {Tensor[]} tensors */
  applies(plan, tensors) {
    const symbols = [];
    for (const [kind, input, index] of plan.symbols) {
      const found = kind === 0 ? tensors[input].dims[index] : tensors[input].data[index];
      if (found === undefined) return false;
      symbols.push(BigInt(found));
    }
    ({ values: this.values, spoiled: this.spoiled } = evaluate(plan.sizes, symbols));
    return plan.guards.every((guard) => this.exact(guard) !== 0n);
  }

  /** @param {number} size */
  exact(size) {
    return this.spoiled[size] ? this.refuse("a size is too large") : this.values[size];
  }

  /** Bytes, extents, counts. @param {number} size */
  size(size) {
    const value = Number(this.exact(size));
    if (value < 0 || !Number.isSafeInteger(value)) this.refuse(value < 0 ? "a size would be negative" : "a size is too large");
    return value;
  }

  /** Big ones first, each at the lowest place that is free while it lives. */
  placeArena() {
    const { buffers } = this.plan;
    this.at = [];
    this.room = [];
    const order = buffers.flatMap(([kind], b) => (kind === ARENA ? [b] : []));
    for (const b of order) this.room[b] = alignUp(this.size(buffers[b][1]) + SPARE, this.alignment);
    order.sort((a, b) => this.room[b] - this.room[a] || a - b);
    /** @type {number[]} */ const placed = []; // by address
    this.arenaBytes = 0;
    for (const b of order) {
      let at = 0;
      for (const other of placed) {
        if (buffers[other][3] < buffers[b][2] || buffers[b][3] < buffers[other][2]) continue;
        if (at + this.room[b] <= this.at[other]) break;
        at = Math.max(at, this.at[other] + this.room[other]);
      }
      this.at[b] = at;
      this.arenaBytes = Math.max(this.arenaBytes, at + this.room[b]);
      placed.push(b);
      placed.sort((x, y) => this.at[x] - this.at[y]);
    }
  }
}

/** Sizes that no input decides about. @param {Alternative} plan */
export function fixedSizes(plan) {
  const { values } = evaluate(plan.sizes, plan.symbols.map(() => 0n));
  return (/** @type {number} */ size) => Number(values[size]);
}

// -- tensors

/** @param {Declared} declared @param {any} given  a tensor, an array of any kind, or a number */
function tensorOf(declared, given) {
  const { name, shape } = declared;
  if (given === undefined) throw new XyntraError(`input '${name}' is missing`);
  const raw = ArrayBuffer.isView(given) || Array.isArray(given) ? given : typeof given === "object" ? given.data : [given];
  const type = ARRAYS[declared.type];
  let data = raw;
  if (!(raw instanceof type)) {
    const flat = /** @type {any[]} */ (Array.isArray(raw) ? raw.flat(Infinity) : Array.from(raw));
    data = type.from(type === BigInt64Array ? flat.map(BigInt) : flat.map(Number));
  }
  let dims = given.dims?.map(Number);
  if (dims === undefined) {
    const sizes = shape?.filter((size) => typeof size === "number");
    if (!shape || !sizes || shape.length > sizes.length + 1) throw new XyntraError(`input '${name}' needs {data, dims}`);
    dims = shape.map((size) => (typeof size === "number" ? size : data.length / count(/** @type {number[]} */ (sizes))));
  }
  if (count(dims) !== data.length) throw new XyntraError(`input '${name}' has ${data.length} elements, which are not [${dims}]`);
  return { data, dims };
}

/** @param {Declared} declared @param {ArrayBuffer} memory @param {number} at @param {number[]} dims @returns {Data} */
export const arrayOf = ({ type, bytes }, memory, at, dims) => new ARRAYS[type](memory.slice(at, at + count(dims) * bytes));
/** @param {Part} part @param {{step: Step}[]} calls @param {number[]} ms @returns {Timing[]} */
export const timingsOf = (part, calls, ms) =>
  calls.map(({ step }, i) => ({ label: step.label, kernel: part.kernels[step.kernel], ms: ms[i] }));
export const bytesOf = (/** @type {Data} */ data) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

// -- WebGPU

/** @typedef {{step: Step, group: GPUBindGroup, units: number, copies: [Binding, Binding][]}} Call */
/** @type {GPUErrorFilter[]} */ const ERRORS = ["out-of-memory", "validation", "internal"];
const WORKED_ON = 0x8c; // STORAGE | COPY_SRC | COPY_DST, where WebGPU may be missing

class GpuRunner {
  /** @param {Plan} plan @param {Part} part @param {URL} base @param {Constants} constants */
  static async create(plan, part, base, constants) {
    if (!globalThis.navigator?.gpu) throw new XyntraError("this browser has no WebGPU");
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) throw new XyntraError("WebGPU finds no GPU");
    const { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage } = adapter.limits;
    const requiredLimits = { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage };
    const timed = adapter.features.has("timestamp-query");
    const device = await adapter.requestDevice({ requiredLimits, requiredFeatures: timed ? ["timestamp-query"] : [] });
    const runner = new GpuRunner(plan, part, device, constants);
    const { vendor, architecture, description } = adapter.info;
    runner.device = [vendor, architecture, description].filter(Boolean).join(" ") || "unnamed";
    runner.timed = timed;
    await runner.compile(base);
    await runner.initialise(0);
    return runner;
  }

  /** @param {Plan} plan @param {Part} part @param {GPUDevice} gpu @param {Constants} constants */
  constructor(plan, part, gpu, constants) {
    this.plan = plan;
    this.part = part;
    this.gpu = gpu;
    this.constants = constants;
    this.sizes = new Sizes(part, 256);
    this.device = "";
    this.timed = false;
    this.lost = "";
    /** @type {GPUComputePipeline[]} */ this.pipelines = [];
    /** @type {GPUBindGroupLayout[]} */ this.layouts = []; // by number of buffers
    /** What init steps have made, by alternative and buffer. @type {GPUBuffer[][]} */ this.fixed = [];
    /** @type {Record<string, GPUBuffer>} */ this.kept = {};
    /** @type {GPUBuffer[]} */ this.inputs = [];
    /** @type {GPUBuffer[]} */ this.outputs = [];
    /** @type {Call[]} */ this.calls = [];
    gpu.lost.then(({ reason, message }) => (this.lost = `the GPU was lost (${reason || "unknown"}): ${message}`));
  }

  /** @param {URL} base */
  async compile(base) {
    const { gpu, part } = this;
    const buffers = part.kernels.map(() => 0);
    for (const { init, run } of part.alternatives)
      for (const step of [...init, ...run]) buffers[step.kernel] = step.buffers.length;
    const texts = await Promise.all(part.kernels.map(async (file) => (await fetched(new URL(file, base))).text()));
    const pipelines = part.kernels.map((label, i) => () => {
      const module = gpu.createShaderModule({ label, code: texts[i] });
      const layout = gpu.createPipelineLayout({ bindGroupLayouts: [this.layout(buffers[i])] });
      return gpu.createComputePipelineAsync({ label, layout, compute: { module } });
    });
    this.pipelines = await this.checked(() => Promise.all(pipelines.map((begin) => begin())));
  }

  /** @param {number} buffers */
  layout(buffers) {
    return (this.layouts[buffers] ??= this.gpu.createBindGroupLayout({
      entries: Array.from({ length: buffers + 1 }, (_, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type: /** @type {GPUBufferBindingType} */ (binding < buffers ? "storage" : "uniform") },
      })),
    }));
  }

  /** WebGPU's errors in `work` become errors.
   * @template T @param {() => T|Promise<T>} work @returns {Promise<T>} */
  async checked(work) {
    if (this.lost) throw new XyntraError(this.lost);
    for (const kind of ERRORS) this.gpu.pushErrorScope(kind);
    /** @type {any} */ let result, failed;
    try {
      result = work();
    } catch (error) {
      failed = error;
    }
    const settled = Promise.resolve(result).catch((error) => void (failed ??= error));
    for (const found of await Promise.all(ERRORS.map(() => this.gpu.popErrorScope()))) {
      if (found) failed = new XyntraError(`WebGPU: ${found.message}`);
    }
    result = await settled;
    if (failed) throw this.lost ? new XyntraError(this.lost) : failed;
    return result;
  }

  /** @param {number} bytes @param {number} usage @param {Uint8Array} [data] */
  buffer(bytes, usage, data) {
    const size = alignUp(bytes + SPARE, 4);
    const made = this.gpu.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_DST, mappedAtCreation: data !== undefined });
    if (data) {
      new Uint8Array(made.getMappedRange()).set(data);
      made.unmap();
    }
    return made;
  }

  /** A buffer of all runs, anew when too small.
   * @param {string} name @param {number} bytes @param {number} usage */
  keep(name, bytes, usage) {
    if (!this.kept[name] || this.kept[name].size < bytes) {
      this.kept[name]?.destroy();
      this.kept[name] = this.buffer(bytes, usage);
    }
    return this.kept[name];
  }

  /** The weights of an alternative, packed. @param {number} number */
  async initialise(number) {
    if (this.fixed[number]) return;
    const plan = this.part.alternatives[number], size = fixedSizes(plan), constant = await this.constants();
    /** @type {GPUBuffer[]} */ const made = [];
    /** @type {number[]} */ const last = []; // use of a buffer
    plan.init.forEach((step, i) => step.buffers.forEach(([b]) => (last[b] = i)));
    const make = (/** @type {number} */ b) => {
      const [kind, what] = plan.buffers[b], data = kind === CONSTANT || kind === LITERAL ? constant(what) : undefined;
      made[b] ??= this.buffer(data ? data.length : size(what), WORKED_ON, data);
      return { buffer: made[b], offset: 0, size: made[b].size };
    };
    await this.checked(() => {
      plan.buffers.forEach(([kind], b) => kind === LITERAL && make(b));
      plan.init.forEach((step, i) => {
        const bindings = step.buffers.map(([b]) => make(b));
        const numbers = Int32Array.from([...step.params, step.units].map(size));
        const uniform = this.buffer(numbers.byteLength, GPUBufferUsage.UNIFORM, bytesOf(numbers));
        const parameters = { buffer: uniform, offset: 0, size: alignUp(numbers.byteLength, 16) };
        const encoder = this.gpu.createCommandEncoder(), pass = encoder.beginComputePass();
        this.dispatch(pass, this.call(step, bindings, parameters, size(step.units)));
        pass.end();
        this.gpu.queue.submit([encoder.finish()]);
        uniform.destroy();
        for (const [b] of step.buffers) {
          if (last[b] === i && plan.buffers[b][0] !== POOL && plan.buffers[b][0] !== LITERAL) made[b].destroy();
        }
      });
    });
    this.fixed[number] = made;
  }

  /** @param {Step} step @param {Binding[]} bindings @param {Binding} parameters @param {number} units
   * @param {[Binding, Binding][]} [copies]  that are made before it */
  call(step, bindings, parameters, units, copies = []) {
    const entries = [...bindings, parameters].map((resource, binding) => ({ binding, resource }));
    const group = this.gpu.createBindGroup({ layout: this.layout(bindings.length), entries });
    return { step, group, units, copies };
  }

  /** @param {GPUComputePassEncoder} pass @param {Call} call */
  dispatch(pass, { step, group, units }) {
    if (units === 0) return;
    const x = Math.min(units, 65535); // the most there is
    pass.setPipeline(this.pipelines[step.kernel]);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(x, Math.ceil(units / x));
  }

  /** Bindings for these shapes. @param {Tensor[]} tensors */
  arrange(tensors) {
    const { sizes } = this, { plan } = sizes;
    const whole = (/** @type {GPUBuffer} */ buffer) => ({ buffer, offset: 0, size: buffer.size });
    const arena = this.keep("arena", sizes.arenaBytes, WORKED_ON);
    this.inputs = tensors.map(({ data }, i) => this.keep(`input ${i}`, data.byteLength, WORKED_ON));
    this.outputs = this.outputBytes().map((bytes, i) => this.keep(`output ${i}`, bytes, WORKED_ON));
    const given = { [INPUT]: this.inputs, [OUTPUT]: this.outputs };
    const steps = plan.run.filter((step) => sizes.size(step.units) > 0);
    const stride = alignUp(4 * Math.max(1, ...steps.map((step) => step.params.length + 1)), 256);
    const uniforms = this.keep("uniforms", stride * steps.length, GPUBufferUsage.UNIFORM);
    const numbers = new Int32Array((stride * steps.length) / 4);
    const bindings = steps.map((step) =>
      step.buffers.map(([b]) => {
        const [kind, what] = plan.buffers[b];
        if (kind === INPUT || kind === OUTPUT) return whole(given[kind][what]);
        if (kind === ARENA) return { buffer: arena, offset: sizes.at[b], size: sizes.room[b] };
        return whole(this.fixed[sizes.number][b]);
      }),
    );
    // What is bound twice is only read.
    const twice = bindings.map((all) => all.filter((one, k) => all.some((other, l) => l > k && overlap(one, other))));
    const aside = Math.max(...twice.map((all) => all.reduce((sum, one) => sum + alignUp(one.size, 256), 0)), 0);
    const scratch = this.keep("aside", aside, WORKED_ON);
    this.calls = steps.map((step, i) => {
      [...step.params, step.units].forEach((size, k) => {
        const value = Number(sizes.exact(size));
        if (value !== (value | 0)) sizes.refuse(`step '${step.label}' needs a number of more than 32 bits`);
        numbers[(stride * i) / 4 + k] = value;
      });
      let at = 0;
      /** @type {[Binding, Binding][]} */ const copies = twice[i].map((from) => {
        const to = { buffer: scratch, offset: at, size: from.size };
        at += alignUp(from.size, 256);
        bindings[i][bindings[i].indexOf(from)] = to;
        return [from, to];
      });
      const parameters = { buffer: uniforms, offset: stride * i, size: alignUp(4 * (step.params.length + 1), 16) };
      return this.call(step, bindings[i], parameters, sizes.size(step.units), copies);
    });
    this.gpu.queue.writeBuffer(uniforms, 0, numbers);
  }

  outputBytes() {
    const { sizes, plan, part } = this;
    return sizes.outputs.map((dims, i) => alignUp(count(dims) * declared(plan.outputs, part.outputs[i]).bytes, 4));
  }

  /** @param {Tensor[]} tensors @param {boolean} timed @returns {Promise<Found>} */
  async run(tensors, timed) {
    const { gpu, sizes, part } = this;
    if (sizes.prepare(tensors)) {
      try {
        await this.initialise(sizes.number);
        await this.checked(() => this.arrange(tensors));
      } catch (error) {
        sizes.key = "";
        throw error;
      }
    }
    const bytes = this.outputBytes();
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const staging = gpu.createBuffer({ size: bytes.reduce((a, b) => a + b, 4), usage });
    const times = timed && this.timed && this.calls.length ? this.timestamps(this.calls.length) : null;
    try {
      await this.checked(() => {
        tensors.forEach(({ data }, i) => this.write(this.inputs[i], bytesOf(data)));
        const encoder = gpu.createCommandEncoder();
        /** @type {GPUComputePassEncoder|undefined} */ let pass;
        this.calls.forEach((call, i) => {
          if (times || call.copies.length) {
            pass?.end();
            pass = undefined;
          }
          for (const [from, to] of call.copies)
            encoder.copyBufferToBuffer(from.buffer, from.offset, to.buffer, to.offset, from.size);
          pass ??= encoder.beginComputePass(times?.writes(i));
          this.dispatch(pass, call);
        });
        /** @type {GPUComputePassEncoder|undefined} */ (pass)?.end();
        let at = 0;
        bytes.forEach((n, i) => {
          if (n) encoder.copyBufferToBuffer(this.outputs[i], 0, staging, at, n);
          at += n;
        });
        times?.resolve(encoder);
        gpu.queue.submit([encoder.finish()]);
        return staging.mapAsync(GPUMapMode.READ);
      });
      const all = staging.getMappedRange();
      let at = 0;
      const results = sizes.outputs.map((dims, i) => {
        const data = arrayOf(declared(this.plan.outputs, part.outputs[i]), all, at, dims);
        at += bytes[i];
        return { data, dims };
      });
      return { results, timings: times && timingsOf(part, this.calls, await times.ms()) };
    } finally {
      staging.destroy();
      times?.free();
    }
  }

  /** @param {GPUBuffer} to @param {Uint8Array} data */
  write(to, data) {
    const words = new Uint8Array(alignUp(data.length, 4));
    words.set(data);
    this.gpu.queue.writeBuffer(to, 0, words);
  }

  /** @param {number} steps */
  timestamps(steps) {
    const querySet = this.gpu.createQuerySet({ type: "timestamp", count: 2 * steps });
    const make = (/** @type {number} */ usage) => this.gpu.createBuffer({ size: 16 * steps, usage });
    const resolved = make(GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC);
    const mapped = make(GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
    return {
      writes: (/** @type {number} */ i) => ({
        timestampWrites: { querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1 },
      }),
      resolve: (/** @type {GPUCommandEncoder} */ encoder) => {
        encoder.resolveQuerySet(querySet, 0, 2 * steps, resolved, 0);
        encoder.copyBufferToBuffer(resolved, 0, mapped, 0, 16 * steps);
      },
      ms: async () => {
        await mapped.mapAsync(GPUMapMode.READ);
        const ns = new BigInt64Array(mapped.getMappedRange());
        return Array.from({ length: steps }, (_, i) => Number(ns[2 * i + 1] - ns[2 * i]) / 1e6);
      },
      free: () => [querySet, resolved, mapped].forEach((one) => one.destroy()),
    };
  }

  close() {
    this.gpu.destroy();
  }
}

const overlap = (/** @type {Binding} */ a, /** @type {Binding} */ b) =>
  a.buffer === b.buffer && a.offset < b.offset + b.size && b.offset < a.offset + a.size;

/** @param {Declared[]} all @param {string} name */
export function declared(all, name) {
  const found = all.find((one) => one.name === name);
  if (!found) throw new XyntraError(`plan.json does not tell of '${name}'`);
  return found;
}

// -- loading

/** @param {URL} url @param {RequestInit} [options] */
export async function fetched(url, options) {
  const response = await fetch(url, options);
  if (!response.ok) throw new XyntraError(`${url} cannot be fetched: ${response.status} ${response.statusText}`);
  return response;
}

/** The browser's cache, on https and localhost, without older weights. @param {URL} url */
async function cacheOf(url) {
  const cache = await globalThis.caches?.open("xyntra-web").catch(() => undefined);
  for (const { url: old } of (await cache?.keys()) ?? []) {
    if (old.startsWith(`${url.origin}${url.pathname}?`) && !old.startsWith(url.href)) await cache?.delete(old);
  }
  return cache;
}

/** @param {URL} base @param {Weights} weights @param {(done: number, all: number) => void} [progress] */
async function fetchWeights(base, { file, bytes, digest }, progress) {
  const url = new URL(file, base);
  url.searchParams.set("v", digest);
  const cache = await cacheOf(url), data = new Uint8Array(bytes);
  for (let from = 0; from < bytes; from += CHUNK) {
    const end = Math.min(bytes, from + CHUNK), key = `${url.href}&from=${from}`;
    let part = await (await cache?.match(key))?.arrayBuffer();
    if (!part) {
      const response = await fetched(url, bytes > CHUNK ? { headers: { Range: `bytes=${from}-${end - 1}` } } : {});
      part = await response.arrayBuffer();
      if (part.byteLength === bytes) part = part.slice(from, end); // without ranges
      await cache?.put(key, new Response(part)).catch(() => undefined); // it may be full
    }
    if (part.byteLength !== end - from) throw new XyntraError(`${url} is not the file of this plan.json`);
    data.set(new Uint8Array(part), from);
    progress?.(end, bytes);
  }
  return data;
}

/**
 * A model that is ready to run. `target` is "webgpu" or "wasm", `device` what it runs on, `skipped` why it is on no better one.
 */
export class Model {
  /** @param {Plan} plan @param {string} target @param {Runner} runner @param {string[]} skipped */
  constructor(plan, target, runner, skipped) {
    this.name = plan.model;
    this.inputs = plan.inputs;
    this.outputs = plan.outputs;
    this.target = target;
    this.skipped = skipped;
    this.runner = runner;
    /** Of the last run that asked for them. @type {Timing[]|null} */ this.timings = null;
    /** @type {Promise<unknown>} */ this.last = Promise.resolve();
  }

  get device() {
    return this.runner.device;
  }

  /**
   * @param {Record<string, any>} feeds  by name: {data, dims}, or an array where the model leaves at most one size open
   * @param {{timings?: boolean}} [options]
   * @returns {Promise<Record<string, Tensor>>}
   */
  run(feeds, { timings = false } = {}) {
    const { part } = this.runner;
    const done = this.last.then(async () => {
      const tensors = part.inputs.map((name) => tensorOf(declared(this.inputs, name), feeds[name]));
      const found = await this.runner.run(tensors, timings);
      if (timings) this.timings = found.timings;
      return Object.fromEntries(part.outputs.map((name, i) => [name, found.results[i]]));
    });
    this.last = done.catch(() => undefined); // one run after the other
    return done;
  }

  close() {
    this.runner.close();
  }
}

/** @type {[string, () => Promise<{create: (plan: Plan, part: Part, base: URL, constants: Constants) => Promise<Runner>}>][]} */
const RUNNERS = [
  ["webgpu", async () => GpuRunner],
  ["wasm", async () => (await import("./xyntra-wasm.js")).WasmRunner], // only where needed
];

/**
 * @param {string|URL} url  of plan.json
 * @param {{target?: "auto"|"webgpu"|"wasm", progress?: (done: number, all: number) => void}} [options]
 * @returns {Promise<Model>}
 */
export async function load(url, { target = "auto", progress } = {}) {
  const base = new URL(url, globalThis.document?.baseURI ?? import.meta.url);
  /** @type {Plan} */ const plan = await (await fetched(base, { cache: "no-cache" })).json();
  if (plan.format !== FORMAT) throw new XyntraError(`plan.json is of format ${plan.format}, this is for ${FORMAT}`);
  /** @type {Promise<Uint8Array>|undefined} */ let loading;
  const constants = async () => {
    const data = await (loading ??= fetchWeights(base, plan.weights, progress));
    return (/** @type {number} */ part) => {
      const [from, bytes] = plan.weights.parts[part];
      return data.subarray(from, from + bytes);
    };
  };
  const skipped = [];
  for (const [name, runners] of RUNNERS) {
    if (target !== "auto" && target !== name) continue;
    if (!plan.targets[name]) {
      skipped.push(`the site has no kernels for ${name}`);
      continue;
    }
    try {
      const runner = await (await runners()).create(plan, plan.targets[name], base, constants);
      loading = undefined; // memory; the cache has them
      return new Model(plan, name, runner, skipped);
    } catch (error) {
      skipped.push(error instanceof Error ? error.message : String(error));
    }
  }
  throw new XyntraError(`The model cannot run here: ${skipped.join("; ")}`);
}
