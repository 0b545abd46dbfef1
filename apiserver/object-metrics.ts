// What /metrics shows of what is stored: how many objects of each resource, the size of the file, and which APIServices do not
// answer. Read when it is shown.

import { statSync } from 'node:fs';
import { Gauge, type Registry as PromRegistry } from 'prom-client';
import { isObject } from './patch/json-value.ts';
import type { Registry } from './registry/registry.ts';

export interface ObjectMetricsParts {
  readonly registers: PromRegistry[];
  /** Of the store's file; absent for etcd, which has figures of its own. */
  readonly path?: string;
}

export function objectMetrics(registry: Registry, { registers, path }: ObjectMetricsParts): void {
  new Gauge({
    name: 'apiserver_resource_objects',
    help: 'Objects that are stored, by resource.',
    labelNames: ['group', 'resource'],
    registers,
    collect() {
      this.reset();
      for (const { group, resource, count } of counts(registry)) this.set({ group, resource }, count);
    },
  });
  new Gauge({
    name: 'apiserver_storage_objects',
    help: 'The same by the name from before Kubernetes 1.34.',
    labelNames: ['resource'],
    registers,
    collect() {
      this.reset();
      for (const { group, resource, count } of counts(registry)) {
        this.set({ resource: group === '' ? resource : `${resource}.${group}` }, count);
      }
    },
  });
  new Gauge({
    name: 'aggregator_unavailable_apiservice',
    help: '1 for each APIService that is not available, else 0.',
    labelNames: ['name'],
    registers,
    collect() {
      this.reset();
      for (const { metadata, status } of registry.lookup.list('apiregistration.k8s.io', 'apiservices')) {
        this.set({ name: metadata.name ?? '' }, isAvailable(status) ? 0 : 1);
      }
    },
  });
  if (path === undefined) return;
  new Gauge({
    name: 'apiserver_storage_size_bytes',
    help: 'Bytes of the file that everything is stored in.',
    labelNames: ['storage_cluster_id'],
    registers,
    collect() {
      this.set({ storage_cluster_id: 'file' }, statSync(path).size);
    },
  });
}

interface Count {
  readonly group: string;
  readonly resource: string;
  readonly count: number;
}

function counts(registry: Registry): readonly Count[] {
  const { store, rows } = registry;
  const stored = rows.all.filter((row) => row.storedAs === undefined && row.computed === undefined);
  const names = new Map(stored.map((row) => [registry.resource(row), row]));
  return Array.from(names, ([name, { group, plural }]) => ({
    group,
    resource: plural,
    count: store.countAt(store.revision, name),
  }));
}

function isAvailable(status: unknown): boolean {
  const conditions = isObject(status) ? status['conditions'] : undefined;
  return (
    Array.isArray(conditions) &&
    conditions.some((one) => isObject(one) && one['type'] === 'Available' && one['status'] === 'True')
  );
}
