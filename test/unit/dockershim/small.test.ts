// The remaining pure parts: facts, events, errors, network arguments, stats, output and Status of commands.

import { describe, expect, test } from 'vitest';
import { CriError, toCriError } from '../../../dockershim/errors.ts';
import { decodeEvent } from '../../../dockershim/events.ts';
import { OutputSplitter } from '../../../dockershim/exec.ts';
import { hasId, hasLabels } from '../../../dockershim/filters.ts';
import { addressesOf, capabilityArgs, cniArgs } from '../../../dockershim/network.ts';
import { exitStatus, failureStatus, parseSize } from '../../../dockershim/streaming/remote-io.ts';
import { streamTypes } from '../../../dockershim/streaming/spdy-io.ts';
import { dockerFacts, lowestOomScoreAdj } from '../../../dockershim/translate/facts.ts';
import { nanoCores, parseNetDev, sumOf } from '../../../dockershim/translate/stats.ts';
import { POD, sandboxConfig } from './messages.ts';

test('facts of Docker’s answers', () => {
  const facts = dockerFacts(
    '1.41',
    {
      CgroupVersion: '2',
      CgroupDriver: 'systemd',
      SecurityOptions: ['name=seccomp,profile=default', 'name=cgroupns'],
      Runtimes: { runc: {} },
    },
    { minOomScoreAdj: 5, hasApparmorParser: true },
  );
  expect(facts).toMatchObject({ apiMinor: 41, cgroupVersion: 2, cgroupDriver: 'systemd', minOomScoreAdj: 5 });
  expect([...facts.security, ...facts.runtimes]).toEqual(['seccomp', 'cgroupns', 'runc']);
});

test.each([
  { options: ['name=apparmor', 'name=seccomp'], parser: true, security: ['apparmor', 'seccomp'], unloadable: false },
  { options: ['name=apparmor', 'name=seccomp'], parser: false, security: ['seccomp'], unloadable: true },
  { options: ['name=seccomp'], parser: false, security: ['seccomp'], unloadable: false },
])('$options with apparmor_parser $parser', ({ options, parser, security, unloadable }) => {
  const machine = { minOomScoreAdj: 0, hasApparmorParser: parser };
  const facts = dockerFacts('1.41', { SecurityOptions: options }, machine);
  expect([...facts.security]).toEqual(security);
  expect(facts.apparmorUnloadable).toBe(unloadable);
});

test.each([
  ['CapEff:\t0000000001000000\n', -1000],
  ['CapEff:\t0000000000ffffff\n', 7],
])('%s allows OOM scores from %d on', (status, expected) => {
  expect(lowestOomScoreAdj(status, '7\n')).toBe(expected);
});

describe('events', () => {
  const line = (Action: string, Attributes: object, timeNano = '1795387183205453331'): string =>
    `{"Action":${JSON.stringify(Action)},"Actor":{"ID":"c1","Attributes":${JSON.stringify(Attributes)}},"timeNano":${timeNano}}`;
  const own = { 'io.nodelet.dockershim.kind': 'container', 'io.nodelet.dockershim.sandbox': 's1' };
  test.each([
    ['create', 'CONTAINER_CREATED_EVENT'],
    ['start', 'CONTAINER_STARTED_EVENT'],
    ['die', 'CONTAINER_STOPPED_EVENT'],
    ['destroy', 'CONTAINER_DELETED_EVENT'],
  ])('%s', (action, type) => {
    expect(decodeEvent(line(action, own))).toEqual({ type, id: 'c1', sandboxId: 's1', at: '1795387183205453331' });
  });
  test('a sandbox is its own', () => {
    expect(decodeEvent(line('die', { 'io.nodelet.dockershim.kind': 'sandbox' }))?.sandboxId).toBe('c1');
  });
  test.each([
    ['exec_start: sh', own],
    ['die', {}],
  ])('%s of %j is none', (action, attributes) => {
    expect(decodeEvent(line(action, attributes))).toBeUndefined();
  });
});

test.each([
  [
    Object.assign(new Error('(HTTP code 404) no such container - x'), { statusCode: 404, json: { message: 'no x' } }),
    'NOT_FOUND',
    'no x',
  ],
  [Object.assign(new Error('m'), { statusCode: 500 }), 'UNKNOWN', 'm'],
  [
    Object.assign(new Error('connect ENOENT'), { code: 'ENOENT', syscall: 'connect' }),
    'UNAVAILABLE',
    'Docker does not answer: connect ENOENT',
  ],
  // A file of the node that is missing is no daemon that is away.
  [Object.assign(new Error('no file'), { code: 'ENOENT', syscall: 'open' }), 'UNKNOWN', 'no file'],
  [new CriError('INVALID_ARGUMENT', 'f'), 'INVALID_ARGUMENT', 'f'],
])('%s is %s', (error, code, text) => {
  expect(toCriError(error)).toMatchObject({ code, message: text });
});

