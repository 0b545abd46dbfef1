// Loads the .proto files once per process and hands out typed gRPC constructors. The options here and in
// scripts/gen-proto must agree, or the generated types lie.

import { fileURLToPath } from 'node:url';
import { loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync, type Options } from '@grpc/proto-loader';
import type { ProtoGrpcType as ContainerdEvents } from './gen/containerd-events.ts';
import type { ProtoGrpcType as ContainerdTasks } from './gen/containerd-tasks.ts';
import type { ProtoGrpcType as Cri } from './gen/cri.ts';
import type { ProtoGrpcType as Csi } from './gen/csi.ts';
import type { ProtoGrpcType as DevicePlugin } from './gen/device-plugin.ts';
import type { ProtoGrpcType as Etcd } from './gen/etcd.ts';
import type { ProtoGrpcType as GrpcHealth } from './gen/grpc-health.ts';
import type { ProtoGrpcType as PluginRegistration } from './gen/plugin-registration.ts';
import type { ProtoGrpcType as PodResources } from './gen/pod-resources.ts';

interface Packages {
  cri: Cri;
  csi: Csi;
  'containerd-events': ContainerdEvents;
  'containerd-tasks': ContainerdTasks;
  'device-plugin': DevicePlugin;
  etcd: Etcd;
  'grpc-health': GrpcHealth;
  'plugin-registration': PluginRegistration;
  'pod-resources': PodResources;
}

const OPTIONS: Options = {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
  includeDirs: [fileURLToPath(new URL('.', import.meta.url))],
};

const loaded = new Map<keyof Packages, unknown>();

/** The package of one .proto file, parsed on first use (some 30 ms for CRI). */
export function loadProto<K extends keyof Packages>(name: K): Packages[K] {
  let definition = loaded.get(name);
  if (definition === undefined) {
    definition = loadPackageDefinition(loadSync(`${name}.proto`, OPTIONS));
    loaded.set(name, definition);
  }
  // grpc-js builds the object that the generated type describes; this is the one place that says so.
  return definition as Packages[K];
}
