#!/usr/bin/env node
// Finds the program for this machine, which npm has installed beside this package, and becomes it.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const system = `${process.platform}-${process.arch}`;
const program = find([`@stafette/${system}`, `@stafette/${system}-musl`]);
if (program === undefined) {
  console.error(
    `stafette: there is no package for ${system}, or npm was told to leave optional packages out ` +
      "(--omit=optional). Build it from https://github.com/stafette/stafette",
  );
  process.exit(1);
}

const words = process.argv.slice(2);
if (process.execve) {
  process.execve(program, [program, ...words], process.env);
}

// An older Node stays, and passes on what only it would hear. Keys reach both: the program decides.
const child = spawn(program, words, { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
for (const signal of ["SIGINT", "SIGQUIT"]) {
  process.on(signal, () => {});
}
child.on("error", (error) => {
  console.error(`stafette: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("close", (code, signal) => {
  process.exit(signal === null ? code : 128 + constants.signals[signal]);
});

function find(names) {
  for (const name of names) {
    try {
      return require.resolve(`${name}/bin/stafette`);
    } catch {
      // It is another system's.
    }
  }
  return undefined;
}
