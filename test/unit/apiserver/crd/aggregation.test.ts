import { describe, expect, it } from 'vitest';
import { prioritiesOf } from '../../../../apiserver/aggregation/priorities.ts';
import { identityHeaders } from '../../../../apiserver/aggregation/proxy.ts';
import { discoveredResources } from '../../../../apiserver/aggregation/remote-discovery.ts';
import { resolveService } from '../../../../apiserver/aggregation/resolve.ts';
import { compareVersions } from '../../../../apiserver/kinds/versions.ts';
import { create, lines, lookupOf, object, row } from '../kinds/support.ts';

describe('where a service leads', () => {
  const services = row('services');
  const service = (port: number) => ({
    group: '',
    plural: 'services',
    object: object(services, { spec: { ports: [{ name: 'https', port }] } }),
  });
  const slice = (ready: boolean) => ({
    group: 'discovery.k8s.io',
    plural: 'endpointslices',
    object: object(row('endpointslices', 'discovery.k8s.io'), {
      metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      ports: [{ name: 'https', port: 8443 }],
      endpoints: [{ addresses: ['10.0.0.7'], conditions: { ready } }],
    }),
  });

  it.each([
    ['no service', [], { reason: 'ServiceNotFound', message: 'service/web in "demo" is not present' }],
    [
      'another port',
      [service(80)],
      { reason: 'ServicePortError', message: 'service/web in "demo" is not listening on port 443' },
    ],
    [
      'no endpoint',
      [service(443)],
      {
        reason: 'MissingEndpoints',
        message: 'endpoints for service/web in "demo" have no addresses with port name "https"',
      },
    ],
    ['none that is ready', [service(443), slice(false)], { reason: 'MissingEndpoints', message: expect.any(String) }],
    ['an endpoint', [service(443), slice(true)], { host: '10.0.0.7', port: 8443 }],
  ])('%s', (_name, stored, expected) => {
    expect(resolveService(lookupOf(...stored), 'demo', 'web', 443)).toEqual(expected);
  });
});

it('the caller is named to the other server, and nothing else can be put into its headers', () => {
  const caller = {
    name: 'jane\r\nX-Remote-Group: root',
    groups: ['dev', 'ops'],
    uid: '7',
    extra: { 'example.com/a b': ['x'] },
  };
  expect(identityHeaders(caller)).toEqual({
    'X-Remote-User': 'jane??X-Remote-Group: root',
    'X-Remote-Group': ['dev', 'ops'],
    'X-Remote-Uid': '7',
    'X-Remote-Extra-example.com%2Fa%20b': ['x'],
  });
});

it('legacy discovery of another server becomes aggregated discovery', () => {
  const document = {
    kind: 'APIResourceList',
    resources: [
      { name: 'things', singularName: 'thing', namespaced: true, kind: 'Thing', verbs: ['get'], shortNames: ['th'] },
      { name: 'things/scale', namespaced: true, group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: ['get'] },
    ],
  };
  expect(discoveredResources(document, 'example.com', 'v1')).toEqual([
    {
      resource: 'things',
      responseKind: { group: 'example.com', version: 'v1', kind: 'Thing' },
      scope: 'Namespaced',
      singularResource: 'thing',
      verbs: ['get'],
      shortNames: ['th'],
      subresources: [
        { subresource: 'scale', responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, verbs: ['get'] },
      ],
    },
  ]);
  expect(discoveredResources({ kind: 'Status' }, 'example.com', 'v1')).toBeUndefined();
});

describe('APIServices', () => {
  const apiservices = row('apiservices', 'apiregistration.k8s.io');
  const spec = {
    group: 'example.com',
    version: 'v1',
    groupPriorityMinimum: 1000,
    versionPriority: 15,
    service: { namespace: 'demo', name: 'web' },
  };
  const metadata = { name: 'v1.example.com' };

  it.each<[string, Record<string, unknown>, string[]]>([
    ['a good one', { metadata, spec }, []],
    [
      'another name',
      { metadata: { name: 'v2.example.com' }, spec },
      ['metadata.name: Invalid value: "v2.example.com": must be `spec.version+"."+spec.group`: "v1.example.com"'],
    ],
    [
      'a priority of 0',
      { metadata, spec: { ...spec, versionPriority: 0 } },
      ['spec.versionPriority: Invalid value: 0: must be positive and less than 1000'],
    ],
    [
      'a port that is none',
      { metadata, spec: { ...spec, service: { ...spec.service, port: 70000 } } },
      ['spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive'],
    ],
    [
      'a bundle for this server',
      { metadata, spec: { ...spec, service: undefined, caBundle: 'YWJj' } },
      ['spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle'],
    ],
    [
      'a service without a name',
      { metadata, spec: { ...spec, service: { namespace: 'demo' } } },
      ['spec.service.name: Required value'],
    ],
    [
      'a bundle that is not used',
      { metadata, spec: { ...spec, caBundle: 'YQ==', insecureSkipTLSVerify: true } },
      ['spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present'],
    ],
  ])('%s', (_name, fields, expected) => {
    const made = create(apiservices, fields);
    expect(lines(made.errors)).toEqual(expected);
  });

  it('the port of a service is 443 where none is set', () => {
    expect(create(apiservices, { metadata, spec }).object).toMatchObject({ spec: { service: { port: 443 } } });
  });

  it('have the priorities of kube-apiserver', () => {
    expect(prioritiesOf('', 'v1')).toEqual({ groupPriorityMinimum: 18000, versionPriority: 1 });
    expect(prioritiesOf('autoscaling', 'v2')).toEqual({ groupPriorityMinimum: 17500, versionPriority: 30 });
    expect(prioritiesOf('example.com', 'v1')).toEqual({ groupPriorityMinimum: 1000, versionPriority: 100 });
  });
});

it('versions are ordered by stability, then by number, then by name', () => {
  const versions = [
    'foo10',
    'v11alpha2',
    'v10beta3',
    'v3beta1',
    'v12alpha1',
    'v1',
    'v11beta2',
    'v10',
    'v2',
    'foo1',
    'v11alpha1',
  ];
  expect(versions.toSorted(compareVersions)).toEqual([
    'v10',
    'v2',
    'v1',
    'v11beta2',
    'v10beta3',
    'v3beta1',
    'v12alpha1',
    'v11alpha2',
    'v11alpha1',
    'foo1',
    'foo10',
  ]);
});
