// The environment of a container: which objects it refers to, and the variables once those have been read. Pure; the
// objects and addresses are passed in. Failures are worded as the kubelet's CreateContainerConfigError.

import type { ConfigMap, Container, EphemeralContainer, Pod, Secret } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { expandVariables } from '../../lib/expand.ts';
import { getOwn } from '../../lib/own-property.ts';
import {
  containerNamed,
  containerResourceText,
  metadataFieldText,
  type ResourceFieldRef,
} from '../model/downward-api.ts';

export interface EnvVar {
  readonly name: string;
  readonly value: string;
}

/** The environment cannot be built from what there is. The message is the container's waiting message. */
export class EnvironmentError extends Error {
  override name = 'EnvironmentError';
}

export interface EnvironmentFacts {
  readonly pod: Pod;
  readonly container: Container | EphemeralContainer;
  /** By name; a missing entry does not exist. */
  readonly configMaps: ReadonlyMap<string, ConfigMap>;
  readonly secrets: ReadonlyMap<string, Secret>;
  /** Variables about services; they yield to any of the same name. */
  readonly services: ReadonlyMap<string, string>;
  readonly podIPs: readonly string[];
  readonly hostIPs: readonly string[];
  /** Allocatable of the node, which replaces a limit that is not set. */
  readonly allocatable: Readonly<Record<string, string>>;
}

/** Names of the ConfigMaps and Secrets that the container's environment needs. */
export function environmentReferences(container: Container | EphemeralContainer): {
  configMaps: ReadonlySet<string>;
  secrets: ReadonlySet<string>;
} {
  const configMaps = new Set<string>();
  const secrets = new Set<string>();
  const add = (set: Set<string>, name: string | undefined): void => {
    if (name !== undefined) set.add(name);
  };
  for (const source of container.envFrom ?? []) {
    add(configMaps, source.configMapRef?.name);
    add(secrets, source.secretRef?.name);
  }
  for (const variable of container.env ?? []) {
    add(configMaps, variable.valueFrom?.configMapKeyRef?.name);
    add(secrets, variable.valueFrom?.secretKeyRef?.name);
  }
  return { configMaps, secrets };
}

function decodeSecret(secret: Secret): Record<string, string> {
  const data = Object.entries(secret.data ?? {});
  return Object.fromEntries(data.map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));
}

function fieldValue({ pod, podIPs, hostIPs }: EnvironmentFacts, path: string): string {
  switch (path) {
    case 'spec.nodeName':
      return pod.spec.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return hostIPs[0] ?? '';
    case 'status.hostIPs':
      return hostIPs.join(',');
    case 'status.podIP':
      return podIPs[0] ?? '';
    case 'status.podIPs':
      return podIPs.join(',');
    default: {
      const text = metadataFieldText(pod, path);
      if (text === undefined) throw new EnvironmentError(`unsupported fieldPath: ${path}`);
      return text;
    }
  }
}

/** Without a name: the container itself. */
function resourceValue(facts: EnvironmentFacts, ref: ResourceFieldRef): string {
  const { containerName = '' } = ref;
  try {
    const container = containerName === '' ? facts.container : containerNamed(facts.pod, containerName);
    return containerResourceText(facts.pod, container, ref, facts.allocatable);
  } catch (error) {
    throw new EnvironmentError(errorMessage(error), { cause: error });
  }
}

type ValueSource = NonNullable<NonNullable<Container['env']>[number]['valueFrom']>;

/** The value of a reference; undefined when an optional one leads nowhere. */
function referredValue(facts: EnvironmentFacts, variable: string, from: ValueSource): string | undefined {
  const { namespace } = facts.pod.metadata;
  if (from.fieldRef !== undefined) return fieldValue(facts, from.fieldRef.fieldPath);
  if (from.resourceFieldRef !== undefined) return resourceValue(facts, from.resourceFieldRef);
  const ref = from.configMapKeyRef ?? from.secretKeyRef;
  if (ref === undefined) {
    const sources = Object.keys(from).join(', ');
    throw new EnvironmentError(`environment variable ${variable}: ${sources} is not supported on this node`);
  }
  const name = ref.name ?? '';
  const ofConfigMap = from.configMapKeyRef !== undefined;
  const [kind, word] = ofConfigMap ? ['ConfigMap', 'configmap'] : ['Secret', 'secret'];
  const configMap = facts.configMaps.get(name);
  const secret = facts.secrets.get(name);
  const data = ofConfigMap ? configMap && (configMap.data ?? {}) : secret && decodeSecret(secret);
  if (data === undefined) {
    if (ref.optional === true) return undefined;
    throw new EnvironmentError(`${word} "${name}" not found`);
  }
  const value = getOwn(data, ref.key);
  if (value === undefined && ref.optional !== true) {
    throw new EnvironmentError(`couldn't find key ${ref.key} in ${kind} ${namespace}/${name}`);
  }
  return value;
}

/** Any key becomes a variable, whatever its name: kubelets skip none since 1.34 (RelaxedEnvironmentVariableValidation). */
function addAllFrom(facts: EnvironmentFacts, env: Map<string, string>): void {
  for (const source of facts.container.envFrom ?? []) {
    const ref = source.configMapRef ?? source.secretRef;
    if (ref === undefined) continue;
    const kind = source.configMapRef === undefined ? 'secret' : 'configmap';
    const name = ref.name ?? '';
    const secret = facts.secrets.get(name);
    const data = kind === 'configmap' ? facts.configMaps.get(name) : secret && { data: decodeSecret(secret) };
    if (data === undefined) {
      if (ref.optional === true) continue;
      throw new EnvironmentError(`${kind} "${name}" not found`);
    }
    for (const [key, value] of Object.entries(data.data ?? {})) env.set(`${source.prefix ?? ''}${key}`, value);
  }
}

/**
 * The variables in order: envFrom, then env (each may refer to those before it and to services), then service
 * variables that nothing hides. Throws EnvironmentError.
 */
export function resolveEnvironment(facts: EnvironmentFacts): readonly EnvVar[] {
  const env = new Map<string, string>();
  addAllFrom(facts, env);
  const lookup = (name: string): string | undefined => env.get(name) ?? facts.services.get(name);
  for (const variable of facts.container.env ?? []) {
    // An object without a field is no source, as protobuf has it.
    const from = Object.keys(variable.valueFrom ?? {}).length === 0 ? undefined : variable.valueFrom;
    const value =
      from === undefined ? expandVariables(variable.value ?? '', lookup) : referredValue(facts, variable.name, from);
    if (value !== undefined) env.set(variable.name, value);
  }
  for (const [name, value] of facts.services) if (!env.has(name)) env.set(name, value);
  return [...env].map(([name, value]) => ({ name, value }));
}
