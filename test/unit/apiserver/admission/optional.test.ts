// The plugins that are off without a flag, and the attesting of trust bundles: what each of them changes and refuses.

import { describe, expect, it } from 'vitest';
import { AdmissionChain } from '../../../../apiserver/admission/chain.ts';
import type { AdmissionPlugin, Operation } from '../../../../apiserver/admission/plugin.ts';
import { alwaysAdmit, alwaysDeny } from '../../../../apiserver/admission/plugins/always.ts';
import { alwaysPullImages } from '../../../../apiserver/admission/plugins/always-pull-images.ts';
import { clusterTrustBundleAttest } from '../../../../apiserver/admission/plugins/cluster-trust-bundle-attest.ts';
import { denyServiceExternalIPs } from '../../../../apiserver/admission/plugins/deny-service-external-ips.ts';
import { extendedResourceToleration } from '../../../../apiserver/admission/plugins/extended-resource-toleration.ts';
import { limitPodHardAntiAffinityTopology } from '../../../../apiserver/admission/plugins/limit-pod-hard-anti-affinity-topology.ts';
import { namespaceExists } from '../../../../apiserver/admission/plugins/namespace-exists.ts';
import { podNodeSelector } from '../../../../apiserver/admission/plugins/pod-node-selector.ts';
import { atOnce } from '../../../../apiserver/admission/steps.ts';
import { NO_AUTHORIZER } from '../../../../apiserver/auth/authorizer.ts';
import type { KubeObject, ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { podOf } from '../../../../apiserver/kinds/shapes.ts';
import { attributes, lookupOf, object, row } from '../kinds/support.ts';

const pods = row('pods');
const services = row('services');
const bundles = row('clustertrustbundles', 'certificates.k8s.io');

interface Write {
  readonly kind?: ResourceKind;
  readonly old?: KubeObject;
  readonly lookup?: ReturnType<typeof lookupOf>;
}

/** Both phases of one plugin over an object with these fields; returns the object. */
function run(plugin: AdmissionPlugin, fields: Record<string, unknown>, write: Write = {}): KubeObject {
  const { kind = pods, old, lookup = lookupOf() } = write;
  const made = object(kind, fields);
  const operation: Operation = old === undefined ? 'CREATE' : 'UPDATE';
  const request = attributes(kind, operation, made, old);
  const chain = new AdmissionChain([plugin], lookup);
  atOnce(chain.admit(request));
  atOnce(chain.validate(request));
  return made;
}

const podSpec = (spec: object): Record<string, unknown> => ({
  spec: { containers: [{ name: 'c', image: 'x:1' }], ...spec },
});
const namespace = (annotations: Record<string, string>) =>
  lookupOf({
    group: '',
    plural: 'namespaces',
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'demo', annotations } },
  });

describe('AlwaysAdmit and AlwaysDeny', () => {
  it('decide without looking', () => {
    run(alwaysAdmit, podSpec({}));
    const ofClient = { ...attributes(pods, 'CREATE', object(pods, podSpec({}))), internal: false };
    const chain = new AdmissionChain([alwaysDeny], lookupOf());
    expect(() => atOnce(chain.admit(ofClient))).toThrow(
      'pods "web" is forbidden: admission control is denying all modifications',
    );
    atOnce(chain.admit({ ...ofClient, internal: true }));
  });
});

describe('AlwaysPullImages', () => {
  const containers = [{ name: 'c', image: 'x:1', imagePullPolicy: 'IfNotPresent' }];
  it('has every image pulled', () => {
    const spec = { initContainers: containers, containers, volumes: [{ name: 'v', image: { reference: 'y:1' } }] };
    const pod = podOf(run(alwaysPullImages, { spec })).spec;
    const policies = [pod?.initContainers?.[0]?.imagePullPolicy, pod?.containers?.[0]?.imagePullPolicy];
    expect([...policies, pod?.volumes?.[0]?.image?.pullPolicy]).toEqual(['Always', 'Always', 'Always']);
  });

  it('leaves updates without a new image alone', () => {
    const old = object(pods, { spec: { containers } });
    expect(podOf(run(alwaysPullImages, { spec: { containers } }, { old })).spec?.containers).toEqual(containers);
  });

  it('refuses what another plugin has changed since', () => {
    const changed = { ...alwaysPullImages };
    delete changed.admit;
    expect(() => run(changed, { spec: { containers } })).toThrow(
      'pods "web" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "IfNotPresent": supported values: "Always"',
    );
  });
});

