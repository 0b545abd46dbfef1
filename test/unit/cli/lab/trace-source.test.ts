// Whose trace a command reads, in a lab with one node and in one with several.

import { expect, it } from 'vitest';
import { labPaths } from '../../../../cli/lab/paths.ts';
import { traceSocketOf } from '../../../../cli/lab/trace-source.ts';

const paths = labPaths('/tmp/traces');
const one = { nodeName: 'vm' };
const several = {
  nodeName: 'vm',
  nodes: {
    range: '10.192.0.0/18',
    serviceRange: '10.96.0.0/16',
    list: [
      { name: 'node-1', number: 1 },
      { name: 'node-2', number: 2 },
    ],
  },
};

it.each([
  ['of no lab yet', undefined, undefined, paths.traceSocket],
  ['the only node', one, undefined, paths.traceSocket],
  ['the only node by its name', one, 'vm', paths.traceSocket],
  ['one of several', several, 'node-2', `${paths.nodesRunDir}/node-2/trace.sock`],
])('%s', (_what, state, node, socket) => expect(traceSocketOf(paths, state, node)).toBe(socket));

it.each([
  [one, 'other', '--node other: the lab in /tmp/traces has no such node'],
  [several, 'vm', 'the lab has no node vm: there is node-1, node-2'],
  [several, undefined, 'the lab has several nodes: give --node node-1 or --node node-2'],
])('refuses what is no node, and what could be any', (state, node, message) =>
  expect(() => traceSocketOf(paths, state, node)).toThrow(message),
);
