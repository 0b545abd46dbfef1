import { describe, expect, it } from 'vitest';
import type { KubeObject, ObjectLookup } from '../../../../apiserver/kinds/resource.ts';
import {
  backendPath,
  isGlobalUnicast,
  isOtherNodePort,
  nodeKubelet,
  nodeLocation,
  podLocation,
  serviceLocation,
  splitName,
} from '../../../../apiserver/proxy/location.ts';
import { body, failureOf } from '../support.ts';

function lookupOf(...objects: KubeObject[]): ObjectLookup {
  const plural = ({ kind }: KubeObject): string => (kind === 'Endpoints' ? 'endpoints' : `${kind.toLowerCase()}s`);
  const of = (wanted: string, namespace?: string): KubeObject[] =>
    objects.filter(
      (one) => plural(one) === wanted && (namespace === undefined || one.metadata.namespace === namespace),
    );
  return {
    get: (_group, wanted, namespace, name) => of(wanted, namespace).find(({ metadata }) => metadata.name === name),
    list: (_group, wanted) => of(wanted),
    each: (_group, wanted, namespace) => of(wanted, namespace),
    having: (_group, wanted, namespace) => of(wanted, namespace),
  };
}

const pod = (name: string, ip: string | undefined, ports: readonly number[] = [], namespace = 'ns'): KubeObject =>
  body(
    'Pod',
    { name, namespace },
    {
      spec: { containers: [{ name: 'a' }, { name: 'b', ports: ports.map((containerPort) => ({ containerPort })) }] },
      status: ip === undefined ? {} : { podIP: ip, podIPs: [{ ip }] },
    },
  );

describe('a name of a proxy', () => {
  const cases: readonly [string, object | undefined][] = [
    ['web', { scheme: 'http', name: 'web', port: '' }],
    ['web:80', { scheme: 'http', name: 'web', port: '80' }],
    ['https:web:', { scheme: 'https', name: 'web', port: '' }],
    [':web:p', { scheme: 'http', name: 'web', port: 'p' }],
    ['ftp:web:80', undefined],
    ['a:b:c:d', undefined],
    [':80', undefined],
  ];
  for (const [id, named] of cases) it(id, () => expect(splitName(id)).toEqual(named));
});

describe('an address that a proxy may connect to', () => {
  const good = ['10.0.0.5', '192.168.1.1', '203.0.113.9', 'fd00::5', '2001:db8::1'];
  const bad = [
    ...['127.0.0.1', '127.8.9.10', '169.254.169.254', '0.0.0.0', '255.255.255.255', '224.0.0.1', '::1', '::'],
    ...['fe80::1', 'ff02::1', '::ffff:127.0.0.1', '::ffff:169.254.169.254', 'localhost', '', '10.0.0', '010.0.0.1'],
  ];
  for (const address of good) it(`is ${address}`, () => expect(isGlobalUnicast(address)).toBe(true));
  for (const address of bad) it(`is not "${address}"`, () => expect(isGlobalUnicast(address)).toBe(false));
});

describe('a node', () => {
  const node = (name: string, address: string): KubeObject => {
    const addresses = [{ type: 'InternalIP', address }];
    return body(
      'Node',
      { name, namespace: '' },
      { status: { addresses, daemonEndpoints: { kubeletEndpoint: { Port: 10250 } } } },
    );
  };
  const lookup = lookupOf(
    node('n1', '10.0.0.9'),
    node('local', '127.0.0.1'),
    body('Node', { name: 'new', namespace: '' }, {}),
  );
  for (const id of ['n1', 'n1:10250', 'https:n1:10250', 'http:n1:']) {
    it(`${id} is its kubelet`, () => {
      expect(isOtherNodePort(lookup, id)).toBe(false);
      expect(nodeKubelet(lookup, id)).toEqual({ host: '10.0.0.9', port: 10250 });
    });
  }
  const others: readonly [string, object][] = [
    ['n1:9100', { scheme: 'http', host: '10.0.0.9', port: 9100 }],
    ['https:n1:9443', { scheme: 'https', host: '10.0.0.9', port: 9443 }],
  ];
  for (const [id, location] of others) {
    it(`${id} is another port of it`, () => {
      expect(isOtherNodePort(lookup, id)).toBe(true);
      expect(nodeLocation(lookup, id)).toEqual(location);
    });
  }
  it('is refused where it is none, has no address, or has one that leads to this machine', () => {
    expect(isOtherNodePort(lookup, 'none:9100')).toBe(false);
    expect(failureOf(() => nodeKubelet(lookup, 'none:9100'))).toMatchObject({
      code: 404,
      message: 'nodes "none" not found',
    });
    expect(failureOf(() => nodeKubelet(lookup, 'a:b:c:d'))).toMatchObject({
      code: 400,
      message: 'invalid node request "a:b:c:d"',
    });
    expect(failureOf(() => nodeKubelet(lookup, 'new'))).toMatchObject({ code: 400 });
    expect(failureOf(() => nodeLocation(lookup, 'local:22'))).toMatchObject({
      code: 400,
      message: 'address not allowed',
    });
    expect(failureOf(() => nodeLocation(lookup, 'n1:ssh'))).toMatchObject({
      code: 400,
      message: 'invalid node request "n1:ssh"',
    });
  });
});

