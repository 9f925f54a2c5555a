// Writes the page's files into the folder that the first argument names.

import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const out = process.argv[2];
await mkdir(out, { recursive: true });
const made = await build({
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2023",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await copyFile(join("static", name), join(out, name));

/** The packages with a file in the script, in order. */
const used = new Set();
for (const file of Object.keys(made.metafile.inputs)) {
  const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file);
  if (found) used.add(found[1]);
}
let licences = "The workbench page contains these packages, under these licences.\n";
for (const name of [...used].sort()) {
  const folder = join("node_modules", name);
  const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} has no file with its licence`);
  const text = (await readFile(join(folder, file), "utf8")).trim();
  licences += `\n${"=".repeat(80)}\n${name} ${about.version} (${about.license})\n${"=".repeat(80)}\n\n${text}\n`;
}
await writeFile(join(out, "LICENCES.txt"), licences);
