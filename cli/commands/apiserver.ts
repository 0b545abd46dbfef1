// `nodelet apiserver`: the embedded API server alone, on the files of a lab.

import { isIP } from 'node:net';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Component } from '../../apiserver/component-status.ts';
import { DEFAULT_SERVICE_CIDR, familiesOf, serviceRange } from '../../apiserver/kinds/services/ranges.ts';
import { strictRange } from '../../apiserver/kinds/shared/addresses.ts';
import type { EtcdOptions } from '../../apiserver/options.ts';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { createLog } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { DEFAULT_ROOT, labPaths } from '../lab/paths.ts';
import { type AuditFlags, addAuditFlags, auditOptions, limitOptions } from './apiserver-audit.ts';
import { type AuthFlags, addAuthFlags, authOptions, truth } from './apiserver-auth.ts';
import { addHttp2Flags, type Http2Flags, http2Options } from './apiserver-http2.ts';
import { snapshotCommand } from './apiserver-snapshot.ts';
import { commaSeparated, listOption, repeatedOption } from './list-flag.ts';
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
  readonly component: readonly Component[];
  readonly nodeName?: string;
  readonly nodeAudience: readonly string[];
  readonly encryptionProviderConfig?: string;
  readonly encryptionProviderConfigAutomaticReload?: boolean;
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

/** "scheduler=https://127.0.0.1:10259/healthz"; may be repeated. Throws InvalidArgumentError, which commander shows. */
function component(text: string, before: readonly Component[]): readonly Component[] {
  const [, name, url = ''] = /^([^=]+)=(https?:\/\/.+)$/.exec(text) ?? [];
  if (name === undefined || !URL.canParse(url)) {
    throw new InvalidArgumentError(`"${text}" is not <name>=<address of its health>`);
  }
  return [...before, { name, url }];
}

function ipAddress(text: string): string {
  if (isIP(text) === 0) throw new UserError(`--advertise-address: "${text}" is no IP address`);
  return text;
}

/** One range, or one of each IP family, comma-separated. */
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
    .option('--advertise-host <host>', 'host name of this server in the kubeconfigs')
    .option(
      '--advertise-address <ip>',
      'address at which the cluster reaches this server: the endpoint of the Service kubernetes',
      ipAddress,
    )
    .addOption(repeatedOption('--cert-host <host>', 'one more name for the serving certificate'))
    .addOption(
      new Option(
        '--component <name=url>',
        'component whose health kubectl get componentstatuses shows, as scheduler=https://127.0.0.1:10259/healthz; may be repeated',
      )
        .argParser(component)
        .default([], 'none'),
    )
    .option('--node-name <name>', 'the node that the agent’s certificate is for (default: the host name)')
    .addOption(
      repeatedOption(
        '--node-audience <audience>',
        'audience of which nodes may request tokens though no volume of the pod needs it',
      ),
    )
    .option(
      '--encryption-provider-config <file>',
      'an EncryptionConfiguration: which resources are stored encrypted, and how',
    )
    .option('--encryption-provider-config-automatic-reload [boolean]', 'read that file again when it changes', truth)
    .addOption(
      listOption('--enable-admission-plugins <names>', 'admission plugins beside those that are enabled by default'),
    )
    .addOption(listOption('--disable-admission-plugins <names>', 'admission plugins to disable'))
    .option('--admission-control-config-file <file>', 'an AdmissionConfiguration: the configuration of PodSecurity')
    .option(
      '--etcd-servers <urls>',
      'store objects in this etcd: comma-separated URLs of its members, such as http://127.0.0.1:2379',
      commaSeparated,
    )
    .option('--etcd-cafile <file>', 'CA bundle for etcd’s serving certificates')
    .option('--etcd-certfile <file>', 'client certificate for etcd')
    .option('--etcd-keyfile <file>', 'private key of the client certificate')
    .option('--etcd-prefix <path>', 'prefix of the keys in etcd', '/registry')
    .addOption(
      new Option(
        '--service-cluster-ip-range <cidrs>',
        'CIDR range of cluster IPs: one, or one of each IP family, comma-separated',
      )
        .argParser(serviceCidrs)
        .default([DEFAULT_SERVICE_CIDR], DEFAULT_SERVICE_CIDR),
    )
    .option('--restore <file>', 'start from this snapshot of the store; the one that was there is kept beside it')
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
        components: flags.component,
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
        ...(flags.encryptionProviderConfigAutomaticReload === undefined
          ? {}
          : { encryptionReload: flags.encryptionProviderConfigAutomaticReload }),
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
