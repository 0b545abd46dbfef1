// A kubelet server with everything behind it pretended, in a directory of its own: what tests of the kubelet API start.

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKubeletServer } from '../../../../agent/server/kubelet-server.ts';
import type { KubeletServer, KubeletServerOptions } from '../../../../agent/server/options.ts';
import { servingNames } from '../../../../agent/server/serving-certificate.ts';
import { generateKeyPair, issueCertificate } from '../../../../apiserver/pki/keys.ts';
import { type EpochMs, epochMs } from '../../../../lib/clock.ts';
import type { ServingCertificate } from '../../../../lib/made-certificate.ts';
import { selfSigned } from '../../../../lib/self-signed.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { ManualClock } from '../volumes/support.ts';
import { agentOptions, FakeLogs, FakePods, FakeRuntime, PAGES } from './support.ts';

/** A server that anyone may call. */
export const OPEN = { authentication: { anonymous: { enabled: true } }, authorization: { mode: 'AlwaysAllow' } };

/** Made once for all the servers of a worker: making one takes a process of its own, a quarter of a second of its time. */
let pair: Promise<ServingCertificate> | undefined;

async function keepCertificate(certDir: string, now: EpochMs): Promise<void> {
  pair ??= selfSigned(servingNames(agentOptions(certDir)), now);
  const { cert, key } = await pair;
  await mkdir(certDir);
  await writeFile(join(certDir, 'kubelet.key'), key, { mode: 0o600 });
  await writeFile(join(certDir, 'kubelet.crt'), cert);
}

export class ServerStand {
  readonly dir: string;
  readonly pods = new FakePods();
  readonly logs = new FakeLogs();
  readonly runtime = new FakeRuntime();
  readonly clock = new ManualClock();
  /** What the API server was asked about callers. */
  readonly reviews: { path: string; body: unknown }[] = [];
  /** What it answers. */
  answer: (path: string, body: unknown) => unknown = () => ({});
  server: KubeletServer | undefined;

  private constructor(dir: string) {
    this.dir = dir;
  }

  /** `parent`: where its directory is made. */
  static async make(parent = tmpdir()): Promise<ServerStand> {
    return new ServerStand(await mkdtemp(join(parent, 'nodelet-server-')));
  }

  async close(): Promise<void> {
    await this.server?.close();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Starts the server; resolves with its port. */
  async start(
    config: Readonly<Record<string, unknown>> = {},
    more: Partial<KubeletServerOptions> = {},
  ): Promise<number> {
    const certDir = join(this.dir, 'pki');
    if (!existsSync(certDir)) await keepCertificate(certDir, this.clock.now());
    this.server = createKubeletServer({
      options: agentOptions(certDir, config),
      pods: this.pods,
      runtime: this.runtime,
      logs: this.logs,
      ...PAGES,
      reviews: {
        create: async <T>(path: string, body: unknown): Promise<T> => {
          this.reviews.push({ path, body });
          return this.answer(path, body) as T;
        },
      },
      tracer: new Tracer(),
      clock: this.clock,
      ...more,
    });
    await this.server.listen();
    return this.server.port;
  }

  /** A client certificate of `name`, and its CA. */
  async credentials(name: string, organization: string): Promise<{ caFile: string; cert: string; key: string }> {
    const life = { notBefore: epochMs(Date.now() - 60_000), notAfter: epochMs(Date.now() + 3_600_000) };
    const ca = generateKeyPair();
    const caCert = await issueCertificate({ commonName: 'ca', usage: 'ca', ...life }, ca);
    const caFile = join(this.dir, `${name}-ca.crt`);
    await writeFile(caFile, caCert);
    const pair = generateKeyPair();
    const signer = { cert: caCert, key: ca.privateKey };
    const cert = await issueCertificate({ commonName: name, organization, usage: 'client', ...life }, pair, signer);
    return { caFile, cert, key: pair.privateKey };
  }
}
