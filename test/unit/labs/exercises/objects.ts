import type { Node, Pod } from '../../../../client/types.ts';
import type { Finding } from '../../../../labs/exercises/model.ts';

export type Container = Pod['spec']['containers'][number];

export interface Shape {
  readonly ready?: boolean;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly container?: Partial<Container>;
  readonly spec?: Partial<Pod['spec']>;
  readonly status?: Pod['status'];
  readonly deleted?: boolean;
}

export const RUNNING = { running: { startedAt: '2026-01-01T00:00:00Z' } };

export function pod(
  name: string,
  { ready = false, labels, annotations, container, spec, status, deleted }: Shape = {},
): Pod {
  return {
    metadata: {
      name,
      namespace: 'e',
      uid: 'u',
      resourceVersion: '1',
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(deleted === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { containers: [{ name: 'main', ...container }], ...spec },
    status: status ?? {
      phase: ready ? 'Running' : 'Pending',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      ...(ready
        ? {
            containerStatuses: [
              { name: 'main', image: 'i', imageID: 'sha256:1', ready, started: true, restartCount: 0, state: RUNNING },
            ],
          }
        : {}),
    },
  };
}

export function node(spec: Node['spec'] = {}, ready = 'True', labels: Record<string, string> = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', uid: 'u', resourceVersion: '1', labels },
    spec,
    status: { conditions: [{ type: 'Ready', status: ready, message: 'because' }] },
  };
}

/** How many findings miss something, by their subjects. */
export const missing = (findings: readonly Finding[]): readonly string[] =>
  findings.filter((each) => each.missing !== undefined).map(({ subject }) => subject);
