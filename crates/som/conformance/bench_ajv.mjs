// How long ajv takes for what the example `bench_som` measures: the same schemas, the same messages.
//
// Usage: node crates/som/conformance/bench_ajv.mjs DIR   (DIR is where `npm install ajv ajv-formats` was run)
//
// Formats are asserted, and in full, as ours are: its mode `fast` takes dates that are in no calendar.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const RUNS = 400;
const EACH = 100;
const WARM_UP = 100_000;

const require = createRequire(join(resolve(process.argv[2] ?? "."), "package.json"));
const Ajv = require("ajv/dist/2020").default;
const addFormats = require("ajv-formats").default;

const json = (path) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url)));
const ajv = new Ajv({ strict: false });
addFormats(ajv);
const schema = (name) => ajv.compile(json(`schemas/${name}.schema.json`));
const envelope = schema("envelope");

for (const [name, example, payload] of [
  ["snapshot", "story.context-full", schema("story-context")],
  ["event", "link.committed", schema("link-event")],
]) {
  const message = json(`tests/examples/${example}.json`);
  const valid = () => envelope(message) && payload(message.payload);
  // Counted, so that no check can be left out as one whose answer nobody wants.
  let count = 0;
  const repeat = (times) => {
    for (let i = 0; i < times; i++) count += valid();
  };
  repeat(WARM_UP);
  const times = Array.from({ length: RUNS }, () => {
    const start = process.hrtime.bigint();
    repeat(EACH);
    return Number(process.hrtime.bigint() - start) / EACH;
  }).sort((a, b) => a - b);
  const median = Math.round(times[RUNS / 2]);
  console.log(`${name}, valid: ${count === WARM_UP + RUNS * EACH}: ${median / 1000}µs`);
}
