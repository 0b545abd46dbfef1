// The input of an authorizer. Types only.

import type { FieldRequirement } from '../registry/selectors.ts';

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
