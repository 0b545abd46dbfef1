// The environment of containers, rule by rule.

import { describe, expect, it } from 'vitest';
import {
  type EnvironmentFacts,
  environmentReferences,
  resolveEnvironment,
} from '../../../../agent/pods/environment.ts';
import { serviceEnvironment } from '../../../../agent/pods/service-environment.ts';
import type { ConfigMap, Container, Secret, Service } from '../../../../client/types.ts';
import { makePod } from '../../../sim/fakes.ts';

const meta = (name: string, namespace = 'demo') => ({ name, namespace, uid: name, resourceVersion: '1' });
const settings: ConfigMap = { metadata: meta('settings'), data: { COLOUR: 'blue', '2bad': 'x', 'with.dot': 'y' } };
const keys: Secret = { metadata: meta('keys'), data: { TOKEN: Buffer.from('s3cret').toString('base64') } };

function resolve(container: Partial<Container>, over: Partial<EnvironmentFacts> = {}) {
  const whole: Container = { name: 'web', image: 'n', ...container };
  return resolveEnvironment({
    pod: makePod(
      'p',
      { containers: [whole], serviceAccountName: 'robot' },
      { labels: { app: 'shop' }, annotations: { 'a.b/c': 'note' } },
    ),
    container: whole,
    configMaps: new Map([['settings', settings]]),
    secrets: new Map([['keys', keys]]),
    services: new Map([['KUBERNETES_SERVICE_HOST', '10.96.0.1']]),
    podIPs: ['10.0.0.1', 'fd00::1'],
    hostIPs: ['192.0.2.1'],
    allocatable: { cpu: '2', memory: '4Gi' },
    ...over,
  });
}
const values = (container: Partial<Container>, over?: Partial<EnvironmentFacts>) =>
  Object.fromEntries(resolve(container, { services: new Map(), ...over }).map(({ name, value }) => [name, value]));

describe('values', () => {
  it('may refer to variables before them and to services, with $$ as the escape', () => {
    const env = [
      { name: 'A', value: 'a' },
      { name: 'B', value: '$(A)-$(C)-$$(A)-$(KUBERNETES_SERVICE_HOST)' },
      { name: 'C', value: 'c' },
    ];
    const found = resolve({ env });
    expect(found.find(({ name }) => name === 'B')?.value).toBe('a-$(C)-$(A)-10.96.0.1');
  });
  it('win over envFrom and over services, and the last of a name wins', () => {
    const env = [
      { name: 'COLOUR', value: 'red' },
      { name: 'KUBERNETES_SERVICE_HOST', value: 'mine' },
      { name: 'COLOUR', value: 'green' },
    ];
    const found = resolve({ env, envFrom: [{ configMapRef: { name: 'settings' } }] });
    expect(found.filter(({ name }) => name === 'COLOUR')).toEqual([{ name: 'COLOUR', value: 'green' }]);
    expect(found.filter(({ name }) => name === 'KUBERNETES_SERVICE_HOST')).toHaveLength(1);
  });
});

describe('fieldRef', () => {
  it.each([
    ['metadata.name', 'p'],
    ['metadata.namespace', 'demo'],
    ['metadata.uid', 'uid-p'],
    ["metadata.labels['app']", 'shop'],
    ["metadata.labels['none']", ''],
    ["metadata.annotations['a.b/c']", 'note'],
    ['spec.nodeName', 'node-1'],
    ['spec.serviceAccountName', 'robot'],
    ['status.podIP', '10.0.0.1'],
    ['status.podIPs', '10.0.0.1,fd00::1'],
    ['status.hostIP', '192.0.2.1'],
    ['status.hostIPs', '192.0.2.1'],
  ])('%s is %s', (fieldPath, expected) => {
    expect(values({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath } } }] })).toEqual({ X: expected });
  });
  it('of a path that does not exist is an error', () => {
    const env = [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'spec.nonsense' } } }];
    expect(() => resolve({ env })).toThrow('unsupported fieldPath: spec.nonsense');
  });
});

describe('resourceFieldRef', () => {
  const resources = { limits: { cpu: '1500m', memory: '100Mi' }, requests: { cpu: '250m' } };
  it.each([
    ['limits.cpu', undefined, '2'],
    ['limits.cpu', '1m', '1500'],
    ['requests.cpu', '1m', '250'],
    ['limits.memory', undefined, '104857600'],
    ['limits.memory', '1Mi', '100'],
    ['limits.memory', '1Gi', '1'],
    ['requests.memory', undefined, '0'],
    ['limits.ephemeral-storage', undefined, '0'],
  ])('%s divided by %s is %s', (resource, divisor, expected) => {
    const resourceFieldRef = { resource, ...(divisor === undefined ? {} : { divisor }) };
    expect(values({ resources, env: [{ name: 'X', valueFrom: { resourceFieldRef } }] })).toEqual({ X: expected });
  });
  it('of a limit that is not set is what the node has', () => {
    const env = [{ name: 'X', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } }];
    expect(values({ env })).toEqual({ X: String(4 * 1024 ** 3) });
  });
  it('of a limit that the pod alone has is the pod’s', () => {
    const pod = makePod('p', Object.fromEntries([['resources', { limits: { memory: '64Mi' } }]]));
    const env = ['limits.memory', 'requests.memory', 'limits.cpu'].map((resource) => ({
      name: resource,
      valueFrom: { resourceFieldRef: { resource } },
    }));
    const found = { 'limits.memory': '67108864', 'requests.memory': '0', 'limits.cpu': '2' };
    expect(values({ env }, { pod })).toEqual(found);
    const own = { limits: { memory: '1Mi' } };
    expect(values({ env, resources: own }, { pod })).toEqual({ ...found, 'limits.memory': '1048576' });
  });
});

