// `nodelet csi-driver`: the loop-device CSI driver, for labs and for tests of CSI clients.

import { flushCompileCache } from 'node:module';
import { hostname } from 'node:os';
import { Command } from 'commander';
import { UserError } from '../../lib/errors.ts';
import { createLog } from '../../lib/log.ts';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import { repeatedOption } from './list-flag.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly endpoint?: string;
  readonly stateDir: string;
  readonly nodeId: string;
  readonly peerNode: readonly string[];
  readonly attach?: boolean;
  readonly mountGroup?: boolean;
  readonly maxVolumes: number;
  readonly poolSize?: number;
  readonly registrationDir?: string;
  readonly callLog?: string;
  readonly faults?: string;
  readonly requireSecret: readonly string[];
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UserError(`"${text}" is not a whole number above zero`);
  return Number(text);
}

function bytes(text: string): number {
  const nano = parseQuantity(text);
  if (nano === undefined || nano <= 0n) throw new UserError(`"${text}" is not a quantity above zero, such as 10Gi`);
  return Number(nano / 1_000_000_000n);
}

/** "NodeStageVolume:key=value", any number of them. Throws UserError. */
export function parseRequiredSecrets(texts: readonly string[]): Record<string, Record<string, string>> {
  const secrets: Record<string, Record<string, string>> = {};
  for (const text of texts) {
    const match = /^([A-Za-z]+):([A-Za-z0-9._-]+)=(.*)$/s.exec(text);
    const [, method = '', key = '', value = ''] = match ?? [];
    if (match === null) throw new UserError('--require-secret is not METHOD:KEY=VALUE');
    setOwn(secrets, method, { ...getOwn(secrets, method), [key]: value });
  }
  return secrets;
}

export function csiDriverCommand(): Command {
  return new Command('csi-driver')
    .description('run the CSI driver loop.csi.nodelet: volumes as files on loop devices')
    .option('--endpoint <url>', 'where to serve, unix:///path/csi.sock (default: the environment’s CSI_ENDPOINT)')
    .requiredOption('--state-dir <dir>', 'directory of the volumes and their metadata')
    .option('--node-id <id>', 'id of this node (NodeGetInfo), in topologies and attachments', hostname().toLowerCase())
    .option('--registration-dir <dir>', 'the kubelet’s plugins_registry, in which the driver registers')
    .option('--attach', 'volumes have to be attached (ControllerPublishVolume) before they are staged')
    .addOption(repeatedOption('--peer-node <id>', 'another node that volumes can be attached to'))
    .option('--mount-group', 'support volume_mount_group: the driver, not the kubelet, applies fsGroup')
    .option('--max-volumes <n>', 'most volumes on this node', wholeNumber, 128)
    .option(
      '--pool-size <quantity>',
      'capacity: what the sizes of all volumes may add up to (default: no limit, they are sparse)',
      bytes,
    )
    .option('--call-log <file>', 'append every call to this file, one JSON object per line, without secrets')
    .option('--faults <file>', 'control file of faults to inject, read at every call (docs/csi.md)')
    .addOption(repeatedOption('--require-secret <method:key=value>', 'refuse this call without this secret'))
    .action(async (flags: Flags) => {
      if (process.getuid?.() !== 0) throw new UserError('must be root: the driver makes loop devices and mounts');
      const endpoint = flags.endpoint ?? process.env['CSI_ENDPOINT'];
      if (endpoint === undefined) throw new UserError('neither --endpoint nor CSI_ENDPOINT is set');
      if (!/^unix:(\/\/)?\//.test(endpoint)) throw new UserError(`the endpoint "${endpoint}" is not unix:///path`);
      const faults = process.env['NODELET_CSI_FAULTS'];
      const { runDriver } = await import('../../csi/driver/main.ts');
      // Node writes compiled code when a process exits by itself. A driver that is killed each time would compile at each start.
      flushCompileCache();
      await runDriver(
        {
          endpoint,
          stateDir: flags.stateDir,
          nodeId: flags.nodeId,
          peerNodes: flags.peerNode,
          attach: flags.attach === true,
          mountGroup: flags.mountGroup === true,
          maxVolumes: flags.maxVolumes,
          requiredSecrets: parseRequiredSecrets(flags.requireSecret),
          ...(flags.poolSize === undefined ? {} : { poolBytes: flags.poolSize }),
          ...(flags.registrationDir === undefined ? {} : { registrationDir: flags.registrationDir }),
          ...(flags.callLog === undefined ? {} : { callLog: flags.callLog }),
          ...(flags.faults === undefined ? {} : { faultFile: flags.faults }),
          ...(faults === undefined ? {} : { faults }),
        },
        createLog('csi-driver'),
        stopSignal(),
      );
    });
}
