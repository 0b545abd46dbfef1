// A CSI driver's controller without gRPC: remembers what it is asked, and answers with the next thing a test says.

import type { Driver } from '../../controlplane/csi/shared/drivers.ts';

export class FakeDriver {
  readonly calls: string[] = [];
  /** The next answers: an error, or the bytes of the volume in question. */
  readonly answers: (Error | string)[] = [];
  nodeMustResize = true;
  readonly driver: Driver;

  constructor(...capabilities: readonly string[]) {
    const unexpected = (): never => {
      throw new Error('not expected here');
    };
    const next = (call: string, otherwise: string): string => {
      this.calls.push(call);
      const answer = this.answers.shift() ?? otherwise;
      if (typeof answer !== 'string') throw answer;
      return answer;
    };
    const controller: Driver['client']['controller'] = {
      CreateVolume: async (request) => ({
        volume: {
          capacity_bytes: next(`CreateVolume ${request.name}`, String(request.capacity_range?.required_bytes ?? 0)),
          volume_id: `vol-${request.name}`,
          volume_context: {},
          content_source: null,
          accessible_topology: [],
        },
      }),
      DeleteVolume: async (request) => {
        next(`DeleteVolume ${request.volume_id}`, '');
        return {};
      },
      ControllerPublishVolume: async (request) => {
        next(`ControllerPublishVolume ${request.volume_id} ${request.node_id}`, '');
        return { publish_context: { device: '/dev/x' } };
      },
      ControllerUnpublishVolume: async (request) => {
        next(`ControllerUnpublishVolume ${request.volume_id} ${request.node_id}`, '');
        return {};
      },
      ControllerExpandVolume: async (request) => {
        const wanted = String(request.capacity_range?.required_bytes ?? 0);
        const capacity_bytes = next(`ControllerExpandVolume ${request.volume_id} ${wanted}`, wanted);
        return { capacity_bytes, node_expansion_required: this.nodeMustResize };
      },
      ValidateVolumeCapabilities: unexpected,
      ListVolumes: unexpected,
      GetCapacity: async (request) => ({
        available_capacity: next(`GetCapacity ${JSON.stringify(request.accessible_topology?.segments)}`, '0'),
        maximum_volume_size: null,
        minimum_volume_size: null,
      }),
      ControllerGetCapabilities: unexpected,
      CreateSnapshot: unexpected,
      DeleteSnapshot: unexpected,
      ListSnapshots: unexpected,
      GetSnapshot: unexpected,
      ControllerGetVolume: unexpected,
      ControllerModifyVolume: unexpected,
    };
    const known = { controller: new Set(capabilities), topology: true };
    this.driver = { name: 'csi.test', client: { controller }, capabilities: async () => known };
  }
}
