// What kubectl explain shows of types that are no part of upstream's published API, and so of no package: those of metrics-server,
// in words of our own.

export interface OwnDescription {
  readonly type: string;
  readonly fields: Readonly<Record<string, string>>;
}

const METRICS = 'io.k8s.metrics.pkg.apis.metrics.v1beta1';
const METADATA = 'Name, labels, annotations and what else every object has.';

/** By the full name of the definition. */
export const OWN_DESCRIPTIONS: Readonly<Record<string, OwnDescription>> = {
  [`${METRICS}.ContainerMetrics`]: {
    type: 'What a container uses.',
    fields: { name: 'The container.', usage: 'Processor time, as cores, and memory.' },
  },
  [`${METRICS}.NodeMetrics`]: {
    type: 'What a node uses.',
    fields: {
      metadata: METADATA,
      timestamp: 'The end of the time in which it was measured.',
      usage: 'Processor time, as cores, and memory.',
      window: 'The length of that time.',
    },
  },
  [`${METRICS}.PodMetrics`]: {
    type: 'What the containers of a pod use.',
    fields: {
      containers: 'Each container that runs.',
      metadata: METADATA,
      timestamp: 'The end of the time in which it was measured.',
      window: 'The length of that time.',
    },
  },
};
