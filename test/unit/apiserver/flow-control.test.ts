import { beforeEach, describe, expect, it } from 'vitest';
import { ensureFlowControl, mayUpdate } from '../../../apiserver/flow-control.ts';
import { RESOURCE_KINDS } from '../../../apiserver/kinds/index.ts';
import type { KubeObject } from '../../../apiserver/kinds/resource.ts';
import { Registry } from '../../../apiserver/registry/registry.ts';
import { mutateStored } from '../../../apiserver/registry/write.ts';
import { checkBody } from '../../../apiserver/schema/decode.ts';
import { Store } from '../../../apiserver/storage/store.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { ADMIN, ADMISSION } from './support.ts';

const GROUP = 'flowcontrol.apiserver.k8s.io';
let registry: Registry;
beforeEach(() => {
  const clock = new VirtualClock();
  const store = new Store(':memory:', { clock, history: { count: 1000 } });
  registry = new Registry({ store, clock, kinds: RESOURCE_KINDS, checkBody, admission: ADMISSION });
  ensureFlowControl(registry, ADMIN);
});

const all = (plural: string): KubeObject[] => [...registry.lookup.list(GROUP, plural)];
const one = (plural: string, name: string): Readonly<KubeObject> =>
  registry.get(registry.rowOf(GROUP, plural), '', name).object;

function change(name: string, edit: (object: KubeObject) => void): void {
  const row = registry.rowOf(GROUP, 'prioritylevelconfigurations');
  mutateStored(registry, row, registry.need(row, '', name), false, edit);
}

describe('the objects that every cluster has', () => {
  it('are there, are valid, and refer to each other', () => {
    const levels = new Set(all('prioritylevelconfigurations').map(({ metadata }) => metadata.name));
    expect([...levels].sort()).toEqual([
      'catch-all',
      'exempt',
      'global-default',
      'leader-election',
      'node-high',
      'system',
      'workload-high',
      'workload-low',
    ]);
    const schemas = all('flowschemas');
    expect(schemas).toHaveLength(11);
    for (const schema of schemas) {
      expect(schema).toMatchObject({ metadata: { annotations: { 'apf.kubernetes.io/autoupdate-spec': 'true' } } });
      expect(levels).toContain(Reflect.get(Object(schema['spec']), 'priorityLevelConfiguration').name);
    }
  });

  it('are written once', () => {
    const before = all('flowschemas').concat(all('prioritylevelconfigurations'));
    ensureFlowControl(registry, ADMIN);
    expect(all('flowschemas').concat(all('prioritylevelconfigurations'))).toEqual(before);
  });

  it('are put right where they are mandatory, and left where an administrator keeps them', () => {
    const annotate = (value: string) => ({ 'apf.kubernetes.io/autoupdate-spec': value });
    const spec = { type: 'Limited', limited: { limitResponse: { type: 'Reject' }, nominalConcurrencyShares: 1 } };
    for (const name of ['catch-all', 'system', 'node-high']) {
      change(name, (object) => {
        object['spec'] = spec;
        object.metadata.annotations = annotate(name === 'node-high' ? 'true' : 'false');
      });
    }
    ensureFlowControl(registry, ADMIN);
    const shares = (name: string): unknown => one('prioritylevelconfigurations', name)['spec'];
    expect(shares('catch-all')).toMatchObject({ limited: { nominalConcurrencyShares: 5 } });
    expect(shares('node-high')).toMatchObject({ limited: { nominalConcurrencyShares: 40 } });
    expect(shares('system')).toEqual(spec);
    expect(one('prioritylevelconfigurations', 'node-high').metadata.generation).toBe(2);
  });

  it.each<[string | undefined, number, boolean, boolean]>([
    [undefined, 1, false, true],
    [undefined, 2, false, false],
    ['true', 2, false, true],
    ['false', 1, false, false],
    ['false', 2, true, true],
  ])('annotation %s, generation %d, mandatory %s: replaced %s', (annotation, generation, mandatory, expected) => {
    const annotations = annotation === undefined ? {} : { 'apf.kubernetes.io/autoupdate-spec': annotation };
    const object = { apiVersion: 'v1', kind: 'FlowSchema', metadata: { generation, annotations } };
    expect(mayUpdate(object, mandatory)).toBe(expected);
  });
});
