// What a quota looks at in objects: pods, services and claims as far as they are counted, of any other kind only that they are
// there. All fields are optional: the server counts objects before they have been validated.

type Text = { readonly [name: string]: string | undefined } | undefined;

export interface CountedContainer {
  readonly name?: string | undefined;
  readonly restartPolicy?: string | undefined;
  readonly resources?: { readonly requests?: Text; readonly limits?: Text } | undefined;
}

interface AffinityTerm {
  readonly namespaces?: readonly string[] | undefined;
  readonly namespaceSelector?: object | undefined;
}
interface PodTerms {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly AffinityTerm[] | undefined;
  readonly preferredDuringSchedulingIgnoredDuringExecution?:
    | readonly { readonly podAffinityTerm?: AffinityTerm | undefined }[]
    | undefined;
}

export interface CountedPodSpec {
  readonly containers?: readonly CountedContainer[] | undefined;
  readonly initContainers?: readonly CountedContainer[] | undefined;
  readonly resources?: { readonly requests?: Text; readonly limits?: Text } | undefined;
  readonly overhead?: Text;
  readonly activeDeadlineSeconds?: number | undefined;
  readonly priorityClassName?: string | undefined;
  readonly affinity?:
    | { readonly podAffinity?: PodTerms | undefined; readonly podAntiAffinity?: PodTerms | undefined }
    | undefined;
}
export interface CountedPod {
  readonly spec?: CountedPodSpec | undefined;
  readonly status?: { readonly phase?: string | undefined } | undefined;
}

export interface CountedService {
  readonly spec?:
    | {
        readonly type?: string | undefined;
        readonly ports?: readonly { readonly nodePort?: number | undefined }[] | undefined;
        readonly allocateLoadBalancerNodePorts?: boolean | undefined;
      }
    | undefined;
}

export interface CountedClaim {
  readonly metadata?: { readonly annotations?: Text } | undefined;
  readonly spec?:
    | {
        readonly storageClassName?: string | undefined;
        readonly volumeAttributesClassName?: string | undefined;
        readonly resources?: { readonly requests?: Text } | undefined;
      }
    | undefined;
  readonly status?:
    | {
        readonly allocatedResources?: Text;
        readonly currentVolumeAttributesClassName?: string | undefined;
        readonly modifyVolumeStatus?: { readonly targetVolumeAttributesClassName?: string | undefined } | undefined;
      }
    | undefined;
}

export type Counted =
  | { readonly kind: 'pod'; readonly pod: CountedPod }
  | { readonly kind: 'service'; readonly service: CountedService }
  | { readonly kind: 'claim'; readonly claim: CountedClaim }
  | { readonly kind: 'other' };

/** Of a quota's spec, what it limits and which objects it counts. */
export interface CountingSpec {
  readonly hard?: Text;
  readonly scopes?: readonly (string | undefined)[] | undefined;
  readonly scopeSelector?:
    | {
        readonly matchExpressions?:
          | readonly {
              readonly scopeName?: string | undefined;
              readonly operator?: string | undefined;
              readonly values?: readonly string[] | undefined;
            }[]
          | undefined;
      }
    | undefined;
}
