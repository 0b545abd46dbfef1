// Objects as their kinds: the decoder has checked types, so an object of kind Pod has a Pod's shape, with
// any field absent. These types state exactly that.

import type * as core from 'kubernetes-types/core/v1';
import type { KubeObject } from './resource.ts';

/** T with every field optional at every depth: what decoding guarantees, before validation. */
export type Loose<T> = T extends string | number | boolean
  ? T
  : T extends readonly (infer Item)[]
    ? Loose<Item>[]
    : T extends object
      ? { -readonly [Field in keyof T]?: Loose<T[Field]> | undefined }
      : T;

export type Of<T> = KubeObject & Omit<Loose<T>, 'metadata' | 'apiVersion' | 'kind'>;

function isKind<T>(object: KubeObject, kind: string): object is Of<T> {
  return object.kind === kind;
}

/** The object under its kind's type. Throws TypeError when it is another kind: the row got an object not its own. */
export function as<T>(object: KubeObject, kind: string): Of<T> {
  if (!isKind<T>(object, kind)) throw new TypeError(`a ${object.kind} was given to the strategy of ${kind}`);
  return object;
}

type Newer = {
  resources?: core.ResourceRequirements;
  hostnameOverride?: string;
};

/** 1.30 has the names in an object of their own. */
interface PodResourceClaim {
  name?: string | undefined;
  resourceClaimName?: string | undefined;
  resourceClaimTemplateName?: string | undefined;
}

export interface RestartRule {
  action?: string | undefined;
  exitCodes?: { operator?: string | undefined; values?: number[] | undefined } | undefined;
}

export type Container = Loose<core.Container> & {
  restartPolicyRules?: RestartRule[] | undefined;
  targetContainerName?: string | undefined;
};
export type Lifecycle = Loose<core.Lifecycle> & { stopSignal?: string | undefined };
export type Volume = Loose<core.Volume> & {
  image?: { reference?: string | undefined; pullPolicy?: string | undefined } | undefined;
};
export type Probe = Loose<core.Probe>;
export type PodSecurityContext = Loose<core.PodSecurityContext> & {
  supplementalGroupsPolicy?: string | undefined;
  seLinuxChangePolicy?: string | undefined;
};
export type PodSpec = Omit<
  Loose<core.PodSpec>,
  'containers' | 'initContainers' | 'ephemeralContainers' | 'volumes' | 'securityContext' | 'resourceClaims'
> &
  Loose<Newer> & {
    containers?: Container[] | undefined;
    initContainers?: Container[] | undefined;
    ephemeralContainers?: Container[] | undefined;
    volumes?: Volume[] | undefined;
    securityContext?: PodSecurityContext | undefined;
    resourceClaims?: PodResourceClaim[] | undefined;
  };
/** What pods are made from. */
export interface PodTemplate {
  metadata?:
    | {
        labels?: { [key: string]: string | undefined } | undefined;
        annotations?: { [key: string]: string | undefined } | undefined;
      }
    | undefined;
  spec?: PodSpec | undefined;
}

export type PodStatus = Loose<core.PodStatus> & { observedGeneration?: number | undefined };
export type Pod = KubeObject & { spec?: PodSpec; status?: PodStatus };

function isPod(object: KubeObject): object is Pod {
  return object.kind === 'Pod';
}

export function podOf(object: KubeObject): Pod {
  if (!isPod(object)) throw new TypeError(`a ${object.kind} was given to the strategy of Pod`);
  return object;
}
