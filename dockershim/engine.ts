// The Docker Engine, as the shim sees it: each call of its API is one trace span, and each failure a CriError. Keeps
// nothing but the connection's address.

import Docker from 'dockerode';
import type { SpanAttributes, Tracer } from '../lib/trace.ts';
import { CriError, toCriError } from './errors.ts';

/** `unix:///path` or a bare path. Throws CriError for anything else: the shim needs the daemon's own machine. */
export function dockerSocket(endpoint: string): string {
  const path = endpoint.startsWith('unix://') ? endpoint.slice('unix://'.length) : endpoint;
  if (!path.startsWith('/')) {
    throw new CriError('INVALID_ARGUMENT', `Docker's endpoint "${endpoint}" is not unix:///path`);
  }
  return path;
}

export class Engine {
  readonly #docker: Docker;
  readonly #tracer: Tracer;

  constructor(socketPath: string, tracer: Tracer) {
    this.#docker = new Docker({ socketPath });
    this.#tracer = tracer;
  }

  /** `name`: the operation in the words of Docker's API reference ("ContainerStart"). Rejects with CriError. */
  async call<T>(name: string, attributes: SpanAttributes, body: (docker: Docker) => Promise<T>): Promise<T> {
    return this.#tracer.span('docker', name, attributes, async () => {
      try {
        return await body(this.#docker);
      } catch (error) {
        throw toCriError(error);
      }
    });
  }

  inspect(id: string): Promise<Docker.ContainerInspectInfo> {
    return this.call('ContainerInspect', { container: id }, (docker) => docker.getContainer(id).inspect());
  }

  /** Containers of the shim, in every state. `labels`: "name=value", all of them. */
  list(labels: readonly string[]): Promise<readonly Docker.ContainerInfo[]> {
    const filters = JSON.stringify({ label: labels });
    return this.call('ContainerList', {}, (docker) => docker.listContainers({ all: true, filters }));
  }
}
