// The options and dependencies of the node part. The configuration's fields are those of KubeletConfiguration, so that it can
// be passed as it is. Types only.

import type { ApiClient } from '../../client/api.ts';
import type { Node } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { PodNetwork } from '../ports/node.ts';
import type { ContainerRuntime } from '../ports/runtime.ts';
import type { NodePressure } from './conditions.ts';
import type { MachineFacts } from './facts.ts';
import type { HealthChecks } from './health.ts';

/** The part of KubeletConfiguration that a Node is made of. Durations in ms. */
export interface NodeConfig {
  readonly registerNode: boolean;
  readonly registerWithTaints: readonly {
    readonly key: string;
    readonly value: string;
    readonly effect: string;
    readonly timeAdded?: string | undefined;
  }[];
  readonly providerID: string;
  /** How often the status is computed, and written when it has changed. */
  readonly nodeStatusUpdateFrequency: number;
  /** How often it is written when it has not. */
  readonly nodeStatusReportFrequency: number;
  readonly nodeLeaseDurationSeconds: number;
  /** -1 is no limit. */
  readonly nodeStatusMaxImages: number;
  readonly maxPods: number;
  /** 0 is no limit per core. */
  readonly podsPerCore: number;
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly evictionHard: Readonly<Record<string, string>>;
}

export interface NodeAgentOptions {
  readonly nodeName: string;
  /** As `chooseNodeIPs` returned them, primary first. */
  readonly nodeIPs: readonly string[];
  /** --node-labels. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Where the kubelet's HTTPS API listens. */
  readonly kubeletPort: number;
  /** "v1.34.0": the Kubernetes version whose kubelet behaviour we follow. */
  readonly kubeletVersion: string;
  readonly config: NodeConfig;
  readonly client: Pick<ApiClient, 'get' | 'create' | 'patch' | 'replace'>;
  readonly runtime: Pick<ContainerRuntime, 'status' | 'version' | 'listImages'>;
  readonly network: Pick<PodNetwork, 'status'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  /** From `gatherFacts`. */
  readonly facts: MachineFacts;
  /** Called at each status; nothing is scarce by default. */
  readonly pressure?: () => NodePressure;
  /** Checks of the agent's own, by name; called at each check of its health. Each returns the whole message. */
  readonly checks?: HealthChecks;
  /** Why the node is going, if it is; called at each check of its health. */
  readonly shutdown?: () => string | undefined;
  /** Attachable volumes that are in use here; called at each status. */
  readonly volumesInUse?: () => readonly string[];
  /** Called with the volumesInUse of the status on the server. */
  readonly onVolumesWritten?: (names: readonly string[]) => void;
  /** The Node as a watch shows it, its images aside; undefined where it does not. Without it the Node is read for each status. */
  readonly watched?: () => Node | undefined;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
}
