// The plugin registration service (kubelet's pluginregistration/v1), on a socket of its own in plugins_registry/: reports
// the driver's name and endpoint, and receives the kubelet's registration status.

import { Server } from '@grpc/grpc-js';
import { loadProto } from '../../proto/load.ts';
import { DRIVER_NAME } from './names.ts';
import { addService, type Served } from './server.ts';

export interface RegistrationStatus {
  readonly registered: boolean;
  /** The kubelet's message when it refused. */
  readonly error: string;
}

export function registrationServer(
  served: Served,
  socketPath: string,
  onStatus: (status: RegistrationStatus) => void,
): Server {
  const server = new Server();
  const definition = loadProto('plugin-registration').pluginregistration.Registration.service;
  addService(server, served, definition, {
    GetInfo: async () => ({
      type: 'CSIPlugin',
      name: DRIVER_NAME,
      endpoint: socketPath,
      supported_versions: ['1.0.0'],
    }),
    NotifyRegistrationStatus: async (request: { readonly plugin_registered: boolean; readonly error: string }) => {
      onStatus({ registered: request.plugin_registered, error: request.error });
      return {};
    },
  });
  return server;
}
