// What another API server serves in a version, from its legacy discovery, in the form that aggregated discovery has. Pure.

import { isObject, type JsonObject } from '../patch/json-value.ts';

/** Undefined for what is no APIResourceList. */
export function discoveredResources(document: unknown, group: string, version: string): JsonObject[] | undefined {
  if (!isObject(document) || document['kind'] !== 'APIResourceList' || !Array.isArray(document['resources']))
    return undefined;
  const byName = new Map<string, JsonObject>();
  const listed = document['resources'].filter(isObject);
  const kindOf = (one: JsonObject): JsonObject => ({
    group: one['group'] ?? group,
    version: one['version'] ?? version,
    kind: one['kind'],
  });
  for (const one of listed) {
    const name = String(one['name'] ?? '');
    if (name === '' || name.includes('/')) continue;
    byName.set(name, {
      resource: name,
      responseKind: kindOf(one),
      scope: one['namespaced'] === true ? 'Namespaced' : 'Cluster',
      singularResource: one['singularName'] ?? '',
      verbs: one['verbs'] ?? [],
      ...(one['shortNames'] === undefined ? {} : { shortNames: one['shortNames'] }),
      ...(one['categories'] === undefined ? {} : { categories: one['categories'] }),
    });
  }
  for (const one of listed) {
    const [parent = '', subresource] = String(one['name'] ?? '').split('/');
    const found = byName.get(parent);
    if (found === undefined || subresource === undefined) continue;
    const before = Array.isArray(found['subresources']) ? found['subresources'] : [];
    found['subresources'] = [...before, { subresource, responseKind: kindOf(one), verbs: one['verbs'] ?? [] }];
  }
  return [...byName.values()];
}
