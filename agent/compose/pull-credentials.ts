// The node's own registry credentials, put together for this agent: where plugins get programs, accounts and tokens from.
// Part of the composition root: decides nothing.

import { isNotFound } from '../../client/errors.ts';
import type { Pod, Stored } from '../../client/types.ts';
import { createNodeCredentials } from '../credentials/node-credentials.ts';
import type { PullCredentials } from '../ports/pull-credentials.ts';
import { TokenCache } from '../volumes/tokens.ts';
import type { AgentBase } from './base.ts';
import type { Cluster } from './cluster.ts';

/** The lifetime of tokens for plugins, as in the kubelet. s. */
const TOKEN_SECONDS = 600;

/** Throws UserError for plugins that cannot be used. */
export function createPullCredentials(base: AgentBase, { client, objects }: Cluster): PullCredentials {
  const { options, clock, tracer, exec, log, signals } = base;
  const tokens = new TokenCache(objects, clock);
  signals.podGone.subscribe((pod) => tokens.forget(pod.metadata.uid));
  const credentials = createNodeCredentials({
    rootDir: options.rootDir,
    ...(options.credentialProviders === undefined ? {} : { providers: options.credentialProviders }),
    clock,
    tracer,
    exec,
    log,
    ...(client === undefined
      ? {}
      : {
          accounts: {
            async account(namespace: string, name: string) {
              try {
                const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`;
                const { metadata } = await client.get<Stored<object>>(path);
                return { uid: metadata.uid, annotations: metadata.annotations ?? {} };
              } catch (error) {
                if (isNotFound(error)) return undefined;
                throw error;
              }
            },
            token: (pod: Pod, audience: string) => tokens.token(pod, { audience, expirationSeconds: TOKEN_SECONDS }),
          },
        }),
  });
  return { find: (pod, image) => credentials.find(pod, image) };
}