test('what plugins are given', () => {
  const { port_mappings: portMappings } = sandboxConfig({
    port_mappings: [
      { protocol: 'UDP', container_port: 53, host_port: 5353, host_ip: '127.0.0.1' },
      { protocol: 'TCP', container_port: 80 },
    ],
  });
  const annotations = { 'kubernetes.io/ingress-bandwidth': '10M' };
  expect(capabilityArgs({ portMappings, annotations }, { servers: ['1.1.1.1'], searches: [], options: [] })).toEqual({
    portMappings: [{ hostPort: 5353, containerPort: 53, protocol: 'udp', hostIP: '127.0.0.1' }],
    bandwidth: { ingressRate: 10_000_000, ingressBurst: 4_294_967_295 },
    dns: { servers: ['1.1.1.1'], searches: [], options: [] },
    'io.kubernetes.cri.pod-annotations': annotations,
  });
  expect(cniArgs('id', POD)).toBe(
    'IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=id;K8S_POD_UID=u1',
  );
});

test('addresses are those of the pod’s interface', () => {
  const interfaces = [{ name: 'cni0' }, { name: 'eth0', sandbox: '/n' }, { name: 'net1', sandbox: '/n' }];
  const ips = [
    { address: '10.0.0.2/24', interface: 1 },
    { address: 'fd00::2/64', interface: 1 },
    { address: '9.9.9.9/8', interface: 2 },
  ];
  expect(addressesOf({ interfaces, ips, routes: [], dns: {} })).toEqual(['10.0.0.2', 'fd00::2']);
});

test('stats: rates, interfaces and sums', () => {
  expect(nanoCores({ at: 0n, used: 0 }, { at: 2_000_000_000n, used: 500_000_000 })).toBe(250_000_000);
  expect(nanoCores(undefined, { at: 1n, used: 1 })).toBeUndefined();
  expect(nanoCores({ at: 0n, used: 0 }, { at: 1000n, used: 1 })).toBeUndefined();
  const text =
    'Inter-| Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 1 2 0 0 0 0 0 20 1 3 0 0 0 0 0\n';
  expect(parseNetDev(text)).toEqual([
    {
      name: 'eth0',
      rx_bytes: { value: 10 },
      rx_errors: { value: 2 },
      tx_bytes: { value: 20 },
      tx_errors: { value: 3 },
    },
  ]);
  const stats = [{ memory: { usage_bytes: { value: 1 } } }, { memory: { usage_bytes: { value: 2 } } }, {}];
  expect(sumOf(stats, ({ memory }) => memory?.usage_bytes)).toEqual({ value: 3 });
  expect(sumOf([{}], ({ memory }) => memory?.usage_bytes)).toBeUndefined();
});

test('the output of a command, in pieces', () => {
  const bytes = Buffer.from([1, 0, 0, 0, 0, 0, 0, 2, 0x61, 0x62, 2, 0, 0, 0, 0, 0, 0, 1, 0x63]);
  const splitter = new OutputSplitter();
  const found = [...bytes].flatMap((byte) => splitter.push(Buffer.from([byte])));
  expect(found.map(({ stream, data }) => [stream, data.toString()])).toEqual([
    ['stdout', 'ab'],
    ['stderr', 'c'],
  ]);
});

test('the Status of a command', () => {
  expect(JSON.parse(exitStatus(0))).toMatchObject({ status: 'Success' });
  expect(JSON.parse(exitStatus(3))).toMatchObject({
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: '3' }] },
  });
  expect(JSON.parse(failureStatus('no'))).toMatchObject({ reason: 'InternalError', code: 500 });
});

test.each([
  ['{"Width":80,"Height":24}', { width: 80, height: 24 }],
  ['{"Width":80}', undefined],
  ['nonsense', undefined],
])('a terminal’s size %s', (text, expected) => {
  expect(parseSize(text)).toEqual(expected);
});

test.each([
  [{ stdin: true, stdout: true, stderr: true, tty: false }, ['error', 'stdin', 'stdout', 'stderr']],
  [{ stdin: true, stdout: true, stderr: false, tty: true }, ['error', 'stdin', 'stdout', 'resize']],
])('streams of %j', (wanted, expected) => {
  expect(streamTypes(wanted)).toEqual(expected);
});

test('filters', () => {
  expect(hasId('abc', 'ab')).toBe(true);
  expect(hasId('abc', undefined)).toBe(true);
  expect(hasId('abc', 'b')).toBe(false);
  expect(hasLabels({ a: '1' }, { a: '1' })).toBe(true);
  expect(hasLabels({ a: '1' }, { constructor: 'x' })).toBe(false);
});
