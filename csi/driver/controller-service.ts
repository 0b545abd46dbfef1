// The whole Controller service: volumes, snapshots, and what the controller can do.

import type { ControllerDefinition } from '../../proto/gen/csi/v1/Controller.ts';
import { volumes } from './controller.ts';
import { DriverError } from './errors.ts';
import { snapshots } from './snapshots.ts';
import type { DriverOptions, Service } from './work.ts';

const ALWAYS = [
  'CREATE_DELETE_VOLUME',
  'LIST_VOLUMES',
  'GET_CAPACITY',
  'CREATE_DELETE_SNAPSHOT',
  'LIST_SNAPSHOTS',
  'GET_SNAPSHOT',
  'CLONE_VOLUME',
  'EXPAND_VOLUME',
  'VOLUME_CONDITION',
  'GET_VOLUME',
  'SINGLE_NODE_MULTI_WRITER',
] as const;
const WHEN_ATTACHING = ['PUBLISH_UNPUBLISH_VOLUME', 'PUBLISH_READONLY', 'LIST_VOLUMES_PUBLISHED_NODES'] as const;

/** What ControllerGetCapabilities answers. Pure. */
export function controllerCapabilities(options: Pick<DriverOptions, 'attach'>) {
  return [...ALWAYS, ...(options.attach ? WHEN_ATTACHING : [])];
}

export const controller: Service<ControllerDefinition> = {
  ...volumes,
  ...snapshots,
  ControllerGetCapabilities: async (_request, { driver }) => ({
    capabilities: controllerCapabilities(driver.options).map((type) => ({ rpc: { type } })),
  }),
  ControllerModifyVolume: async () => {
    throw new DriverError('UNIMPLEMENTED', 'volumes of this driver have no mutable parameters');
  },
};
