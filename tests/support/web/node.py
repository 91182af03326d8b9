"""The JavaScript of pages without a browser: Node runs it, where it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from xyntra_ep.web.site import PAGES

Array = NDArray[Any]
_RUN = """
const { load } = await import(given.runtime);
const model = await load(given.site + "plan.json", { target: "wasm" });
const runs = [];
for (const feeds of given.feeds) {
  const number = (x) => (typeof x !== "string" ? x : /^-?\\d+$/.test(x) ? BigInt(x) : Number(x));
  const big = (tensor) => ({ ...tensor, data: tensor.data.map(number) });
  try {
    const found = await model.run(Object.fromEntries(Object.entries(feeds).map(([name, tensor]) => [name, big(tensor)])));
    const plain = (data) => Array.from(data, (x) => (typeof x === "bigint" ? String(x) : Number.isFinite(x) ? x : String(x)));
    runs.push(Object.fromEntries(Object.entries(found).map(([name, { data, dims }]) => [name, { data: plain(data), dims }])));
  } catch (error) {
    runs.push({ error: `${error.name}: ${error.message}` });
  }
}
answer(runs);
"""


def evaluated(script: str, given: Mapping[str, Any]) -> Any:
    """What an ES module calls `answer` with; it sees ``given``, and the runtime of pages as `given.runtime`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    data = json.dumps({"runtime": (PAGES / "xyntra-web.js").as_uri(), **given})
    text = f"""
        import {{ readFileSync, writeSync }} from "node:fs";
        const given = JSON.parse(readFileSync(0, "utf8"));
        const answer = (value) => {{
          const data = Buffer.from(JSON.stringify(value));
          for (let at = 0; at < data.length; at += writeSync(1, data, at));
        }};
        {script}
    """
    command = [node, "--input-type=module", "--eval", textwrap.dedent(text)]
    done = subprocess.run(command, input=data, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run_site(site: str, feeds: list[Mapping[str, Array]]) -> list[Any]:
    """Each run's outputs by name, or the words of its error. ``site``: an address with a slash at the end."""
    return [_outputs(run) for run in evaluated(_RUN, {"site": site, "feeds": [fed(one) for one in feeds]})]


def fed(feeds: Mapping[str, Array]) -> dict[str, Any]:
    """Tensors as JSON has them; integers of 64 bits as text, and what JSON has no numbers for."""
    special = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}

    return {
        name: {
            "data": [str(x) if array.dtype == np.int64 else special.get(str(x), x) for x in array.ravel().tolist()],
            "dims": list(array.shape),
        }
        for name, array in feeds.items()
    }


def _outputs(run: Mapping[str, Any]) -> Any:
    if "error" in run:
        return run["error"]
    return {name: np.array([float(x) for x in one["data"]]).reshape(one["dims"]) for name, one in run.items()}
