// The settings of authentication and authorization, by the names of kube-apiserver's flags. Types only.

import type { AuthorizationMode } from './authorize.ts';
import type { OidcOptions } from './oidc/options.ts';
import type { RequestHeaderOptions } from './request-header.ts';

export interface AuthOptions {
  /** --authorization-mode, in the order in which they are tried. Default: Node, RBAC. */
  readonly authorizationMode?: readonly AuthorizationMode[];
  /**
   * --anonymous-auth. true: a request without credentials is one of system:anonymous, which RBAC decides. false: it is 401.
   * Default: such a request is answered where RBAC allows it and it is for no resource (health, version), and 401 elsewhere.
   */
  readonly anonymousAuth?: boolean;
  /** --client-ca-file: CAs of client certificates, beside the lab's own. Default: the lab's alone. */
  readonly clientCaFile?: string;
  /** --token-auth-file */
  readonly tokenAuthFile?: string;
  /** --enable-bootstrap-token-auth. Default: false. */
  readonly bootstrapTokenAuth?: boolean;
  /** --service-account-issuer: the first issues tokens, all are accepted. */
  readonly serviceAccountIssuers?: readonly string[];
  /** --api-audiences. Default: the issuers. */
  readonly apiAudiences?: readonly string[];
  /** --service-account-key-file: PEM files of more keys whose tokens are accepted. */
  readonly serviceAccountKeyFiles?: readonly string[];
  /** --oidc-…: one issuer whose ID tokens are accepted. Default: none. */
  readonly oidc?: OidcOptions;
  /** --authentication-config: a file with issuers of ID tokens, instead of `oidc`. Default: none. */
  readonly authenticationConfig?: string;
  /** --requestheader-…: the authenticating proxy. Default: none. */
  readonly requestHeader?: RequestHeaderOptions;
}
