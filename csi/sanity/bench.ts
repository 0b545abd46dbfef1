// The fixture of the checks: the connection, the kind of volume of this run, and volumes, attachments, stagings,
// publications and snapshots, all of which are taken down after each check, passed or failed.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { poll } from '../../lib/retry.ts';
import type { CreateVolumeRequest } from '../../proto/gen/csi/v1/CreateVolumeRequest.ts';
import type { NodeGetInfoResponse__Output } from '../../proto/gen/csi/v1/NodeGetInfoResponse.ts';
import type { Snapshot__Output } from '../../proto/gen/csi/v1/Snapshot.ts';
import type { Volume__Output } from '../../proto/gen/csi/v1/Volume.ts';
import type { VolumeCapability } from '../../proto/gen/csi/v1/VolumeCapability.ts';
import { GrpcError } from '../../proto/unary.ts';
import { type CsiClient, CsiError } from '../client.ts';
import type { Abilities } from './abilities.ts';

export type Mode = NonNullable<NonNullable<VolumeCapability['access_mode']>['mode']>;
type StringMap = Record<string, string>;

export interface BenchOptions {
  readonly accessType: 'mount' | 'block';
  /** Empty: the driver's own choice. */
  readonly fsType: string;
  /** For CreateVolume. */
  readonly parameters: Readonly<StringMap>;
  /** For every call that takes secrets. */
  readonly secrets: Readonly<StringMap>;
  /** Directories for staging and target paths are made below it. */
  readonly directory: string;
  /** Another node that volumes can be attached to. */
  readonly secondNodeId?: string;
  /** Size of most volumes, bytes; at least what the driver's filesystem needs. */
  readonly volumeBytes: number;
}

export const MiB = 1024 * 1024;

/** Expects a refusal: one of the codes, words for a person, no details. Returns the words. */
export async function refused(codes: string | readonly string[], call: Promise<unknown>): Promise<string> {
  const allowed = typeof codes === 'string' ? [codes] : codes;
  let answer: unknown;
  try {
    answer = await call;
  } catch (error) {
    if (!(error instanceof CsiError)) throw error;
    assert.ok(allowed.includes(error.code), `expected ${allowed.join(' or ')}, not ${error.code}: ${error.message}`);
    assert.notEqual(error.message.trim(), '', `${error.code} has no message: it MUST contain a description`);
    const cause = error.cause instanceof GrpcError ? error.cause.cause : undefined;
    if (cause instanceof Error && 'metadata' in cause) {
      const details: unknown = Reflect.apply(Reflect.get(Object(cause.metadata), 'get') ?? (() => []), cause.metadata, [
        'grpc-status-details-bin',
      ]);
      assert.deepEqual(details, [], 'the status has details, which MUST be empty');
    }
    return error.message;
  }
  throw new Error(`expected ${allowed.join(' or ')}, but the call succeeded with ${JSON.stringify(answer)}`);
}

export class Bench {
  readonly client: CsiClient;
  readonly options: BenchOptions;
  readonly abilities: Abilities;
  readonly info: NodeGetInfoResponse__Output;
  readonly #undo: { readonly what: string; readonly run: () => Promise<unknown> }[] = [];

  constructor(client: CsiClient, options: BenchOptions, abilities: Abilities, info: NodeGetInfoResponse__Output) {
    this.client = client;
    this.options = options;
    this.abilities = abilities;
    this.info = info;
  }

  get controller(): CsiClient['controller'] {
    return this.client.controller;
  }
  get node(): CsiClient['node'] {
    return this.client.node;
  }
  get secrets(): StringMap {
    return { ...this.options.secrets };
  }

  can(ability: `${'controller' | 'node' | 'plugin'}:${string}`): boolean {
    const [service, capability = ''] = ability.split(':');
    const set =
      service === 'plugin'
        ? this.abilities.plugin
        : service === 'node'
          ? this.abilities.node
          : this.abilities.controller;
    return set.has(capability);
  }

  /** No two are alike, between runs either. */
  name(): string {
    return `sanity-${randomBytes(8).toString('hex')}`;
  }

  /** An id that no driver has given out. */
  unknownId(): string {
    return `sanity-nobody-${randomBytes(8).toString('hex')}`;
  }

  capability(
    mode: Mode = 'SINGLE_NODE_WRITER',
    more: { flags?: string[]; group?: string; fsType?: string } = {},
  ): VolumeCapability {
    if (this.options.accessType === 'block') return { block: {}, access_mode: { mode } };
    return {
      mount: {
        fs_type: more.fsType ?? this.options.fsType,
        mount_flags: more.flags ?? [],
        volume_mount_group: more.group ?? '',
      },
      access_mode: { mode },
    };
  }

  /** A valid request, of which a check changes one field. */
  createRequest(more: CreateVolumeRequest = {}): CreateVolumeRequest {
    return {
      name: this.name(),
      volume_capabilities: [this.capability()],
      capacity_range: { required_bytes: this.options.volumeBytes },
      parameters: { ...this.options.parameters },
      secrets: this.secrets,
      ...more,
    };
  }

  async createVolume(more: CreateVolumeRequest = {}): Promise<Volume__Output> {
    const { volume } = await this.controller.CreateVolume(this.createRequest(more));
    assert.ok(volume, 'CreateVolumeResponse has no volume');
    this.forget(volume.volume_id);
    return volume;
  }

