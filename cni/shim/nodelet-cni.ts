// The shim nodelet-cni in TypeScript, for machines without Perl and to measure what nodelet-cni.pl saves: Node takes some
// 40 ms to start, Perl 2. Same protocol, same answers; install.ts strips the types and puts the socket's path in.

import { readFileSync, writeSync } from 'node:fs';
import { connect } from 'node:net';

const socketPath = '@SOCKET_PATH@';
const VERSIONS = '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}';

function end(code: number, stdout: string | Uint8Array): never {
  for (let rest = Buffer.from(stdout); rest.length > 0; ) rest = rest.subarray(writeSync(1, rest));
  process.exit(code);
}

/** Anything but a whole answer is CNI error 11 (try again later): the agent does not run, or ended during the request. */
function tryAgainLater(details: string): never {
  const msg = `the nodelet agent does not answer on ${socketPath}; is it running?`;
  end(1, JSON.stringify({ cniVersion: '1.0.0', code: 11, msg, details }));
}

if (process.env['CNI_COMMAND'] === 'VERSION') end(0, VERSIONS);
const stdin = readFileSync(0);
const variables = Object.entries(process.env).filter(([name]) => name.startsWith('CNI_'));
const env = Buffer.from(variables.map(([name, value]) => `${name}=${value}\0`).join(''));
const chunks: Buffer[] = [];
const agent = connect(socketPath);
// The agent may have answered already, without reading the rest: what was received counts.
agent.on('error', (error) => {
  if (chunks.length === 0) tryAgainLater(error.message);
});
agent.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
agent.on('close', () => {
  const answer = Buffer.concat(chunks);
  const start = answer.indexOf('\n') + 1;
  const [code, length] = answer.toString('latin1', 0, start).trim().split(' ').map(Number);
  if (code === undefined || length === undefined) {
    tryAgainLater('the connection was closed before an answer came');
  }
  if (answer.length - start !== length) tryAgainLater('the connection was closed in the middle of the answer');
  end(code, answer.subarray(start));
});
agent.write(`nodelet-cni 1 ${env.length} ${stdin.length}\n`);
agent.write(env);
agent.write(stdin);
