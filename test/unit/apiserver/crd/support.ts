// A registry with the rows that definitions need, and definitions to create in it.

import { DefinitionController } from '../../../../apiserver/crd/controller.ts';
import type { JsonSchema } from '../../../../apiserver/crd/types.ts';
import { customresourcedefinitions } from '../../../../apiserver/kinds/customresourcedefinitions.ts';
import { namespaces } from '../../../../apiserver/kinds/namespaces.ts';
import type { KubeObject, ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { RowTable } from '../../../../apiserver/kinds/rows.ts';
import { decodeObject } from '../../../../apiserver/registry/decode.ts';
import { Registry } from '../../../../apiserver/registry/registry.ts';
import { createObject } from '../../../../apiserver/registry/write.ts';
import { checkBody } from '../../../../apiserver/schema/decode.ts';
import { Store } from '../../../../apiserver/storage/store.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { ADMIN, ADMISSION } from '../support.ts';

export interface CrdFixture {
  readonly registry: Registry;
  readonly controller: DefinitionController;
  readonly log: readonly string[];
  /** From a JSON body, as a request has it. */
  create(row: ResourceKind, body: Record<string, unknown>, namespace?: string): KubeObject;
  row(version?: string): ResourceKind;
}

export function crdFixture(): CrdFixture {
  const clock = new VirtualClock();
  const store = new Store(':memory:', { clock });
  const kinds = new RowTable([namespaces, customresourcedefinitions]);
  const registry = new Registry({ store, clock, kinds, checkBody, admission: ADMISSION });
  const log: string[] = [];
  const conversions = { clock, call: () => Promise.reject(new Error('there is no webhook')), observe: () => undefined };
  const controller = new DefinitionController(registry, (line) => log.push(line), conversions);
  controller.start();
  const create: CrdFixture['create'] = (row, body, namespace = '') => {
    const object = decodeObject(registry.checkBody, row, structuredClone(body), undefined, ADMIN);
    return createObject(registry, row, namespace, object, ADMIN).object;
  };
  create(namespaces, { metadata: { name: 'ns' } });
  const row = (version = 'v1'): ResourceKind => {
    const found = registry.row('example.com', version, 'widgets');
    if (found === undefined) throw new Error(`example.com/${version} widgets are not served`);
    return found;
  };
  return { registry, controller, log, create, row };
}

export const WIDGET_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'string', enum: ['small', 'large'] },
        replicas: { type: 'integer', minimum: 0, maximum: 10, default: 1 },
      },
    },
    status: { type: 'object', properties: { ready: { type: 'boolean' } } },
  },
};

interface Overrides {
  readonly names?: Record<string, unknown>;
  readonly spec?: Record<string, unknown>;
  readonly version?: Record<string, unknown>;
  readonly name?: string;
}

export function widgets({
  names,
  spec,
  version,
  name = 'widgets.example.com',
}: Overrides = {}): Record<string, unknown> {
  return {
    metadata: { name },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget', ...names },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: WIDGET_SCHEMA }, ...version }],
      ...spec,
    },
  };
}