describe('ConfigMaps and Secrets', () => {
  const fromKey = (kind: 'configMapKeyRef' | 'secretKeyRef', name: string, key: string, optional?: boolean) => ({
    env: [{ name: 'X', valueFrom: { [kind]: { name, key, ...(optional === undefined ? {} : { optional }) } } }],
  });
  it.each([
    ['a key of a ConfigMap', fromKey('configMapKeyRef', 'settings', 'COLOUR'), { X: 'blue' }],
    ['a key of a Secret, decoded', fromKey('secretKeyRef', 'keys', 'TOKEN'), { X: 's3cret' }],
    ['nothing for an optional missing key', fromKey('configMapKeyRef', 'settings', 'none', true), {}],
    ['nothing for an optional missing object', fromKey('secretKeyRef', 'none', 'none', true), {}],
    ['everything with a prefix', { envFrom: [{ prefix: 'P_', secretRef: { name: 'keys' } }] }, { P_TOKEN: 's3cret' }],
    ['nothing for an optional missing source', { envFrom: [{ configMapRef: { name: 'no', optional: true } }] }, {}],
  ])('give %s', (_name, container, expected) => expect(values(container)).toEqual(expected));

  it.each([
    [fromKey('configMapKeyRef', 'none', 'k'), 'configmap "none" not found'],
    [fromKey('secretKeyRef', 'none', 'k'), 'secret "none" not found'],
    [fromKey('configMapKeyRef', 'settings', 'k'), "couldn't find key k in ConfigMap demo/settings"],
    [fromKey('secretKeyRef', 'keys', 'k'), "couldn't find key k in Secret demo/keys"],
    [{ envFrom: [{ configMapRef: { name: 'none' } }] }, 'configmap "none" not found'],
    [{ envFrom: [{ secretRef: { name: 'none' } }] }, 'secret "none" not found'],
  ])('that are missing are an error (%#)', (container, message) => {
    expect(() => resolve(container)).toThrow(message);
  });

  it('have any key for a name, and any prefix before it', () => {
    const from = { configMapRef: { name: 'settings' } };
    const names = resolve({ envFrom: [from, { ...from, prefix: '#@!' }] }, { services: new Map() }).map(
      ({ name }) => name,
    );
    expect(names.sort()).toEqual(['#@!2bad', '#@!COLOUR', '#@!with.dot', '2bad', 'COLOUR', 'with.dot']);
  });

  it('are named before they are read', () => {
    const container: Container = {
      name: 'c',
      envFrom: [{ secretRef: { name: 'a' } }],
      ...fromKey('configMapKeyRef', 'b', 'k'),
    };
    expect(environmentReferences(container)).toEqual({ configMaps: new Set(['b']), secrets: new Set(['a']) });
  });
});

describe('services', () => {
  const service = (name: string, clusterIP: string, ports: object[], namespace = 'demo'): Service => ({
    metadata: meta(name, namespace),
    spec: { clusterIP, ports: ports.map((port) => ({ port: 0, ...port })) },
  });
  const kubernetes = service('kubernetes', '10.96.0.1', [{ name: 'https', port: 443, protocol: 'TCP' }], 'default');
  const shop = service('my-shop', '10.96.0.9', [{ port: 80 }, { name: 'm', port: 90, protocol: 'UDP' }]);

  it('give the variables that the kubelet gives', () => {
    expect(Object.fromEntries(serviceEnvironment(makePod('p'), [shop], []))).toEqual({
      MY_SHOP_SERVICE_HOST: '10.96.0.9',
      MY_SHOP_SERVICE_PORT: '80',
      MY_SHOP_SERVICE_PORT_M: '90',
      MY_SHOP_PORT: 'tcp://10.96.0.9:80',
      MY_SHOP_PORT_80_TCP: 'tcp://10.96.0.9:80',
      MY_SHOP_PORT_80_TCP_PROTO: 'tcp',
      MY_SHOP_PORT_80_TCP_PORT: '80',
      MY_SHOP_PORT_80_TCP_ADDR: '10.96.0.9',
      MY_SHOP_PORT_90_UDP: 'udp://10.96.0.9:90',
      MY_SHOP_PORT_90_UDP_PROTO: 'udp',
      MY_SHOP_PORT_90_UDP_PORT: '90',
      MY_SHOP_PORT_90_UDP_ADDR: '10.96.0.9',
    });
  });
  it('without links leave only the API server', () => {
    const found = serviceEnvironment(makePod('p', { enableServiceLinks: false }), [shop], [kubernetes]);
    expect(found.get('KUBERNETES_SERVICE_HOST')).toBe('10.96.0.1');
    expect(found.get('KUBERNETES_SERVICE_PORT_HTTPS')).toBe('443');
    expect([...found.keys()].every((name) => name.startsWith('KUBERNETES_'))).toBe(true);
  });
  it('without an address give nothing', () => {
    const services = [service('headless', 'None', [{ port: 1 }]), service('external', '', [{ port: 1 }])];
    expect(serviceEnvironment(makePod('p'), services, []).size).toBe(0);
  });
  it('write IPv6 addresses in brackets', () => {
    const found = serviceEnvironment(makePod('p'), [service('six', 'fd00::9', [{ port: 80 }])], []);
    expect(found.get('SIX_PORT')).toBe('tcp://[fd00::9]:80');
  });
});
