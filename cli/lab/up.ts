// `nodelet up`: a lab in the foreground, until Ctrl-C.

import { whenAborted } from '../../lib/abort.ts';
import { UserError } from '../../lib/errors.ts';
import { cleanLab } from './clean.ts';
import { type LabOptions, startLab } from './lab.ts';
import { LAB_PROCESSES, type LabPaths } from './paths.ts';
import { labAt } from './take-root.ts';

export interface UpOptions extends LabOptions {
  /** Aborts when the lab is to stop. */
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** What to do with a lab that runs, as a person reads it. Pure. */
export function whatNext(
  paths: LabPaths,
  { csi = false, docker = false, proxy = false, dns = false, netpol = false, registry = false, nodes = false } = {},
): readonly string[] {
  const kubectl = `kubectl --kubeconfig ${paths.kubeconfig}`;
  const root = paths.isDefaultRoot ? '' : ` --root ${paths.root}`;
  return [
    '',
    'The lab is up. In another terminal:',
    '',
    `  export KUBECONFIG=${paths.kubeconfig}`,
    '  kubectl get nodes',
    '  kubectl run web --image=nginx:stable --port=80',
    '  kubectl get pods -o wide --watch',
    '',
    `Without exporting: ${kubectl} …`,
    ...(nodes
      ? [
          `The nodes: nodelet node list${root}, and node add, stop, start, kill, partition, heal`,
          `Logs of apiserver, controlplane${dns ? ', dns' : ''}${registry ? ', registry' : ''}: ${paths.logDir}; of containerd, agent, proxy${netpol ? ', netpol' : ''}: ${paths.nodesDir}/NAME/logs`,
        ]
      : [
          `Logs of ${[...LAB_PROCESSES, ...(proxy ? ['proxy'] : []), ...(dns ? ['dns'] : []), ...(netpol ? ['netpol'] : []), ...(registry ? ['registry'] : []), ...(docker ? ['dockerd', 'dockershim'] : []), ...(csi ? ['csi-driver'] : [])].join(', ')}: ${paths.logDir}`,
        ]),
    'Ctrl-C stops the lab and cleans up.',
  ];
}

/** Takes a lab of this process off the machine without the supervisor's help, for when that cannot be trusted any more. */
export async function rescueLab(options: { readonly root?: string; readonly keep?: boolean }): Promise<void> {
  await cleanLab({ paths: await labAt(options.root), keep: options.keep === true });
}

/** Runs a lab until the signal aborts. Resolves with the exit code. Rejects with UserError when it cannot start. */
export async function runUp(options: UpOptions): Promise<number> {
  const { signal, say } = options;
  let lab: Awaited<ReturnType<typeof startLab>>;
  try {
    lab = await startLab(options);
  } catch (error) {
    if (signal.aborted) {
      say('stopped while starting; everything is cleaned up');
      return 0;
    }
    throw error;
  }
  const { csi, runtime, proxy, dns, netpol, registry, nodes } = lab.state;
  const parts = {
    csi: csi !== undefined,
    docker: runtime === 'docker',
    proxy: proxy !== undefined,
    dns: dns !== undefined,
    netpol: netpol === true,
    registry: registry?.own !== undefined,
    nodes: nodes !== undefined,
  };
  for (const line of whatNext(lab.paths, parts)) say(line);
  await whenAborted(signal);
  say('stopping');
  const problems = await lab.stop();
  if (problems.length > 0) throw new UserError(`not everything could be cleaned: ${problems.join('; ')}`);
  say(options.keep === true ? `stopped; ${lab.paths.root} is kept` : 'stopped; nothing is left');
  return 0;
}
