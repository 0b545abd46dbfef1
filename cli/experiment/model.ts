// An experiment's file and its result. The JSON schema of the file is schema.json beside this file, and a test holds the two
// together. Types only; load.ts reads and checks a file.

/** A duration as Kubernetes writes it: "10s", "5m", "1h30m", "250ms". */
export type DurationText = string;

/** What the node is like. */
export interface WorldSpec {
  /** Fields of KubeletConfiguration. */
  readonly kubelet?: Readonly<Record<string, unknown>>;
  /** What the simulator's runtime behaves like; a lab has the one that is installed. */
  readonly runtime?: 'containerd-1.6' | 'containerd-1.7' | 'containerd-2' | 'without-events';
  readonly nodes?: number;
  /** Images of the lab by name. */
  readonly images?: readonly string[];
  /** The loop-device driver is there. */
  readonly csi?: boolean;
  /** CNI configuration list to use instead of the lab's. */
  readonly cni?: Readonly<Record<string, unknown>>;
  /** The node's resources where they matter to the experiment. */
  readonly capacity?: {
    readonly cpu?: string;
    readonly memory?: string;
    readonly disk?: string;
    readonly pods?: number;
    /** Addresses of pods that the network has: at most 238 in a lab. */
    readonly addresses?: number;
    /** Images and writable layers have a disk of their own, of this size. */
    readonly imagefs?: string;
  };
  /** The cluster's name server is there, and pods have it in their resolv.conf. */
  readonly dns?: boolean;
  /** The control plane's controllers of node lifecycle and taint eviction run. A lab always has them. */
  readonly controllers?: boolean;
}

export type ProcessName = 'agent' | 'containerd' | 'apiserver' | 'csi-driver' | 'scheduler' | 'controllers';

/** One rule of `nodelet tap fault` for CRI; the same shape for the other calls. `call` is a pattern of the call's name. */
export interface FaultRule {
  readonly call: string;
  readonly pod?: string;
  readonly action: 'fail' | 'delay' | 'hang' | 'drop' | 'duplicate';
  readonly delay?: DurationText;
  readonly code?: string;
  readonly message?: string;
  /** The rule holds for this many calls; without it, for all. */
  readonly times?: number;
}

/** An object of the API as in any manifest. */
export interface Manifest {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

/** `apply` in a file may also be the path of a file of manifests, and have `copies`: load.ts makes the list of both. */
export type ExperimentStep = { readonly name?: string } & (
  | { readonly apply: readonly Manifest[] }
  | {
      readonly delete: {
        readonly kind: string;
        readonly name: string;
        readonly namespace?: string;
        readonly gracePeriod?: DurationText;
      };
    }
  | {
      readonly patch: {
        readonly kind: string;
        readonly name: string;
        readonly namespace?: string;
        readonly subresource?: string;
        readonly merge: unknown;
      };
    }
  | { readonly exec: { readonly pod: string; readonly container?: string; readonly command: readonly string[] } }
  | {
      readonly kill:
        | { readonly process: ProcessName }
        | { readonly pod: string; readonly container: string; readonly signal?: string };
    }
  | { readonly start: { readonly process: ProcessName } }
  | { readonly cut: { readonly from: 'apiserver' | 'runtime' | 'registry' } }
  | { readonly heal: { readonly from: 'apiserver' | 'runtime' | 'registry' } }
  | { readonly fault: { readonly on: 'cri' | 'cni' | 'csi' | 'api' | 'dns'; readonly rules: readonly FaultRule[] } }
  | {
      readonly use: { readonly memory?: string; readonly disk?: string; readonly pids?: number; readonly pod?: string };
    }
  | { readonly clock: { readonly add: DurationText } }
  | { readonly shutdown: { readonly grace?: DurationText } }
  | { readonly wait: { readonly until: string; readonly timeout: DurationText } }
  | { readonly sleep: DurationText }
);

/** A measured value: an expression over the observations; a list of numbers may be drawn. */
export interface MeasureSpec {
  readonly name: string;
  readonly value: string;
  /** The unit of the value as the expression gives it: durations and times of expressions are ms. */
  readonly unit?: 'ms' | 's' | 'count' | 'bytes' | 'cores' | 'ratio';
  readonly plot?: 'line' | 'steps' | 'bars' | 'none';
  readonly title?: string;
}

export interface ExpectSpec {
  /** An expression that is true; measures are its names. */
  readonly that: string;
  /** Why the kubelet behaves so: a field, a KEP, a constant. */
  readonly because?: string;
  /** Where the expectation holds; without it, everywhere. Times of a lab need their own tolerance. */
  readonly on?: readonly ('sim' | 'lab' | 'vm')[];
}

export interface Experiment {
  readonly apiVersion: 'nodelet/v1';
  readonly kind: 'Experiment';
  readonly metadata: { readonly name: string; readonly title: string; readonly tags?: readonly string[] };
  readonly question: string;
  readonly prediction: string;
  readonly reading: string;
  /** Where it can run, and is run by the tests. */
  readonly on: readonly ('sim' | 'lab' | 'vm')[];
  /** What `--matrix name=v1,v2` varies; `$(name)` in any text of the file. */
  readonly parameters?: Readonly<
    Record<string, { readonly default: string | number; readonly values?: readonly (string | number)[] }>
  >;
  readonly world?: WorldSpec;
  readonly steps: readonly ExperimentStep[];
  readonly measure: readonly MeasureSpec[];
  readonly expect: readonly ExpectSpec[];
}

export type MeasuredValue = number | boolean | string | null | readonly MeasuredValue[];

export interface ExpectationResult {
  readonly that: string;
  readonly because?: string;
  readonly outcome: 'met' | 'not met' | 'not checked here' | 'error';
  /** The values of the names in it, or the error. */
  readonly detail: string;
}

/** One run of one variation. */
export interface RunResult {
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly repeat: number;
  readonly seed?: number;
  /** Of the world's time, and of the clock on the wall, ms. */
  readonly worldMs: number;
  readonly wallMs: number;
  readonly measures: Readonly<Record<string, MeasuredValue>>;
  readonly expectations: readonly ExpectationResult[];
  /** The step that failed, in one sentence; such a run is not `passed`. */
  readonly failure?: string;
  /** Names of files beside the report. */
  readonly recordings: readonly string[];
}

/** result.json in the folder of a result; `experiment compare` reads two of them. */
export interface ExperimentResult {
  readonly version: 1;
  readonly experiment: Experiment;
  readonly world: 'sim' | 'lab' | 'vm';
  /** "nodelet" with its version, or "kubelet v1.34.2". */
  readonly agent: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly verdict: 'passed' | 'failed' | 'interrupted';
  readonly runs: readonly RunResult[];
}
