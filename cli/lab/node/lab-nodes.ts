// The part of a lab that only one with several nodes has: the bridge, the nodes, and the socket on which they are controlled.

import type { Pki } from '../../../apiserver/pki/types.ts';
import type { ApiClient } from '../../../client/api.ts';
import type { Clock } from '../../../lib/clock.ts';
import { directoryIdentity, type MarkerFile } from '../marker.ts';
import type { MirrorPlan } from '../mirrors.ts';
import type { LabOptions } from '../options.ts';
import type { LabPaths } from '../paths.ts';
import { type LabState, writeLabState } from '../state.ts';
import type { NodeActions } from './actions.ts';
import { serveControl } from './control.ts';
import { makeBridge } from './network.ts';
import { LabNodes } from './nodes.ts';
import { planRange } from './plan.ts';

export interface LabWithNodesOptions {
  readonly paths: LabPaths;
  readonly marker: MarkerFile;
  readonly state: LabState & Required<Pick<LabState, 'nodes'>>;
  /** The API server's URL on the bridge. */
  readonly server: string;
  readonly pki: Pki;
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly say: (line: string) => void;
  readonly options: LabOptions;
  readonly mirrors: Promise<MirrorPlan | undefined>;
  /** Called when a node has come or gone. */
  readonly onChange: () => void;
  /** The lab stops. */
  readonly over: AbortSignal;
}

export class LabWithNodes {
  readonly #options: LabWithNodesOptions;
  readonly #nodes: LabNodes;
  #serving: Awaited<ReturnType<typeof serveControl>> | undefined;
  #last: Promise<void> = Promise.resolve();
  #listed: Promise<void> = Promise.resolve();

  constructor(options: LabWithNodesOptions) {
    this.#options = options;
    const { paths, state, server, pki, client, clock, say, over } = options;
    const { range, serviceRange, list } = state.nodes;
    const inTurn = (work: () => Promise<void>): Promise<void> => {
      const turn = this.#last.then(work);
      this.#last = turn.catch(() => undefined);
      return turn;
    };
    this.#nodes = new LabNodes({
      context: {
        lab: paths,
        range,
        rangePlan: planRange(range),
        ...{ server, pki, client, clock, say, inTurn },
        list: (node) => this.#list(node),
        clusterDNS: state.dns?.server,
        options: options.options,
        mirrors: options.mirrors,
      },
      serviceRange,
      list,
      signal: over,
      onChange: options.onChange,
      write: (now) => writeLabState(paths, { ...state, nodes: { ...state.nodes, list: now } }),
    });
  }

  /** The agent binds its directory onto itself, which is the lab's mount only where the directory is on the list. One write after the other. */
  #list({ root, kubeletDir }: LabPaths): Promise<void> {
    const { marker } = this.#options;
    const listed = this.#listed.then(async () => {
      for (const path of [root, kubeletDir]) {
        const identity = await directoryIdentity(path);
        if (identity !== undefined) await marker.put({ kind: 'directory', path, identity });
      }
    });
    this.#listed = listed.catch(() => undefined);
    return listed;
  }

  get actions(): NodeActions {
    return this.#nodes;
  }

  async makeBridge(): Promise<void> {
    const { paths, state } = this.#options;
    await makeBridge(paths, state.nodes.range, planRange(state.nodes.range));
  }

  /** Resolves when every node is Ready, and can be controlled. */
  async start(signal: AbortSignal): Promise<void> {
    const { paths, say } = this.#options;
    await this.#nodes.startAll(signal);
    this.#serving = await serveControl(paths.controlSocket, this.#nodes);
    say(`to see and control the nodes: nodelet node list --root ${paths.root}`);
  }

  /** Those whose agents can end pods. */
  reachable(): ReadonlySet<string> {
    const running = this.#nodes.list().filter(({ condition }) => condition === 'running');
    return new Set(running.map(({ name }) => name));
  }

  async refuseRequests(): Promise<void> {
    await this.#serving?.close();
    this.#serving = undefined;
  }

  async leave(): Promise<void> {
    await this.#nodes.leave();
  }
}
