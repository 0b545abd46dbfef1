// The port of registry credentials besides the pod's own secrets: the node's own configuration and
// credential provider plugins. Types only.

import type { Pod } from '../../client/types.ts';
import type { ImageAuth } from './runtime.ts';

export interface RegistryCredential {
  /** Host, optional port and path: "registry.example:5000/team", "*.example.com". */
  readonly location: string;
  readonly auth: ImageAuth;
}

export interface PullCredentials {
  /**
   * The credentials for an image, named with its registry and without tag or digest ("docker.io/library/nginx"). Never
   * rejects: errors are logged, and the pull is tried without.
   */
  find(pod: Pod, image: string): Promise<readonly RegistryCredential[]>;
}