  /** Deletes the volume after the check. */
  forget(volume_id: string): void {
    this.#later(`DeleteVolume ${volume_id}`, () => this.controller.DeleteVolume({ volume_id, secrets: this.secrets }));
  }

  async createSnapshot(volume: Volume__Output, name = this.name()): Promise<Snapshot__Output> {
    const request = { name, source_volume_id: volume.volume_id, secrets: this.secrets };
    const { snapshot } = await this.controller.CreateSnapshot(request);
    assert.ok(snapshot, 'CreateSnapshotResponse has no snapshot');
    const { snapshot_id } = snapshot;
    this.#later(`DeleteSnapshot ${snapshot_id}`, () =>
      this.controller.DeleteSnapshot({ snapshot_id, secrets: this.secrets }),
    );
    let ready = snapshot;
    const look = async (): Promise<boolean> => {
      if (ready.ready_to_use) return true;
      const again = await this.controller.CreateSnapshot(request);
      assert.ok(again.snapshot, 'CreateSnapshotResponse has no snapshot');
      ready = again.snapshot;
      return ready.ready_to_use;
    };
    // Some drivers go on working after they have answered: called again, they report their progress.
    const isReady = await poll(look, { clock: systemClock, everyMs: 500, limitMs: 60_000 });
    assert.ok(isReady, 'the snapshot is not ready_to_use after a minute');
    return ready;
  }

  /** publish_context; empty where the driver does not attach. */
  async attach(volume: Volume__Output, capability = this.capability(), readonly = false): Promise<StringMap> {
    if (!this.can('controller:PUBLISH_UNPUBLISH_VOLUME')) return {};
    const { volume_id, volume_context } = volume;
    const answer = await this.controller.ControllerPublishVolume({
      volume_id,
      node_id: this.info.node_id,
      volume_capability: capability,
      readonly,
      secrets: this.secrets,
      volume_context,
    });
    this.detachLater(volume_id, this.info.node_id);
    return answer.publish_context;
  }

  detachLater(volume_id: string, node_id: string): void {
    this.#later(`ControllerUnpublishVolume ${volume_id}`, () =>
      this.controller.ControllerUnpublishVolume({ volume_id, node_id, secrets: this.secrets }),
    );
  }

  /** A directory of its own, there already; for staging. */
  async directory(name = randomBytes(6).toString('hex')): Promise<string> {
    const path = join(this.options.directory, name);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** A path that does not exist in a directory that does; for publishing. */
  async target(): Promise<string> {
    return join(await this.directory(), 'target');
  }

  /** Attached and, where the driver stages, staged. */
  async prepare(volume: Volume__Output, capability = this.capability(), readonly = false): Promise<Prepared> {
    const publish_context = await this.attach(volume, capability, readonly);
    const { volume_id, volume_context } = volume;
    const stages = this.can('node:STAGE_UNSTAGE_VOLUME');
    const staging_target_path = stages ? await this.directory() : '';
    const common = {
      volume_id,
      volume_context,
      publish_context,
      staging_target_path,
      volume_capability: capability,
      secrets: this.secrets,
    };
    if (stages) {
      this.unstageLater(volume_id, staging_target_path);
      await this.node.NodeStageVolume(common);
    }
    return common;
  }

  unstageLater(volume_id: string, staging_target_path: string): void {
    this.#later(`NodeUnstageVolume ${volume_id}`, () =>
      this.node.NodeUnstageVolume({ volume_id, staging_target_path }),
    );
  }

  /** Returns the target path. */
  async publish(
    prepared: Prepared,
    more: { readonly?: boolean; target_path?: string; volume_capability?: VolumeCapability } = {},
  ): Promise<string> {
    const target_path = more.target_path ?? (await this.target());
    this.unpublishLater(prepared.volume_id, target_path);
    await this.node.NodePublishVolume({ ...prepared, readonly: false, ...more, target_path });
    return target_path;
  }

  unpublishLater(volume_id: string, target_path: string): void {
    this.#later(`NodeUnpublishVolume ${volume_id}`, () => this.node.NodeUnpublishVolume({ volume_id, target_path }));
  }

  #later(what: string, run: () => Promise<unknown>): void {
    this.#undo.push({ what, run });
  }

  /** Undoes everything, last first. Each of these calls MUST be idempotent, so it does no harm where nothing is left. */
  async cleanup(): Promise<void> {
    const failures: string[] = [];
    for (const { what, run } of this.#undo.splice(0).reverse()) {
      try {
        await run();
      } catch (error) {
        // A volume that is gone needs no undoing on the node.
        if (error instanceof CsiError && error.code === 'NOT_FOUND') continue;
        failures.push(`${what}: ${error instanceof Error ? error.message : error}`);
      }
    }
    if (failures.length > 0) throw new Error(`cleaning up: ${failures.join('; ')}`);
  }
}

/** What stage and publish calls have in common for one volume. */
export interface Prepared {
  readonly volume_id: string;
  readonly volume_context: StringMap;
  readonly publish_context: StringMap;
  readonly staging_target_path: string;
  readonly volume_capability: VolumeCapability;
  readonly secrets: StringMap;
}
