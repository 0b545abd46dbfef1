// Faults of API calls in a lab that is about to start: the certificates are made with it, so what stands between agent and server
// is made when the agent connects for the first time.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadKubeconfig } from '../../../client/kubeconfig.ts';
import type { Clock } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import type { LabPaths } from '../../lab/paths.ts';
import { readLabState } from '../../lab/state.ts';
import type { FaultRule } from '../model.ts';
import { ApiFaults, type ApiParties } from './api-faults.ts';

export class ApiFaultsOfLab {
  readonly #paths: LabPaths;
  readonly #socket: string;
  readonly #options: { readonly clock: Clock; readonly log: (line: string) => void };
  #rules: readonly FaultRule[] = [];
  #made: Promise<ApiFaults> | undefined;

  constructor(
    paths: LabPaths,
    socket: string,
    options: { readonly clock: Clock; readonly log: (line: string) => void },
  ) {
    this.#paths = paths;
    this.#socket = socket;
    this.#options = options;
  }

  /** Where the agent's connections lead. */
  async socket(): Promise<{ readonly path: string }> {
    this.#made ??= this.#make();
    await this.#made;
    return { path: this.#socket };
  }

  async #make(): Promise<ApiFaults> {
    const faults = new ApiFaults({ parties: await partiesOf(this.#paths), ...this.#options });
    faults.setFaults(this.#rules);
    await faults.listenAt(this.#socket);
    return faults;
  }

  /** Other rules from now on, whose counts begin anew. */
  async setFaults(rules: readonly FaultRule[]): Promise<void> {
    this.#rules = rules;
    (await this.#made)?.setFaults(rules);
  }

  async close(): Promise<void> {
    await (await this.#made)?.close();
  }
}

async function partiesOf(paths: LabPaths): Promise<ApiParties> {
  const state = await readLabState(paths);
  const { ca, clientCert, clientKey } = await loadKubeconfig(paths.kubeconfigs.agentByProxy);
  if (state === undefined || ca === undefined || clientCert === undefined || clientKey === undefined)
    throw new UserError(`${paths.kubeconfigs.agentByProxy}: the agent has no certificate`);
  const pem = (file: string): Promise<string> => readFile(join(paths.pkiDir, file), 'utf8');
  return {
    ca,
    server: { cert: await pem('apiserver.crt'), key: await pem('apiserver.key'), port: state.apiserverPort },
    agent: { cert: clientCert, key: clientKey },
  };
}
