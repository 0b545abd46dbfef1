// Which container runtime a simulated node has. They differ in how they tell what happens, in what their answers hold
// and in what becomes of calls that fail half-way; what is common to them is in runtime.ts.

export interface RuntimeKind {
  readonly name: 'containerd 1.6' | 'containerd 1.7' | 'containerd 2' | 'without events';
  readonly version: string;
  /** GetContainerEvents is served. */
  readonly criEvents: boolean;
  /** Events go to a subscriber that has gone, too, and are lost with it. */
  readonly losesEvents: boolean;
  /** containerd's own event bus is served. */
  readonly bus: boolean;
  readonly runtimeConfig: boolean;
  /** ContainerStatus names the limits in force. */
  readonly tellsResources: boolean;
  /** ContainerStatus names the user of the first process. */
  readonly tellsUser: boolean;
  /** StopContainer of a container that is gone is a success. */
  readonly stopsWhatIsGone: boolean;
  /** A sandbox whose network could not be given back after a failure is kept, not ready, for the caller to remove. */
  readonly keepsFailedSandbox: boolean;
  /** How long a start takes after the process has begun, until it shows, in ms. */
  readonly startMs: readonly [number, ...number[]];
  /** How long an end takes until it shows, in ms: the task is torn down in between. */
  readonly teardownMs: readonly [number, ...number[]];
}

const CONTAINERD_16: RuntimeKind = {
  name: 'containerd 1.6',
  version: 'v1.6.20',
  criEvents: false,
  losesEvents: false,
  bus: true,
  runtimeConfig: false,
  tellsResources: false,
  tellsUser: false,
  stopsWhatIsGone: false,
  keepsFailedSandbox: false,
  startMs: [0, 5, 40, 400],
  teardownMs: [1, 20, 50, 80, 80, 2_500],
};

const CONTAINERD_17: RuntimeKind = {
  ...CONTAINERD_16,
  name: 'containerd 1.7',
  version: 'v1.7.35',
  criEvents: true,
  losesEvents: true,
  tellsResources: true,
  keepsFailedSandbox: true,
};

const CONTAINERD_2: RuntimeKind = {
  ...CONTAINERD_17,
  name: 'containerd 2',
  version: 'v2.1.4',
  losesEvents: false,
  runtimeConfig: true,
  tellsUser: true,
  stopsWhatIsGone: true,
};

const WITHOUT_EVENTS: RuntimeKind = { ...CONTAINERD_2, name: 'without events', criEvents: false, bus: false };

const KINDS = [
  CONTAINERD_16,
  CONTAINERD_17,
  CONTAINERD_2,
  CONTAINERD_16,
  CONTAINERD_17,
  CONTAINERD_2,
  WITHOUT_EVENTS,
] as const;

/** Throws RangeError for a name that none has. */
export function runtimeKindNamed(name: string): RuntimeKind {
  const found = KINDS.find((kind) => kind.name === name);
  if (found === undefined) throw new RangeError(`there is no runtime ${name}`);
  return found;
}

/** The runtime of a seed's node. */
export function runtimeKindOf(seed: number): RuntimeKind {
  return KINDS[seed % KINDS.length] ?? CONTAINERD_16;
}
