// The CSI drivers of this process: one connection each, made when first needed, and its capabilities, which are cached.
// Decides nothing and retries nothing.

import { type CsiClient, connectCsi } from '../../../csi/client.ts';
import type { Tracer } from '../../../lib/trace.ts';

/** How long a controller call may take, ms. One that takes longer may still happen: it is repeated until it is known. */
export const CONTROLLER_TIMEOUT_MS = 30_000;

/** The back-off of driver calls, ms; the side-cars begin at 1 s, which is long for a lab. */
export const DRIVER_BACKOFF = { initialDelayMs: 250, maxDelayMs: 300_000 } as const;

export interface DriverEndpoint {
  /** "loop.csi.nodelet" */
  readonly name: string;
  /** "unix:///run/…/csi.sock" */
  readonly endpoint: string;
}

export interface DriverCapabilities {
  /** CREATE_DELETE_VOLUME, PUBLISH_UNPUBLISH_VOLUME, …; empty for a driver without a controller service. */
  readonly controller: ReadonlySet<string>;
  /** Its volumes are not reachable from everywhere. */
  readonly topology: boolean;
}

export interface Driver {
  readonly name: string;
  readonly client: Pick<CsiClient, 'controller'>;
  /** Rejects with CsiError while the driver is unreachable. */
  capabilities(): Promise<DriverCapabilities>;
}

export class Drivers {
  readonly #drivers = new Map<string, ConnectedDriver>();

  constructor(endpoints: readonly DriverEndpoint[], tracer: Tracer) {
    for (const { name, endpoint } of endpoints) {
      this.#drivers.set(name, new ConnectedDriver(name, connectCsi(endpoint, { tracer })));
    }
  }

  list(): readonly Driver[] {
    return [...this.#drivers.values()];
  }

  close(): void {
    for (const driver of this.#drivers.values()) driver.client.close();
  }
}

class ConnectedDriver implements Driver {
  readonly name: string;
  readonly client: CsiClient;
  #known: DriverCapabilities | undefined;

  constructor(name: string, client: CsiClient) {
    this.name = name;
    this.client = client;
  }

  async capabilities(): Promise<DriverCapabilities> {
    this.#known ??= await this.#ask();
    return this.#known;
  }

  async #ask(): Promise<DriverCapabilities> {
    const { identity, controller, endpoint } = this.client;
    const { name } = await identity.GetPluginInfo({});
    if (name !== this.name) throw new Error(`the driver at ${endpoint} is called "${name}", not "${this.name}"`);
    const plugin = await identity.GetPluginCapabilities({});
    const services = new Set(plugin.capabilities.map((one) => one.service?.type));
    const topology = services.has('VOLUME_ACCESSIBILITY_CONSTRAINTS');
    if (!services.has('CONTROLLER_SERVICE')) return { controller: new Set(), topology };
    const { capabilities } = await controller.ControllerGetCapabilities({});
    return { controller: new Set(capabilities.flatMap(({ rpc }) => rpc?.type ?? [])), topology };
  }
}
