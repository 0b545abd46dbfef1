// A CSI driver that does what a test says: a real gRPC server on a unix socket with Identity, Node and the registration
// service. It remembers every call in order, and counts calls for one volume that overlap.

import { type handleUnaryCall, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { loadProto } from '../../proto/load.ts';

export interface RecordedCall {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** What a call answers: a response, an error by its code's name, or nothing ever. */
export type Answer =
  | { readonly response: object; readonly delayMs?: number; readonly effect?: () => void }
  | {
      readonly code: keyof typeof status;
      readonly message: string;
      readonly delayMs?: number;
      readonly effect?: () => void;
    }
  | 'hang';

const NODE_METHODS = [
  'NodeStageVolume',
  'NodeUnstageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeGetVolumeStats',
  'NodeExpandVolume',
  'NodeGetCapabilities',
  'NodeGetInfo',
] as const;

export class FakeCsiDriver {
  readonly calls: RecordedCall[] = [];
  /** Calls for one volume that were made while another one for it was under way. */
  overlaps = 0;
  capabilities: readonly string[] = ['STAGE_UNSTAGE_VOLUME'];
  nodeInfo = { node_id: 'node-1', max_volumes_per_node: 0, accessible_topology: { segments: {} } };
  info = { type: 'CSIPlugin', name: 'fake.csi', endpoint: '', supported_versions: ['1.0.0'] };
  readonly notified: { plugin_registered: boolean; error: string }[] = [];
  /** The next answers of a method; after them it succeeds. */
  readonly script = new Map<string, Answer[]>();
  /** What a call does when it succeeds without a script. */
  onCall: (call: RecordedCall) => void = () => undefined;
  #server: Server | undefined;
  readonly #underWay = new Set<string>();

  next(method: string, ...answers: readonly Answer[]): void {
    this.script.set(method, [...(this.script.get(method) ?? []), ...answers]);
  }

  /** The names of the calls so far, without those that only ask. */
  get order(): string[] {
    return this.calls.map(({ method }) => method).filter((method) => !method.startsWith('NodeGet'));
  }

  async listen(socket: string): Promise<void> {
    const server = new Server();
    const csi = loadProto('csi').csi.v1;
    const handlers = Object.fromEntries(NODE_METHODS.map((method) => [method, this.#handler(method)]));
    server.addService(csi.Node.service, handlers);
    server.addService(csi.Identity.service, {
      GetPluginInfo: this.#handler('GetPluginInfo'),
      GetPluginCapabilities: this.#handler('GetPluginCapabilities'),
      Probe: this.#handler('Probe'),
    });
    server.addService(loadProto('plugin-registration').pluginregistration.Registration.service, {
      GetInfo: this.#handler('GetInfo'),
      NotifyRegistrationStatus: this.#handler('NotifyRegistrationStatus'),
    });
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
  }

  /** Goes away at once, with whatever is under way. */
  kill(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  #default(method: string, call: RecordedCall): object {
    switch (method) {
      case 'GetInfo':
        return this.info;
      case 'NodeGetInfo':
        return this.nodeInfo;
      case 'NodeGetCapabilities':
        return { capabilities: this.capabilities.map((type) => ({ rpc: { type } })) };
      case 'NotifyRegistrationStatus': {
        const { plugin_registered, error } = call.request;
        this.notified.push({ plugin_registered: plugin_registered === true, error: String(error) });
        return {};
      }
      default:
        this.onCall(call);
        return {};
    }
  }

  #handler(method: string): handleUnaryCall<Record<string, unknown>, object> {
    return ({ request }, callback) => {
      const call = { method, request };
      this.calls.push(call);
      const volume = typeof request['volume_id'] === 'string' ? request['volume_id'] : '';
      if (volume !== '' && this.#underWay.has(volume)) this.overlaps++;
      if (volume !== '') this.#underWay.add(volume);
      const answer = this.script.get(method)?.shift();
      if (answer === 'hang') return;
      const end = (): void => {
        this.#underWay.delete(volume);
        if (answer === undefined) callback(null, this.#default(method, call));
        else {
          answer.effect?.();
          if ('response' in answer) callback(null, answer.response);
          else callback({ code: status[answer.code], details: answer.message });
        }
      };
      if (answer?.delayMs === undefined) end();
      else setTimeout(end, answer.delayMs);
    };
  }
}
