// Replaces the API server in standalone mode: events go to the log, and nothing can be read. Static pods refer
// to no objects, so that nothing should ever be read.

import type { Log } from '../../lib/log.ts';
import type { EventRecorder, ObjectReader } from '../ports/api.ts';

export function createLogRecorder(log: Log): EventRecorder {
  return {
    event({ kind = 'Pod', metadata, fieldPath }, type, reason, message) {
      const { namespace, name } = metadata;
      log(type === 'Warning' ? 'warn' : 'info', `${reason}: ${message}`, {
        [kind.toLowerCase()]: namespace === undefined || namespace === '' ? name : `${namespace}/${name}`,
        ...(fieldPath === undefined ? {} : { fieldPath }),
      });
    },
  };
}

export function createNoObjects(): ObjectReader {
  const refuse = (what: string): Promise<never> =>
    Promise.reject(new Error(`there is no API server to read ${what} from: the agent runs without --kubeconfig`));
  return {
    configMap: (namespace, name) => refuse(`ConfigMap ${namespace}/${name}`),
    secret: (namespace, name) => refuse(`Secret ${namespace}/${name}`),
    // No API server, no services: the environment has none of their variables.
    services: () => Promise.resolve([]),
    serviceAccountToken: (pod) => refuse(`a token for pod ${pod.metadata.namespace}/${pod.metadata.name}`),
  };
}