describe('DenyServiceExternalIPs', () => {
  const service = (...externalIPs: string[]): Record<string, unknown> => ({ spec: { externalIPs } });
  it('refuses addresses that are new', () => {
    const message = 'services "web" is forbidden: Use of external IPs is denied by admission control.';
    expect(() => run(denyServiceExternalIPs, service('192.0.2.1'), { kind: services })).toThrow(message);
    const old = object(services, service('192.0.2.1'));
    run(denyServiceExternalIPs, service('192.0.2.1'), { kind: services, old });
    expect(() => run(denyServiceExternalIPs, service('192.0.2.2'), { kind: services, old })).toThrow(message);
    run(denyServiceExternalIPs, service(), { kind: services });
  });
});

describe('ExtendedResourceToleration', () => {
  it('adds a toleration for each device that is requested', () => {
    const resources = { requests: { cpu: '1', 'example.org/b': '1', 'example.org/a': '1' } };
    const pod = run(extendedResourceToleration, { spec: { containers: [{ name: 'c', resources }] } });
    expect(podOf(pod).spec?.tolerations).toEqual([
      { key: 'example.org/a', operator: 'Exists', effect: 'NoSchedule' },
      { key: 'example.org/b', operator: 'Exists', effect: 'NoSchedule' },
    ]);
    expect(podOf(run(extendedResourceToleration, podSpec({}))).spec?.tolerations).toBeUndefined();
  });
});

describe('LimitPodHardAntiAffinityTopology', () => {
  const affinity = (topologyKey: string): Record<string, unknown> =>
    podSpec({ affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey }] } } });
  it('allows nodes only', () => {
    run(limitPodHardAntiAffinityTopology, affinity('kubernetes.io/hostname'));
    expect(() => run(limitPodHardAntiAffinityTopology, affinity('zone'))).toThrow(
      'affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed',
    );
  });
});

describe('NamespaceExists', () => {
  it('refuses what would be in a namespace that is not there', () => {
    expect(() => run(namespaceExists, podSpec({}))).toThrow('namespaces "demo" not found');
    run(namespaceExists, podSpec({}), { lookup: namespace({}) });
  });
});

describe('PodNodeSelector', () => {
  const selecting = (text: string) => ({
    lookup: namespace({ 'scheduler.alpha.kubernetes.io/node-selector': text }),
  });
  it('adds the namespace’s labels', () => {
    const pod = run(podNodeSelector, podSpec({ nodeSelector: { a: 'b' } }), selecting('zone=west, disk=ssd'));
    expect(podOf(pod).spec?.nodeSelector).toEqual({ a: 'b', zone: 'west', disk: 'ssd' });
    expect(podOf(run(podNodeSelector, podSpec({}), { lookup: namespace({}) })).spec?.nodeSelector).toBeUndefined();
  });

  it('refuses others', () => {
    expect(() => run(podNodeSelector, podSpec({ nodeSelector: { zone: 'east' } }), selecting('zone=west'))).toThrow(
      'pods "web" is forbidden: pod node label selector conflicts with its namespace node label selector',
    );
  });
});

describe('ClusterTrustBundleAttest', () => {
  const bundle = (signerName?: string): Record<string, unknown> => ({
    spec: { trustBundle: 'x', ...(signerName === undefined ? {} : { signerName }) },
  });
  const checked: string[] = [];
  const plugin = (allowed: boolean) =>
    clusterTrustBundleAttest(() => ({
      ...NO_AUTHORIZER,
      authorize: (_caller, { verb, resource, name }) => {
        checked.push(`${verb} ${resource} ${name}`);
        return { allowed, reason: '' };
      },
    }));
  const write = { kind: bundles };

  it('needs the right to attest for the signer', () => {
    run(plugin(true), bundle('example.org/a'), write);
    expect(() => run(plugin(false), bundle('example.org/a'), write)).toThrow(
      'user not permitted to attest for signerName "example.org/a"',
    );
    expect(checked.slice(-2)).toEqual(['attest signers example.org/a', 'attest signers example.org/*']);
  });

  it('lets bundles without a signer pass, and updates that change neither bundle nor signer', () => {
    run(plugin(false), bundle(), write);
    const old = object(bundles, bundle('example.org/a'));
    run(plugin(false), { ...bundle('example.org/a'), metadata: { finalizers: ['a/b'] } }, { ...write, old });
    expect(() => run(plugin(true), bundle('example.org/b'), { ...write, old })).toThrow(
      'changing signerName is forbidden',
    );
  });
});
