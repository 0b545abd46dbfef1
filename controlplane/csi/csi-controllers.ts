// The controllers that work for CSI drivers: what csi-provisioner, csi-attacher and csi-resizer do beside a driver. A
// module of its own, so that a control plane without drivers loads no gRPC.

import type { Tracer } from '../../lib/trace.ts';
import type { Informers } from '../informers.ts';
import type { Controller, ControllerContext } from '../runtime.ts';
import { CsiAttacher } from './attacher/attacher.ts';
import { Expander } from './expander/expander.ts';
import { CapacityPublisher } from './provisioner/capacity.ts';
import { Provisioner } from './provisioner/provisioner.ts';
import { type DriverEndpoint, Drivers } from './shared/drivers.ts';

export interface CsiControllers {
  readonly controllers: readonly Controller[];
  close(): void;
}

/** `contextOf` makes the context of a component, by the name that its events carry. Opens no connection yet. */
export function csiControllers(
  endpoints: readonly DriverEndpoint[],
  tracer: Tracer,
  contextOf: (component: string) => ControllerContext,
  informers: Informers,
): CsiControllers {
  const drivers = new Drivers(endpoints, tracer);
  const controllers = drivers
    .list()
    .flatMap((driver): Controller[] => [
      new Provisioner(driver, contextOf(driver.name), informers),
      new CsiAttacher(driver, contextOf(`external-attacher ${driver.name}`), informers),
      new Expander(driver, contextOf(`external-resizer ${driver.name}`), informers),
      new CapacityPublisher(driver, contextOf(driver.name), informers),
    ]);
  return { controllers, close: () => drivers.close() };
}
