// A plugin's registration socket over gRPC: GetInfo and NotifyRegistrationStatus. Loaded with the first socket.

import { credentials } from '@grpc/grpc-js';
import { plusMs, systemClock } from '../lib/clock.ts';
import type { Tracer } from '../lib/trace.ts';
import { loadProto } from '../proto/load.ts';
import { unaryCaller } from '../proto/unary.ts';

/** The kubelet's time limit for a plugin to accept a connection, and to respond, ms. */
const DIAL_TIMEOUT_MS = 10_000;

/** What a plugin answers to GetInfo. */
export interface PluginInfo {
  /** "CSIPlugin", "DevicePlugin", "DRAPlugin" */
  readonly type: string;
  readonly name: string;
  /** Where the plugin itself listens; the registration socket when it named none. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

export interface PluginSocket {
  getInfo(): Promise<PluginInfo>;
  /** Undefined is "registered"; otherwise why not. */
  notify(refusal: string | undefined): Promise<void>;
  close(): void;
}

/** Waits for the plugin to accept: its socket is there a moment before it listens. */
export async function openPluginSocket(path: string, tracer: Tracer): Promise<PluginSocket> {
  const { Registration } = loadProto('plugin-registration').pluginregistration;
  const client = new Registration(`unix:${path}`, credentials.createInsecure(), {
    'grpc.initial_reconnect_backoff_ms': 20,
    'grpc.min_reconnect_backoff_ms': 20,
    'grpc.max_reconnect_backoff_ms': 500,
  });
  const call = unaryCaller(tracer, 'csi');
  const deadline = { deadlineMs: DIAL_TIMEOUT_MS, attributes: { socket: path } };
  try {
    await new Promise<void>((resolve, reject) => {
      client.waitForReady(plusMs(systemClock.now(), DIAL_TIMEOUT_MS), (error) => {
        if (error === undefined) resolve();
        else reject(new Error(`failed to dial socket ${path}: ${error.message}`, { cause: error }));
      });
    });
  } catch (error) {
    client.close();
    throw error;
  }
  return {
    async getInfo() {
      const info = await call(client, 'GetInfo', {}, deadline);
      const { type, name, endpoint, supported_versions: versions } = info;
      return { type, name, endpoint: endpoint === '' ? path : endpoint, versions };
    },
    async notify(refusal) {
      const status = { plugin_registered: refusal === undefined, error: refusal ?? '' };
      await call(client, 'NotifyRegistrationStatus', status, deadline);
    },
    close: () => client.close(),
  };
}
