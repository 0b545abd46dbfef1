// A proxy between the agent and a real CSI driver: forwards every Node call, and lets a test do something just before the
// driver gets it or just before the agent gets the answer. Registers itself as the driver.

import { type handleUnaryCall, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { type CsiClient, CsiError, connectCsi } from '../../../csi/client.ts';
import { loadProto } from '../../../proto/load.ts';

export type Moment = 'before' | 'after';

export class CsiProxy {
  readonly order: string[] = [];
  /** Calls for one volume that overlapped. */
  overlaps = 0;
  /** Called around every call; the call goes on when it resolves. */
  hook: (method: string, moment: Moment) => Promise<void> = async () => undefined;
  readonly #name: string;
  readonly #driver: CsiClient;
  readonly #servers: Server[] = [];
  readonly #underWay = new Set<string>();
  #socket = '';

  constructor(name: string, endpoint: string) {
    this.#name = name;
    this.#driver = connectCsi(endpoint);
  }

  async listen(socket: string, registration: string): Promise<void> {
    const service = new Server();
    const { node } = this.#driver;
    service.addService(loadProto('csi').csi.v1.Node.service, {
      NodeStageVolume: this.#pass('NodeStageVolume', (request) => node.NodeStageVolume(request)),
      NodeUnstageVolume: this.#pass('NodeUnstageVolume', (request) => node.NodeUnstageVolume(request)),
      NodePublishVolume: this.#pass('NodePublishVolume', (request) => node.NodePublishVolume(request)),
      NodeUnpublishVolume: this.#pass('NodeUnpublishVolume', (request) => node.NodeUnpublishVolume(request)),
      NodeExpandVolume: this.#pass('NodeExpandVolume', (request) => node.NodeExpandVolume(request)),
      NodeGetVolumeStats: this.#pass('NodeGetVolumeStats', (request) => node.NodeGetVolumeStats(request)),
      NodeGetCapabilities: this.#pass('NodeGetCapabilities', (request) => node.NodeGetCapabilities(request)),
      NodeGetInfo: this.#pass('NodeGetInfo', (request) => node.NodeGetInfo(request)),
    });
    const registrar = new Server();
    registrar.addService(loadProto('plugin-registration').pluginregistration.Registration.service, {
      GetInfo: this.#pass('GetInfo', async () => ({
        type: 'CSIPlugin',
        name: this.#name,
        endpoint: socket,
        supported_versions: ['1.0.0'],
      })),
      NotifyRegistrationStatus: this.#pass('NotifyRegistrationStatus', async () => ({})),
    });
    await bind(service, socket);
    this.#socket = socket;
    await bind(registrar, registration);
    this.#servers.push(service, registrar);
  }

  close(): void {
    for (const server of this.#servers) server.forceShutdown();
    this.#driver.close();
  }

  /** Resolves when the driver has no call under way, also none of an agent that is gone. To be called before `close`. */
  async quiet(): Promise<void> {
    // What an agent had sent before it was killed is read before what is sent now.
    const last = connectCsi(`unix://${this.#socket}`);
    await last.node.NodeGetInfo({});
    last.close();
    while (this.#underWay.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  #pass<Request extends { volume_id?: string }>(
    method: string,
    call: (request: Request) => Promise<object>,
  ): handleUnaryCall<Request, object> {
    return ({ request }, callback) => {
      const { volume_id: volume = '' } = request;
      if (volume !== '') this.order.push(method);
      if (volume !== '' && this.#underWay.has(volume)) this.overlaps++;
      if (volume !== '') this.#underWay.add(volume);
      const work = async (): Promise<object> => {
        await this.hook(method, 'before');
        const response = await call(request);
        await this.hook(method, 'after');
        return response;
      };
      work()
        .then(
          (response) => callback(null, response),
          (error: unknown) => {
            const code = error instanceof CsiError ? codeOf(error.code) : status.INTERNAL;
            callback({ code, details: error instanceof Error ? error.message : String(error) });
          },
        )
        .finally(() => this.#underWay.delete(volume));
    };
  }
}

function codeOf(name: string): status {
  const found = Object.entries(status).find(([key]) => key === name)?.[1];
  return typeof found === 'number' ? found : status.UNKNOWN;
}

function bind(server: Server, socket: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}