describe('a pod', () => {
  const lookup = lookupOf(pod('web', '10.0.0.5', [8080, 9]), pod('plain', '10.0.0.6'), pod('new', undefined));
  const cases: readonly [string, object][] = [
    ['web', { scheme: 'http', host: '10.0.0.5', port: 8080 }],
    ['web:9', { scheme: 'http', host: '10.0.0.5', port: 9 }],
    ['https:web:8443', { scheme: 'https', host: '10.0.0.5', port: 8443 }],
    ['plain', { scheme: 'http', host: '10.0.0.6', port: 80 }],
    ['https:plain:', { scheme: 'https', host: '10.0.0.6', port: 443 }],
  ];
  for (const [id, location] of cases) it(id, () => expect(podLocation(lookup, 'ns', id)).toEqual(location));

  const refusals: readonly [string, number, string][] = [
    ['none', 404, 'pods "none" not found'],
    ['new', 400, 'address not allowed'],
    ['ftp:web:1', 400, 'invalid pod request "ftp:web:1"'],
    ['web:65536', 400, 'invalid pod request "web:65536"'],
    ['web:1@evil', 400, 'invalid pod request "web:1@evil"'],
  ];
  for (const [id, code, message] of refusals) {
    it(`${id} is refused`, () =>
      expect(failureOf(() => podLocation(lookup, 'ns', id))).toMatchObject({ code, message }));
  }
  it('on this machine or its link alone is refused', () => {
    for (const ip of ['127.0.0.1', '169.254.169.254', '::1']) {
      const failure = failureOf(() => podLocation(lookupOf(pod('here', ip, [80])), 'ns', 'here'));
      expect(failure).toMatchObject({ code: 400, message: 'address not allowed' });
    }
  });
});

describe('a service', () => {
  const service = body(
    'Service',
    { name: 'web', namespace: 'ns' },
    {
      spec: {
        ports: [
          { name: 'http', port: 80 },
          { name: 'tls', port: 443 },
        ],
      },
    },
  );
  const ref = (name: string, namespace = 'ns') => ({ kind: 'Pod', name, namespace });
  const slice = (endpoints: object[], labels = { 'kubernetes.io/service-name': 'web' }): KubeObject =>
    body(
      'EndpointSlice',
      { name: 'web-1', namespace: 'ns', labels },
      { endpoints, ports: [{ name: 'http', port: 8080 }] },
    );
  const ready = { addresses: ['10.0.0.5'], conditions: { ready: true }, targetRef: ref('a') };
  const pods = [pod('a', '10.0.0.5'), pod('b', '10.0.0.6'), pod('local', '127.0.0.1')];
  const first = (): number => 0;
  const at = (id: string, ...objects: KubeObject[]) =>
    serviceLocation(lookupOf(service, ...pods, ...objects), 'ns', id, first);

  it('is one of its ready endpoints, by number or name of its port', () => {
    const notReady = { ...ready, addresses: ['10.0.0.6'], targetRef: ref('b'), conditions: { ready: false } };
    for (const id of ['web:80', 'web:http', 'http:web:80']) {
      expect(at(id, slice([notReady, ready]))).toEqual({ scheme: 'http', host: '10.0.0.5', port: 8080 });
    }
    expect(at('https:web:http', slice([ready])).scheme).toBe('https');
  });
  it('is found by its Endpoints where it has no slice', () => {
    const subsets = [{ addresses: [{ ip: '10.0.0.6', targetRef: ref('b') }], ports: [{ name: 'http', port: 81 }] }];
    const endpoints = body('Endpoints', { name: 'web', namespace: 'ns' }, { subsets });
    expect(at('web:80', endpoints)).toEqual({ scheme: 'http', host: '10.0.0.6', port: 81 });
  });
  it('leads to pods of its namespace alone, under their own addresses', () => {
    const wrong = [
      { addresses: ['10.0.0.9'], targetRef: ref('a') },
      { addresses: ['10.0.0.5'], targetRef: ref('a', 'other') },
      { addresses: ['10.0.0.5'], targetRef: ref('gone') },
      { addresses: ['10.0.0.5'] },
      { addresses: ['127.0.0.1'], targetRef: ref('local') },
    ];
    for (const endpoint of wrong) {
      expect(failureOf(() => at('web:80', slice([endpoint])))).toMatchObject({
        code: 503,
        message: 'no endpoints available for service "web"',
      });
    }
  });

  const refusals: readonly [string, number, string][] = [
    ['web:81', 503, 'no service port 81 found for service "web"'],
    ['web:other', 503, 'no endpoints available for service "web"'],
    ['web', 503, 'no endpoints available for service "web"'],
    ['none:80', 404, 'services "none" not found'],
    ['none', 404, 'endpoints "none" not found'],
    ['a:b:c', 400, 'invalid service request "a:b:c"'],
  ];
  for (const [id, code, message] of refusals) {
    it(`${id} is refused`, () => expect(failureOf(() => at(id, slice([ready])))).toMatchObject({ code, message }));
  }
});

describe('the path on the backend', () => {
  const cases: readonly [string, string][] = [
    ['', ''],
    ['/', '/'],
    ['/a/b', '/a/b'],
    ['/a/b/', '/a/b/'],
    ['//a///b', '/a/b'],
    ['/../../etc/passwd', '/etc/passwd'],
    ['/%2e%2e/a', '/a'],
    ['/a%20b/é'.normalize(), '/a%20b/%C3%A9'],
    ['/a;b=c@d:e', '/a;b=c@d:e'],
    ['/what%3Fis%23it', '/what%3Fis%23it'],
    ['/a%0D%0Ab', '/a%0D%0Ab'],
  ];
  for (const [tail, path] of cases) it(`"${tail}"`, () => expect(backendPath(tail)).toBe(path));
  it('is refused when it cannot be decoded', () => expect(failureOf(() => backendPath('/%zz')).code).toBe(400));
});
