// The Node object that a node registers itself with, and what it sets right on one that exists already. Pure.

import type { Node as CoreNode, Taint } from 'kubernetes-types/core/v1';
import type { Node } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { MachineFacts } from './facts.ts';
import type { NodeConfig } from './options.ts';
import type { FullNodeStatus } from './status.ts';

const ATTACH_DETACH = 'volumes.kubernetes.io/controller-managed-attach-detach';

export interface RegistrationInput {
  readonly nodeName: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly facts: MachineFacts;
  readonly config: Pick<NodeConfig, 'registerWithTaints' | 'providerID'>;
}

/** Labels that every kubelet sets on its own Node and reconciles. */
export function defaultLabels(facts: Pick<MachineFacts, 'architecture'>, nodeName: string): Record<string, string> {
  return {
    'beta.kubernetes.io/arch': facts.architecture,
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': facts.architecture,
    'kubernetes.io/hostname': nodeName,
    'kubernetes.io/os': 'linux',
  };
}

/** The object to create. */
export function newNode(input: RegistrationInput, status: FullNodeStatus): CoreNode & { metadata: { name: string } } {
  const { config, facts, nodeName } = input;
  const taints = config.registerWithTaints.map(
    ({ key, value, effect, timeAdded }): Taint => ({
      key,
      ...(value === '' ? {} : { value }),
      effect,
      ...(timeAdded === undefined ? {} : { timeAdded }),
    }),
  );
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName,
      labels: { ...defaultLabels(facts, nodeName), ...input.nodeLabels },
      annotations: { [ATTACH_DETACH]: 'true' },
    },
    spec: {
      ...(taints.length === 0 ? {} : { taints }),
      ...(config.providerID === '' ? {} : { providerID: config.providerID }),
    },
    status,
  };
}

/**
 * The merge patch that adopts an existing Node, or undefined when nothing is wrong with it. As the kubelet does it:
 * default labels and the attach-detach annotation are set right; taints and further labels belong to the components that manage
 * the node since.
 */
export function adoptionPatch(existing: Node, input: RegistrationInput): object | undefined {
  const labels = Object.entries(defaultLabels(input.facts, input.nodeName)).filter(
    ([key, value]) => getOwn(existing.metadata.labels, key) !== value,
  );
  const annotated = existing.metadata.annotations?.[ATTACH_DETACH] === 'true';
  const { providerID } = input.config;
  const needsProvider = providerID !== '' && (existing.spec?.providerID ?? '') === '';
  if (labels.length === 0 && annotated && !needsProvider) return undefined;
  return {
    metadata: {
      ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
      ...(annotated ? {} : { annotations: { [ATTACH_DETACH]: 'true' } }),
    },
    ...(needsProvider ? { spec: { providerID } } : {}),
  };
}
