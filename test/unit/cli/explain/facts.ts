// Facts for the tables of the rules: a pod that is all right, and what a case changes about it.

import type { ClaimFact, EventFact, PodFacts, References } from '../../../../cli/explain/facts.ts';
import type { Finding, Rule } from '../../../../cli/explain/finding.ts';
import type { ContainerStatus, Node, Pod, PodSpec, PodStatus } from '../../../../client/types.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';

/** All cases happen now. */
export const NOW = epochMs(Date.UTC(2026, 0, 2, 12, 0, 0));

/** A time of the API, so many seconds before now. */
export function before(seconds: number): string {
  return rfc3339(plusMs(NOW, -seconds * 1000));
}

export function node(name = 'n1', change: Partial<Node> = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: name, resourceVersion: '1', labels: { 'kubernetes.io/hostname': name } },
    spec: {},
    status: {
      allocatable: { cpu: '2', memory: '1Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
    },
    ...change,
  };
}

export function event(reason: string, message: string, change: Partial<EventFact> = {}): EventFact {
  const first = plusMs(NOW, -60_000);
  return { type: 'Warning', reason, message, count: 3, first, last: plusMs(NOW, -5_000), source: 'kubelet', ...change };
}

export interface PodChange {
  readonly meta?: Partial<Pod['metadata']>;
  readonly spec?: Partial<PodSpec>;
  readonly container?: Partial<PodSpec['containers'][number]>;
  readonly status?: PodStatus;
  /** Of the container main. */
  readonly state?: Partial<ContainerStatus>;
}

export function pod({ meta = {}, spec = {}, container = {}, status = {}, state }: PodChange = {}): Pod {
  const main: ContainerStatus = {
    name: 'main',
    image: 'busybox:stable',
    imageID: '',
    ready: false,
    started: false,
    restartCount: 0,
    ...state,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: 'demo',
      uid: 'u1',
      resourceVersion: '1',
      creationTimestamp: before(90),
      ...meta,
    },
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'busybox:stable', ...container }], ...spec },
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'True' }],
      ...(state === undefined ? {} : { containerStatuses: [main] }),
      ...status,
    },
  };
}

export function references(change: Partial<References> = {}): References {
  return {
    configMaps: new Map(),
    secrets: new Map(),
    claims: new Map(),
    serviceAccount: { state: 'found', value: {} },
    runtimeClass: undefined,
    configMapNames: [],
    secretNames: [],
    drivers: undefined,
    attachments: [],
    attachDrivers: [],
    ...change,
  };
}

export function facts(own: PodChange = {}, change: Partial<PodFacts> = {}): PodFacts {
  return {
    kind: 'pod',
    now: NOW,
    gaps: [],
    events: [],
    pod: pod(own),
    nodes: [node()],
    placed: [],
    lease: undefined,
    references: references(),
    spans: [],
    open: [],
    runtime: undefined,
    downloads: [],
    machine: undefined,
    logs: [],
    ...change,
  };
}

export function claim(change: Partial<ClaimFact> = {}, spec: object = {}, phase = 'Pending'): ClaimFact {
  return {
    claim: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: 'demo', uid: 'c1', resourceVersion: '1', creationTimestamp: before(80) },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
      status: { phase },
    },
    volume: undefined,
    storageClass: undefined,
    events: [],
    ...change,
  };
}

export const waiting = (reason: string, message = ''): Partial<ContainerStatus> => ({
  state: { waiting: { reason, message } },
});

/** The last instance ended so, and the next one waits. */
export function crashed(
  terminated: {
    readonly exitCode: number;
    readonly reason?: string;
    readonly message?: string;
    readonly signal?: number;
  },
  restartCount = 3,
): Partial<ContainerStatus> {
  const at = { startedAt: before(12), finishedAt: before(10) };
  return {
    restartCount,
    state: {
      waiting: {
        reason: 'CrashLoopBackOff',
        message: 'back-off 40s restarting failed container=main pod=web_demo(u1)',
      },
    },
    lastState: { terminated: { ...at, containerID: 'containerd://abc', ...terminated } },
  };
}

/** The verdict, the chain and the commands in one text, for matching. */
export function textOf(finding: Finding | undefined): string {
  if (finding === undefined) return '';
  const chain = finding.chain.map(({ text, call }) =>
    call === undefined
      ? text
      : `${text} [${call.name} → ${call.to}${call.with === undefined ? '' : ` with ${call.with}`}: ${call.answer}]`,
  );
  const commands = finding.commands.map(({ command }) => `$ ${command}`);
  return [finding.verdict, ...chain, ...commands].join('\n');
}

export interface RuleCase {
  readonly what: string;
  readonly facts: PodFacts;
  /** What the text of the finding has; undefined: the rule has no opinion. */
  readonly finds: readonly (RegExp | string)[] | undefined;
  readonly state?: Finding['state'];
}

/** What is wrong with the rule's finding for the case; empty when it is as expected. */
export function mismatches(rule: Rule<PodFacts>, { facts: given, finds, state }: RuleCase): readonly string[] {
  const finding = rule.find(given);
  if (finds === undefined) return finding === undefined ? [] : [`found: ${finding.verdict}`];
  if (finding === undefined) return ['found nothing'];
  const text = textOf(finding);
  const absent = finds.filter((each) => (typeof each === 'string' ? !text.includes(each) : !each.test(text)));
  return [
    ...absent.map((each) => `${each} is not in: ${text}`),
    ...(state === undefined || state === finding.state ? [] : [`the state is ${finding.state}`]),
  ];
}
