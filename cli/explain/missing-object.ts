// A ConfigMap or Secret, or a key in it, that a pod needs and that is not there. Pure.

import type { KeyedObject, Lookup, PodFacts } from './facts.ts';
import type { FailedCall } from './finding.ts';
import { list, similarName } from './words.ts';

export interface ObjectReference {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  /** Undefined: the object alone. */
  readonly key: string | undefined;
  /** "volume config", "variable PASSWORD of container main" */
  readonly by: string;
}

export interface Missing {
  /** "ConfigMap settings has no key color (it has colour)" */
  readonly text: string;
  readonly call: FailedCall;
  readonly command: { readonly command: string; readonly why: string };
}

/** What volumes need; optional things are left out. */
export function volumeReferences({ pod }: PodFacts): readonly ObjectReference[] {
  const mounted = new Set(
    [...(pod.spec.initContainers ?? []), ...pod.spec.containers].flatMap(({ volumeMounts = [] }) =>
      volumeMounts.map(({ name }) => name),
    ),
  );
  const references: ObjectReference[] = [];
  const add = (
    kind: ObjectReference['kind'],
    by: string,
    name: string | undefined,
    items: readonly { readonly key: string }[] | undefined,
    optional: boolean | undefined,
  ): void => {
    if (name === undefined || optional === true) return;
    references.push({ kind, name, key: undefined, by });
    for (const { key } of items ?? []) references.push({ kind, name, key, by });
  };
  for (const { name, configMap, secret, projected } of pod.spec.volumes ?? []) {
    // A volume that no container mounts is not made.
    if (!mounted.has(name)) continue;
    const by = `volume ${name}`;
    add('ConfigMap', by, configMap?.name, configMap?.items, configMap?.optional);
    add('Secret', by, secret?.secretName, secret?.items, secret?.optional);
    for (const source of projected?.sources ?? []) {
      add('ConfigMap', by, source.configMap?.name, source.configMap?.items, source.configMap?.optional);
      add('Secret', by, source.secret?.name, source.secret?.items, source.secret?.optional);
    }
  }
  return references;
}

/** What the environment of a container needs. */
export function environmentReferences({ pod }: PodFacts, container: string): readonly ObjectReference[] {
  const spec = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find(({ name }) => name === container);
  const references: ObjectReference[] = [];
  for (const { name, valueFrom } of spec?.env ?? []) {
    const by = `variable ${name} of container ${container}`;
    const { configMapKeyRef: config, secretKeyRef: secret } = valueFrom ?? {};
    if (config?.name !== undefined && config.optional !== true)
      references.push({ kind: 'ConfigMap', name: config.name, key: config.key, by });
    if (secret?.name !== undefined && secret.optional !== true)
      references.push({ kind: 'Secret', name: secret.name, key: secret.key, by });
  }
  for (const { configMapRef: config, secretRef: secret } of spec?.envFrom ?? []) {
    const by = `envFrom of container ${container}`;
    if (config?.name !== undefined && config.optional !== true)
      references.push({ kind: 'ConfigMap', name: config.name, key: undefined, by });
    if (secret?.name !== undefined && secret.optional !== true)
      references.push({ kind: 'Secret', name: secret.name, key: undefined, by });
  }
  return references;
}

/** What is wrong with the object or the key; undefined: it is right, or it could not be read. */
export function missing(facts: PodFacts, { kind, name, key }: ObjectReference): Missing | undefined {
  const { configMaps, secrets, configMapNames, secretNames } = facts.references;
  const { namespace } = facts.pod.metadata;
  const lookup: Lookup<KeyedObject> | undefined = (kind === 'ConfigMap' ? configMaps : secrets).get(name);
  const plural = kind === 'ConfigMap' ? 'configmaps' : 'secrets';
  const call = { name: `GET ${plural}/${name}`, to: 'the API server', with: `namespace ${namespace}` };
  if (lookup?.state === 'absent') {
    const hint = similarName(name, kind === 'ConfigMap' ? configMapNames : secretNames);
    return {
      text: `${kind} ${name} does not exist${hint === undefined ? '' : ` (${hint})`}`,
      call: { ...call, answer: `${plural} "${name}" not found` },
      command: {
        command: `kubectl -n ${namespace} get ${plural}`,
        why: `the ${kind}s that there are; the pod goes on by itself when ${name} is made`,
      },
    };
  }
  if (lookup?.state !== 'found' || key === undefined || lookup.value.keys.includes(key)) return undefined;
  const { keys } = lookup.value;
  return {
    text: `${kind} ${name} has no key ${key} (${keys.length === 0 ? 'it is empty' : `it has ${list(keys.slice(0, 6))}`})`,
    call: { ...call, answer: `found, with ${keys.length === 0 ? 'no keys' : `keys ${keys.slice(0, 6).join(', ')}`}` },
    command: {
      command: `kubectl -n ${namespace} describe ${plural.slice(0, -1)} ${name}`,
      why: `the keys that it has; the pod goes on by itself when ${key} is added`,
    },
  };
}
