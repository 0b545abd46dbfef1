// Original file: pod-resources.proto

import type { ClaimResource as _v1_ClaimResource, ClaimResource__Output as _v1_ClaimResource__Output } from '../v1/ClaimResource.ts';

export interface DynamicResource {
  'claim_name'?: (string);
  'claim_namespace'?: (string);
  'claim_resources'?: (_v1_ClaimResource)[];
}

export interface DynamicResource__Output {
  'claim_name': (string);
  'claim_namespace': (string);
  'claim_resources': (_v1_ClaimResource__Output)[];
}
