// The official TypeScript clients take a piece of work from request to end.
//
// They are told which of them it is, which era they speak and where the server is, and print what
// they saw as one line of JSON.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const where = JSON.parse(process.argv[2]);
const require = createRequire(`${where.packages}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

async function connected() {
  const info = { name: 'story', version: '1.0.0' };
  const [client, stdio, http] =
    where.sdk === 'sdk'
      ? await Promise.all(
          ['client/index.js', 'client/stdio.js', 'client/streamableHttp.js'].map((part) =>
            load(`@modelcontextprotocol/sdk/${part}`),
          ),
        )
      : await Promise.all([
          load('@modelcontextprotocol/client'),
          load('@modelcontextprotocol/client/stdio'),
          load('@modelcontextprotocol/client'),
        ]);
  const mode = where.era === 'legacy' ? 'legacy' : { pin: '2026-07-28' };
  const self = new client.Client(info, where.sdk === 'sdk' ? {} : { versionNegotiation: { mode } });
  const transport =
    where.transport === 'stdio'
      ? new stdio.StdioClientTransport({
          command: where.command,
          args: where.arguments,
          cwd: where.folder,
          env: where.env,
        })
      : new http.StreamableHTTPClientTransport(new URL(where.url), {
          requestInit: { headers: where.headers },
        });
  await self.connect(transport);
  return [self, transport];
}

const [client, transport] = await connected();
const request = (name, args, options) =>
  where.sdk === 'sdk'
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options);

async function call(name, args = {}) {
  // The client holds structured content against the output schema by itself.
  const result = await request(name, args, { timeout: 300_000 });
  assert(!result.isError, `${name}: ${result.content[0].text}`);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

async function refused(name, args) {
  const result = await request(name, args, { timeout: 300_000 });
  assert(result.isError, `${name} was not refused`);
  assert(result._meta['stafette/problem'].code);
  return result.content[0].text;
}

const { tools } = await client.listTools();
assert(tools.every((tool) => tool.outputSchema));
const { run } = await call('start_run', { request: 'Add a login' });
let { offered } = await call('wait', { agent: 'builder', run });
let turn = await call('accept', { run, handoff: offered[0].handoff, by: 'ada' });
let mine = { run, turn: turn.turn };
assert.match(await refused('handoff', { to: 'boss', summary: 'x', ...mine }), /reviewer, orchestrator, human/);
assert.match(await refused('handoff', { to: 'reviewer', summary: 'x', ...mine }), /`files`/);
await call('report', { note: 'building', tokens: 100, ...mine });
await call('handoff', { to: 'reviewer', summary: 'Built', outputs: { files: ['login.rs'] }, ...mine });
await call('complete', { summary: 'The login is built', ...mine });

({ offered } = await call('wait', { agent: 'reviewer', run }));
turn = await call('accept', { run, handoff: offered[0].handoff });
mine = { run, turn: turn.turn };
assert.deepEqual((await call('briefing', mine)).inputs.files, ['login.rs']);
const read = await client.readResource({ uri: `stafette://runs/${run}/briefings/reviewer` });
assert.match(read.contents[0].text, /login\.rs/);
const prompt = await client.getPrompt({ name: 'reviewer', arguments: { run } });
assert.match(prompt.messages[0].content.text, /You are reviewer/);
await call('complete', { summary: 'It is good', ...mine });
const status = await call('status', { run });
assert.equal(status.runs[0].status, 'succeeded');

const completed = await client.complete({
  ref: { type: 'ref/resource', uri: 'stafette://schemas/{name}' },
  argument: { name: 'name', value: 'handoff-re' },
});
assert.deepEqual(completed.completion.values, ['handoff-request', 'handoff-response']);

// A long wait is called off in its midst, and the connection is as good as before.
const abort = new AbortController();
const told = [];
const onprogress = (progress) => {
  told.push(progress);
  abort.abort('enough');
};
const waiting = request(
  'wait',
  { agent: 'builder', within_seconds: 600 },
  { signal: abort.signal, onprogress, timeout: 300_000 },
);
await assert.rejects(waiting);
assert.match(told[0].message, /waiting for work for builder/);
await call('status');

const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name).sort(), protocol: version, run }));
