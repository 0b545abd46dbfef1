// `nodelet apiserver`: the embedded API server alone, on the files of a lab.

import { isIP } from 'node:net';
import { Command } from 'commander';
import { DEFAULT_SERVICE_CIDR, familiesOf, serviceRange } from '../../apiserver/kinds/services/ranges.ts';
import { strictRange } from '../../apiserver/kinds/shared/addresses.ts';
import type { EtcdOptions } from '../../apiserver/options.ts';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { DEFAULT_ROOT, labPaths } from '../lab/paths.ts';
import { type AuditFlags, addAuditFlags, auditOptions, limitOptions } from './apiserver-audit.ts';
import { type AuthFlags, addAuthFlags, authOptions } from './apiserver-auth.ts';
import { addHttp2Flags, type Http2Flags, http2Options } from './apiserver-http2.ts';
import { snapshotCommand } from './apiserver-snapshot.ts';
import { stopSignal } from './signals.ts';

/** A TCP port from a flag; 0: any free one. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new UserError(`"${text}" is not a port (0 to 65535)`);
  return port;
}

interface Flags extends AuthFlags, AuditFlags, Http2Flags {
  readonly root: string;
  readonly bindAddress: string;
  readonly port: number;
  readonly advertiseHost?: string;
  readonly advertiseAddress?: string;
  readonly certHost: readonly string[];
  readonly nodeName?: string;
  readonly nodeAudience: readonly string[];
  readonly encryptionProviderConfig?: string;
  readonly etcdServers?: readonly string[];
  readonly etcdCafile?: string;
  readonly etcdCertfile?: string;
  readonly etcdKeyfile?: string;
  readonly etcdPrefix: string;
  readonly restore?: string;
  readonly serviceClusterIpRange: readonly string[];
  readonly enableAdmissionPlugins: readonly string[];
  readonly disableAdmissionPlugins: readonly string[];
  readonly admissionControlConfigFile?: string;
}

/** A flag that may be repeated. */
function repeated(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

/** A flag with a list, separated by commas; may be repeated. */
function listed(value: string, before: readonly string[]): readonly string[] {
  return [...before, ...value.split(',').filter((name) => name !== '')];
}

function commas(value: string): readonly string[] {
  return value.split(',').filter((part) => part !== '');
}

function ipAddress(text: string): string {
  if (isIP(text) === 0) throw new UserError(`--advertise-address: "${text}" is no IP address`);
  return text;
}

/** One range, or one of each family, with a comma between. */
function serviceCidrs(text: string): readonly string[] {
  const flag = '--service-cluster-ip-range';
  const cidrs = text.split(',');
  if (cidrs.length > 2) throw new UserError(`${flag} must not contain more than two entries`);
  for (const cidr of cidrs) {
    const errors = strictRange(cidr);
    if (errors.length > 0) throw new UserError(`${flag}: "${cidr}": ${errors.join('; ')}`);
    const range = serviceRange(cidr);
    if (range === undefined || range.last - range.first < 5n) {
      throw new UserError(`${flag}: "${cidr}" must have room for 8 addresses or more`);
    }
  }
  if (new Set(familiesOf(cidrs)).size < cidrs.length) {
    throw new UserError(`${flag}[0] and ${flag}[1] must be of different IP family`);
  }
  return cidrs;
}

/** Throws UserError for flags that do not go together. */
function etcdOf(flags: Flags): { etcd?: EtcdOptions } {
  const { etcdServers: servers, etcdCafile: caFile, etcdCertfile: certFile, etcdKeyfile: keyFile } = flags;
  if (servers === undefined) return {};
  if (flags.restore !== undefined) {
    throw new UserError('--restore is for the store in a file: an etcd is restored with etcdutl snapshot restore');
  }
  return {
    etcd: {
      servers,
      prefix: `/${flags.etcdPrefix.replace(/^\/+|\/+$/g, '')}`,
      ...(caFile === undefined ? {} : { caFile }),
      ...(certFile === undefined ? {} : { certFile }),
      ...(keyFile === undefined ? {} : { keyFile }),
    },
  };
}

export function apiserverCommand(): Command {
  const command = new Command('apiserver')
    .description('run the embedded API server alone')
    .enablePositionalOptions()
    .addCommand(snapshotCommand())
    .option('--root <dir>', 'directory of certificates, store and kubeconfigs', DEFAULT_ROOT)
    .option('--bind-address <ip>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 takes any free one', parsePort, 6443)
    .option('--advertise-host <host>', 'the host that the kubeconfigs name')
    .option(
      '--advertise-address <ip>',
      'where other members of the cluster reach this server, in the endpoints of the service kubernetes',
      ipAddress,
    )
    .option('--cert-host <host>', 'one more name for the serving certificate; may be repeated', repeated, [])
    .option('--node-name <name>', 'the node that the agent’s certificate is for (default: the host name)')
    .option(
      '--node-audience <audience>',
      'nodes may request tokens for it though no volume of the pod needs it; may be repeated',
      repeated,
      [],
    )
    .option(
      '--encryption-provider-config <file>',
      'an EncryptionConfiguration: which resources are stored encrypted, and how',
    )
    .option('--enable-admission-plugins <names>', 'admission plugins beside those that are on by default', listed, [])
    .option('--disable-admission-plugins <names>', 'admission plugins to do without', listed, [])
    .option('--admission-control-config-file <file>', 'an AdmissionConfiguration: the configuration of PodSecurity')
    .option(
      '--etcd-servers <urls>',
      'keep everything in this etcd, with commas between its members: http://127.0.0.1:2379',
      commas,
    )
    .option('--etcd-cafile <file>', 'the CA of etcd’s certificates')
    .option('--etcd-certfile <file>', 'the certificate for etcd')
    .option('--etcd-keyfile <file>', 'its key')
    .option('--etcd-prefix <path>', 'where the keys are in etcd', '/registry')
    .option(
      '--service-cluster-ip-range <cidrs>',
      'where the addresses of Services come from: a range of IPv4 or IPv6, or one of each with a comma between',
      serviceCidrs,
      [DEFAULT_SERVICE_CIDR],
    )
    .option('--restore <file>', 'first put this snapshot in the place of the store; what was there is kept beside it')
    .action(async (flags: Flags) => {
      const { runApiServer } = await import('../../apiserver/main.ts');
      const log = createLog('apiserver');
      const paths = labPaths(flags.root);
      await runApiServer({
        root: paths.root,
        bindAddress: flags.bindAddress,
        port: flags.port,
        ...(flags.advertiseHost === undefined ? {} : { advertiseHost: flags.advertiseHost }),
        ...(flags.advertiseAddress === undefined ? {} : { advertiseAddress: flags.advertiseAddress }),
        hosts: flags.certHost,
        ...(flags.nodeName === undefined ? {} : { nodeName: flags.nodeName }),
        nodeAudiences: flags.nodeAudience,
        auth: authOptions(flags),
        audit: auditOptions(flags),
        limits: limitOptions(flags),
        http2: http2Options(flags),
        serviceCidrs: flags.serviceClusterIpRange,
        ...(flags.encryptionProviderConfig === undefined
          ? {}
          : { encryptionProviderConfig: flags.encryptionProviderConfig }),
        admission: {
          enable: flags.enableAdmissionPlugins,
          disable: flags.disableAdmissionPlugins,
          ...(flags.admissionControlConfigFile === undefined ? {} : { configFile: flags.admissionControlConfigFile }),
        },
        ...etcdOf(flags),
        ...(flags.restore === undefined ? {} : { restore: flags.restore }),
        tracer: new Tracer(),
        clock: systemClock,
        log: (line) => log('info', line),
        onReady: (server) => log('info', 'the API server serves', { url: server.url, kubeconfig: paths.kubeconfig }),
        signal: stopSignal(),
      });
    });
  addAuthFlags(command);
  addAuditFlags(command);
  addHttp2Flags(command);
  return command;
}
