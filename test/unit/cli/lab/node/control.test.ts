import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { nodeTable } from '../../../../../cli/commands/node.ts';
import type { NodeActions, NodeCondition, NodeView } from '../../../../../cli/lab/node/actions.ts';
import { parseControlRequest, sendControlRequest, serveControl, wanted } from '../../../../../cli/lab/node/control.ts';
import { refusal } from '../../../../../cli/lab/node/node.ts';
import { UserError } from '../../../../../lib/errors.ts';

it.each([
  ['GET', '/nodes', { kind: 'list' }],
  ['POST', '/nodes', { kind: 'add' }],
  ['POST', '/nodes/node-1/kill', { kind: 'node', name: 'node-1', action: 'kill' }],
  ['GET', '/nodes/node-1/kill', undefined],
  ['POST', '/nodes/node-1/eat', undefined],
  ['POST', '/nodes/node-1/constructor', undefined],
  ['POST', '/nodes/%2E%2E%2Fx/kill', { kind: 'node', name: '../x', action: 'kill' }],
  ['POST', '/nodes/NODE-1/kill', { kind: 'node', name: 'NODE-1', action: 'kill' }],
  ['POST', '/nodes/%/kill', { kind: 'node', name: '%', action: 'kill' }],
  ['POST', '/nodes//kill', undefined],
  ['POST', '/nodes/a/b/kill', undefined],
  ['DELETE', '/nodes', undefined],
])('%s %s is the request %j', (method, url, expected) => {
  expect(parseControlRequest(method, url)).toEqual(expected);
});

it.each([
  ['', {}],
  ['{}', {}],
  ['{"name":"a","zone":"b","more":1}', { name: 'a', zone: 'b' }],
])('the body %s wants %j', (body, expected) => {
  expect(wanted(body)).toEqual(expected);
});

it.each(['{', '1', 'null', '{"name":1}'])('the body %s is refused', (body) => {
  expect(() => wanted(body)).toThrow(UserError);
});

const view: NodeView = {
  name: 'node-1',
  condition: 'running',
  address: '10.192.32.2',
  podCIDR: '10.192.0.0/24',
  root: '/r',
  netns: '/n',
  runtimeSocket: '/c',
  traceSocket: '/t',
};

it('requests go through a socket of root’s, and refusals come back in their own words', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-control-'));
  const socket = join(directory, 'control', 'lab.sock');
  const given: string[] = [];
  const note = async (name: string): Promise<void> => {
    if (name !== 'node-1') throw new UserError(`the lab has no node ${name}`);
    given.push(name);
  };
  const actions: NodeActions = {
    list: () => [view],
    add: async ({ name = '?' } = {}) => ({ ...view, name }),
    ...{ stop: note, start: note, kill: note, partition: note, heal: note },
  };
  await expect(sendControlRequest(socket, 'GET', '/nodes')).rejects.toThrow('no lab with several nodes runs there');
  const serving = await serveControl(socket, actions);
  try {
    expect((await stat(join(directory, 'control'))).mode & 0o777).toBe(0o700);
    expect(await sendControlRequest(socket, 'GET', '/nodes')).toEqual([view]);
    expect(await sendControlRequest(socket, 'POST', '/nodes', { name: 'new' })).toEqual([{ ...view, name: 'new' }]);
    expect(await sendControlRequest(socket, 'POST', '/nodes/node-1/kill')).toEqual([view]);
    expect(given).toEqual(['node-1']);
    await expect(sendControlRequest(socket, 'POST', '/nodes/other/kill')).rejects.toThrow(
      /^the lab has no node other$/,
    );
    await expect(sendControlRequest(socket, 'POST', '/nodes/node-1/eat')).rejects.toThrow('there is no such request');
  } finally {
    await serving.close();
    await rm(directory, { recursive: true });
  }
});

it.each<[NodeCondition, string, NodeCondition, string]>([
  ['running', 'started', 'running', 'n is running already'],
  ['killed', 'stopped', 'stopped', 'n is killed: it cannot be stopped'],
  ['changing', 'healed', 'running', 'n is not healed: another action is in progress'],
])('a node that is %s is not %s', (condition, what, to, expected) => {
  expect(refusal('n', condition, what, to)).toBe(expected);
});

it('a request whose lab ends meanwhile is one line', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-control-'));
  const socket = join(directory, 'lab.sock');
  const reached = Promise.withResolvers<void>();
  const never = (): Promise<never> => {
    reached.resolve();
    return new Promise(() => undefined);
  };
  const serving = await serveControl(socket, {
    list: () => [],
    ...{ add: never, stop: never, start: never, kill: never, partition: never, heal: never },
  });
  const sent = sendControlRequest(socket, 'POST', '/nodes/node-1/kill');
  const refused = expect(sent).rejects.toThrow('the lab ended before it had done what was requested');
  await reached.promise;
  await serving.close();
  await refused;
  await rm(directory, { recursive: true });
});

it('nodes are shown as a table', () => {
  expect(nodeTable([view, { ...view, name: 'b', zone: 'z', condition: 'partitioned' }]).split('\n')).toEqual([
    'NAME     CONDITION     ZONE     ADDRESS       PODS',
    'node-1   running       <none>   10.192.32.2   10.192.0.0/24',
    'b        partitioned   z        10.192.32.2   10.192.0.0/24',
  ]);
});
