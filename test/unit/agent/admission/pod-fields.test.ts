// That docs/pod-fields.md speaks of every field of a pod's specification, and of no other; that what it calls done is at
// least known to the agent; and that what it calls refused is.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { refuseAbsentFeatures } from '../../../../agent/admission/features.ts';
import { resolveEnvironment } from '../../../../agent/pods/environment.ts';
import { prepareVolume } from '../../../../agent/volumes/registry.ts';
import type { Pod } from '../../../../client/types.ts';
import { makePod } from '../../../sim/fakes.ts';

const root = join(import.meta.dirname, '../../../..');
const page = readFileSync(join(root, 'docs/pod-fields.md'), 'utf8');
const schema: Record<string, { fields: Record<string, unknown> }> = JSON.parse(
  readFileSync(join(root, 'apiserver/gen/schema.json'), 'utf8'),
);
/** Fields that the embedded API server does not know yet, and a newer one may send. */
const NEWER: Readonly<Record<string, readonly string[]>> = {
  PodSpec: ['defaultNetwork', 'schedulingGroup', 'workloadRef'],
  SecurityContext: ['cgroupOptions'],
};
const sources = readdirSync(join(root, 'agent'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(root, 'agent', name), 'utf8'))
  .join('\n');

/** By type: the fields that are done, and the others with their notes. */
const sections = page
  .split('\n## ')
  .slice(1)
  .map((text) => {
    const [type = '', ...lines] = text.split('\n');
    const rows = lines.flatMap((line) => {
      const doneHere = /^- done: (.*)$/.exec(line);
      const other = /^- ((?:`\w+`(?:, )?)+): (.*)$/.exec(line);
      const [names, note] = doneHere === null ? [other?.[1], other?.[2]] : [doneHere[1], 'done'];
      return [...(names ?? '').matchAll(/`(\w+)`/g)].map((match) => [match[1] ?? '', note ?? ''] as const);
    });
    return [type, rows] as const;
  });

describe.each(sections)('%s', (type, rows) => {
  test('has all of its fields on the page, each once', () => {
    const fields = Object.keys(schema[`io.k8s.api.core.v1.${type}`]?.fields ?? {});
    expect(rows.map(([name]) => name).sort()).toEqual([...fields, ...(NEWER[type] ?? [])].sort());
  });

  test('says "done" of fields that the agent knows', () => {
    const unknown = rows.filter(
      ([name, note]) => note.startsWith('done') && !new RegExp(`\\b${name}\\b`).test(sources),
    );
    expect(unknown).toEqual([]);
  });
});

const FAR_FUTURE = {
  spec: (more: object): Pod => {
    const one = makePod('p');
    return { ...one, spec: { ...one.spec, ...more } };
  },
  container: (more: object): Pod => {
    const one = makePod('p');
    return { ...one, spec: { ...one.spec, containers: one.spec.containers.map((c) => ({ ...c, ...more })) } };
  },
};
const { spec, container } = FAR_FUTURE;

describe('a pod that needs what nodelet has not', () => {
  test.each<[string, Pod]>([
    ['DynamicResourceAllocation', spec({ resourceClaims: [{ name: 'gpu', resourceClaimName: 'g' }] })],
    ['DynamicResourceAllocation', container({ resources: { claims: [{ name: 'gpu' }] } })],
    ['PodDefaultNetworkNone', spec({ defaultNetwork: 'None' })],
    ['CgroupOptions', container({ securityContext: { cgroupOptions: { mountMode: 'Writable' } } })],
    [
      'RestartAllContainersOnContainerExits',
      container({ restartPolicyRules: [{ action: 'Restart' }, { action: 'RestartAllContainers' }] }),
    ],
  ])('is refused at its admission: %s', (feature, pod) => {
    expect(refuseAbsentFeatures(pod)).toEqual({
      reason: 'PodFeatureUnsupported',
      message: `Pod requires node features that are not available: ${feature}`,
    });
    // A running one is not checked again.
    expect(refuseAbsentFeatures({ ...pod, status: { phase: 'Running' } })).toBeUndefined();
  });

  test.each<[string, Pod]>([
    ['nothing of it', makePod('p')],
    ['no claims', spec({ resourceClaims: [] })],
    ['the default network', spec({ defaultNetwork: 'Default' })],
    ['a rule that restarts one container', container({ restartPolicyRules: [{ action: 'Restart' }] })],
  ])('and one with %s is not', (_, pod) => {
    expect(refuseAbsentFeatures(pod)).toBeUndefined();
  });

  test('waits for a variable from a file', () => {
    const env = [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'a.env', key: 'A' } } }];
    const pod = container({ env });
    const [first] = pod.spec.containers;
    if (first === undefined) throw new Error('no container');
    const facts = {
      pod,
      container: first,
      configMaps: new Map(),
      secrets: new Map(),
      services: new Map(),
      podIPs: [],
      hostIPs: [],
      allocatable: {},
    };
    expect(() => resolveEnvironment(facts)).toThrow('environment variable A: fileKeyRef is not supported on this node');
  });

  test.each<[string, object]>([
    ['projected volume source podCertificate', { projected: { sources: [{ podCertificate: { signerName: 's' } }] } }],
    ['volume type gitRepo', { gitRepo: { repository: 'r' } }],
    ['volume type notYetInvented', { notYetInvented: {} }],
  ])('waits for a volume: %s is not supported', (what, source) => {
    const input = { pod: makePod('p'), volume: { name: 'v', ...source }, podDir: '/none', allocatable: {} };
    expect(() => prepareVolume(input)).toThrow(`${what} is not supported`);
  });
});
