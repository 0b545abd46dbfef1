// The input of an authorizer: who, and one action. Types only; this file imports nothing, as everything decides by it.

/** The identity of a caller. */
export interface Caller {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface FieldRequirement {
  readonly field: string;
  readonly value: string;
  readonly equal: boolean;
}

/** One action of a caller on a resource. */
export interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** '' for the object itself. */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** What the field selector of a list, watch or deletecollection demands. */
  readonly fields?: readonly FieldRequirement[];
}
